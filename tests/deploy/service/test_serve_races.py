"""The server where two things happen at once or one fails: nothing accepted is lost, nothing refused is kept."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from server_client import CASE, INLINE, SLOW, parsed, pending, served, until

from moot.protocols.errors import ActorGone


@pytest.mark.filterwarnings("ignore")  # Ray Serve's own code warns while it is imported
async def test_a_broken_engine_fails_the_health_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from moot.deploy.service.deployment import DebateServer

    async def fails(*_: Any) -> None:
        raise OSError("the disk is full")

    async with served(tmp_path) as client:
        service = client.services.of("debates")
        replica: Any = SimpleNamespace(_services=client.services)
        await DebateServer.check_health(replica)
        monkeypatch.setattr(service.run._runtime.writers, "register", fails)
        await client.post("/v1/debates", {**CASE, "id": "one"})

        async def broken() -> bool:
            return (await client.get("/healthz")).status == 503

        await until(broken)
        assert (await client.get("/healthz")).code == "broken"
        assert (await client.get("/readyz")).status == 503
        with pytest.raises(ActorGone, match="debates"):
            await DebateServer.check_health(replica)
        assert (await client.post("/v1/debates", {**CASE, "id": "two"})).status == 503
        assert (await client.get("/v1/debates/two")).status == 404
        assert await pending(client) == ["one"]


async def test_cancelling_several_times_at_once_cancels_for_good(tmp_path: Path) -> None:
    async with served(tmp_path, debates=SLOW) as client:
        for number in range(8):
            path = f"/v1/debates/q{number}"
            await client.post("/v1/debates", {**CASE, "id": f"q{number}"})
            answers = await asyncio.gather(*(client.ask("DELETE", path) for _ in range(6)))
            assert {answer.status for answer in answers} <= {200, 409}
            assert 200 in {answer.status for answer in answers}
            assert (await client.get(path)).json["status"] == "cancelled"
        assert await pending(client) == []
        assert (await client.get("/v1/stats")).json["debates"]["cancelled"] == 8


async def test_without_a_place_a_stream_is_refused_and_a_post_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path, debates=SLOW) as client:
        with monkeypatch.context() as patched:
            patched.setattr("moot.deploy.service.services.MAX_CONNECTION_SLOTS", 0)
            accepted = await client.post("/v1/debates?wait_s=60", {**CASE, "id": "one"})
            stream = await client.get("/v1/debates/one/events")
            waits = await client.get("/v1/debates/one?wait_s=60")
        assert accepted.status == 202
        assert (stream.status, stream.code, waits.status) == (429, "too_many", 429)
        assert int(stream.headers["Retry-After"]) >= 1
        reading = asyncio.create_task(client.get("/v1/debates/one/events"))

        await until(lambda: client.services._held == 1)
        await client.ask("DELETE", "/v1/debates/one")
        assert parsed((await reading).text)[-1]["event"] == "end"
        assert client.services._held == 0


async def test_a_server_that_refuses_is_not_ready_and_keeps_nothing_of_what_it_refused(tmp_path: Path) -> None:
    async with served(tmp_path, debates={**INLINE, "max_tokens": 50}) as client:
        assert (await client.get("/readyz")).status == 200
        first = await client.post("/v1/debates?wait_s=30", {**CASE, "id": "one"})
        assert first.json["status"] == "aside"
        assert (await client.get("/readyz")).status == 503
        assert (await client.get("/healthz")).status == 200
        refused = await client.post("/v1/debates", {**CASE, "id": "two"})
        again = await client.post("/v1/debates", {**CASE, "id": "one"})
        assert (refused.status, refused.code, again.status) == (503, "stopped", 503)
        assert "Retry-After" not in refused.headers  # a budget is final
        assert (await client.get("/v1/debates/two")).status == 404
        told = (await client.get("/v1/debates/one")).json
        assert (told["status"], "tokens" in told["why"]) == ("aside", True)
        assert "tokens" in refused.json["error"]["message"]
        assert await pending(client) == ["one"]
    async with served(tmp_path, debates={**INLINE, "max_tokens": 10**6}) as client:
        assert (await client.end("/v1/debates/one"))["status"] == "done"


async def test_an_acceptance_that_is_not_on_disk_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path, debates=SLOW) as client:
        inbox = client.services._inbox
        begun, held, written = threading.Event(), threading.Event(), inbox._commit

        def slow(batch: Any) -> None:
            begun.set()
            held.wait(30.0)
            raise OSError("the disk is full")

        monkeypatch.setattr(inbox, "_commit", slow)
        both = [asyncio.create_task(client.post("/v1/debates", {**CASE, "id": "one"})) for _ in range(2)]
        await until(begun.is_set)
        await asyncio.sleep(0.05)
        assert not any(each.done() for each in both)
        held.set()
        answers = await asyncio.gather(*both)
        monkeypatch.setattr(inbox, "_commit", written)
        assert [(answer.status, answer.code) for answer in answers] == [(503, "unwritable")] * 2
        assert (await client.get("/v1/debates/one")).status == 404
        assert (await client.post("/v1/debates", {**CASE, "id": "one"})).status == 202
        assert await pending(client) == ["one"]


async def test_an_id_with_other_content_leaves_what_the_inbox_has_under_it(tmp_path: Path) -> None:
    async with served(tmp_path, debates=SLOW) as client:
        service = client.services.of("debates")
        await client.post("/v1/debates", {**CASE, "id": "one"})
        await client.ask("DELETE", "/v1/debates/one")
        await service._inbox.accept("debates", "one", b"{}")
        service._jobs._ended.clear()  # as after many others
        other = await client.post("/v1/debates", {**CASE, "question": "is eight a prime", "id": "one"})
        assert (other.status, other.code) == (409, "other_content")
        assert await pending(client) == ["one"]
        await service._inbox.acknowledge("debates", "one")


async def test_the_queue_is_bounded_in_bytes_too(tmp_path: Path) -> None:
    async with served(tmp_path, debates=SLOW, max_queued_bytes=4000) as client:
        for number, status in ((0, 202), (1, 429)):
            body = {**CASE, "id": f"q{number}", "passage": "x" * 3000}
            assert (await client.post("/v1/debates", body)).status == status
        assert (await client.post("/v1/debates", {**CASE, "id": "small"})).status == 202
        await client.ask("DELETE", "/v1/debates/q0")
        assert (await client.post("/v1/debates", {**CASE, "id": "q1", "passage": "x" * 3000})).status == 202


async def test_a_record_that_cannot_be_read_ends_its_stream_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as client:
        await client.post("/v1/debates?wait_s=60", {**CASE, "id": "one"})

    def fails(*_: Any) -> None:
        raise OSError("a secret place")

    monkeypatch.setattr("moot.deploy.runs.open_run.recorded_events", fails)
    async with served(tmp_path) as client:
        answer = await client.get("/v1/debates/one/events")
    assert [event["event"] for event in parsed(answer.text)] == ["error"]
    assert "secret" not in answer.text


async def test_what_cannot_be_resumed_is_reported_with_its_reason_and_may_be_cancelled_or_asked_again(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as client:
        await client.post("/v1/debates?wait_s=60", {**CASE, "id": "other"})
        inbox = client.services.of("debates")._inbox
        old = {"question": "is seven a prime", "colour": "blue"}  # as an older version took it
        for case_id in ("old", "older"):
            await inbox.accept("debates", case_id, json.dumps({**old, "id": case_id}).encode())
        await inbox.accept("debates", "other", json.dumps({**CASE, "id": "other", "passage": "Else."}).encode())
    async with served(tmp_path) as client:
        for case_id in ("old", "older"):
            told = (await client.get(f"/v1/debates/{case_id}")).json
            assert (told["status"], told["why"][:8]) == ("aside", "colour: ")

        async def told_of_other() -> bool:
            return "is not what it was" in (await client.get("/v1/debates/other")).json["why"]

        await until(told_of_other)
        assert (await client.post("/v1/debates?wait_s=60", {**CASE, "id": "old"})).json["status"] == "done"
        assert (await client.ask("DELETE", "/v1/debates/older")).json["status"] == "cancelled"
        assert (await client.ask("DELETE", "/v1/debates/older")).status == 409
        assert await pending(client) == ["other"]
        assert (await client.get("/v1/debates/nobody")).status == 404
