"""A server whose models are down for a while: it reports so, reopens its run by itself, and resumes all debates."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from openai_server import simulated_server
from server_client import CASE, SLOW, ServerClient, served

from moot.actors.simulated.answer_key import AnswerKey
from moot.deploy.runs.open_run import OpenRun
from moot.protocols.errors import ModelUnavailable, UserError

IDS = [f"q{number}" for number in range(14)]
"""More than the failures in a row after which an endpoint is given up."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.limits.limiter_client.GIVE_UP_S", 0.3)
    monkeypatch.setattr("moot.actors.limits.concurrency.FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr("moot.deploy.service.lifecycle.FIRST_S", 0.1)
    monkeypatch.setattr("moot.deploy.service.lifecycle.LONGEST_S", 0.2)


async def counts(client: ServerClient) -> dict[str, int]:
    found: dict[str, int] = (await client.get("/v1/stats")).json["debates"]
    return found


def sessions(folder: Path) -> list[tuple[str, str]]:
    found = yaml.safe_load((folder / "debates" / "run.yaml").read_text())["sessions"]
    return [(each["status"], each.get("stopped_by", "")) for each in found]


async def test_an_outage_pauses_the_server_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, found_down = OpenRun.open, asyncio.Event()

    async def seen(run: OpenRun) -> None:
        try:
            await opened(run)
        except UserError:
            found_down.set()
            raise

    monkeypatch.setattr(OpenRun, "open", seen)
    with ExitStack() as endpoint:
        port = endpoint.enter_context(simulated_server(AnswerKey(), port=0))
        debates = {"engine": "inline", "model": f"http://127.0.0.1:{port}/v1#sim"}
        down = f"http://127.0.0.1:{port}/v1#sim has not answered for 300 s"
        async with served(tmp_path, debates=debates) as client:
            assert (await client.post("/v1/debates?wait_s=60", {**CASE, "id": "early"})).json["status"] == "done"
            endpoint.close()
            asked = await asyncio.gather(*(client.post("/v1/debates", {**CASE, "id": case_id}) for case_id in IDS))
            assert {answer.status for answer in asked} <= {200, 202}
            await client.until("/v1/debates/q0", "aside")
            told = (await client.get("/v1/debates/q0")).json
            refused = await client.post("/v1/debates", {**CASE, "id": "late"})
            unknown = await client.get("/v1/debates/late")
            assert told["why"] == f"the run has stopped: {down}"
            assert client.services.unavailable() == {
                "debates": f"the run has stopped: {down}: the server retries automatically"
            }
            assert "127.0.0.1" not in (await client.get("/readyz")).text
            assert (await counts(client))["aside"] == len(IDS)
            for answer in (refused, unknown):
                assert (answer.status, answer.code) == (503, "paused")
                assert int(answer.headers["Retry-After"]) >= 1
            assert (await client.get("/readyz")).status == 503
            assert (await client.get("/healthz")).status == 200
            assert (await client.get("/v1/debates/early")).json["status"] == "done"
            assert [event["event"] for event in await client.events("/v1/debates/q0/events")][-1] == "end"
            async with asyncio.timeout(30):
                await found_down.wait()
            assert (await client.get("/readyz")).status == 503
            endpoint.enter_context(simulated_server(AnswerKey(), port=port))
            for case_id in IDS:
                await client.until(f"/v1/debates/{case_id}", "done")
            assert (await client.get("/readyz")).status == 200
            assert (await counts(client))["aside"] == 0
            assert (await client.post("/v1/debates?wait_s=60", {**CASE, "id": "late"})).json["status"] == "done"
    assert sessions(tmp_path) == [("stopped", down), ("finished", "")]


async def test_a_lost_limiter_is_replaced_and_tries_that_fail_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, tries = OpenRun.open, 0

    async def fails_twice(run: OpenRun) -> None:
        nonlocal tries
        tries += 1
        if tries <= 2:
            raise ModelUnavailable("nobody answers")
        await opened(run)

    async with served(tmp_path, debates=SLOW) as client:
        await client.post("/v1/debates", {**CASE, "id": "one"})
        await client.until("/v1/debates/one", "open")
        monkeypatch.setattr(OpenRun, "open", fails_twice)
        dispatcher: Any = client.services.of("debates").run._dispatcher
        dispatcher._stop("limiter_gone: ActorDiedError")
        await client.until("/v1/debates/one", "aside")
        assert (await client.get("/readyz")).status == 503
        assert (await counts(client))["aside"] == 1
        await client.until("/v1/debates/one", "queued", "open")
        assert tries == 3
        assert (await client.ask("DELETE", "/v1/debates/one")).status == 200
    assert sessions(tmp_path)[0] == ("stopped", "the rate limiter is unreachable (ActorDiedError)")


async def test_a_server_that_is_closed_while_it_waits_tries_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.deploy.service.lifecycle.FIRST_S", 60.0)
    async with served(tmp_path, debates=SLOW) as client:
        await client.post("/v1/debates", {**CASE, "id": "one"})
        await client.until("/v1/debates/one", "open")
        dispatcher: Any = client.services.of("debates").run._dispatcher
        dispatcher._stop("endpoint_down: http://nowhere")
        await client.until("/v1/debates/one", "aside")
        opening: Any = client.services.of("debates")._opening
        trying = opening._task
        assert not trying.done()
        await client.services.drain(0.0)
        for path in ("/v1/debates/other", "/v1/debates/other/events"):
            told = await client.get(path)
            assert (told.status, told.code) == (503, "stopping"), told.text
    assert trying.done()
    opening.reopen_if_stopped()
    assert opening._task is None
    assert len(sessions(tmp_path)) == 1
    async with served(tmp_path, debates=SLOW) as client:
        assert (await client.get("/v1/debates/one")).json["status"] in ("queued", "open")
