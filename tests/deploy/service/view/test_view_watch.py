"""The page of a run's own process: it knows limits and budgets, stops the run, and its person answers at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from server_client import ServerClient, parsed, until

from moot.actors.record.tables import read_table
from moot.deploy.results.figures.summary import summarise
from moot.deploy.runs.listener import Listener
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.run import prepare_from
from moot.deploy.service.view.watch import WatchedSession
from moot.protocols.errors import ConfigError


@asynccontextmanager
async def watched(
    out: Path, listener: Listener | None = None, **options: Any
) -> AsyncIterator[tuple[ServerClient, asyncio.Task[Run], list[str]]]:
    """A run under way, a client of its page, and what it says."""
    said: list[str] = []
    prepared = prepare_from(None, {"engine": "inline", "out": out, **options})
    session = WatchedSession(prepared, listener or Listener(), said.append)
    running = asyncio.create_task(session.run())
    try:
        await until(lambda: said or running.done())
        async with aiohttp.ClientSession() as http:
            yield ServerClient(said[0].split()[-1].rstrip("/"), http), running, said
    finally:
        session.stop()
        await running


async def test_it_shows_limits_and_budgets_and_ends_with_the_run(tmp_path: Path) -> None:
    slow: dict[str, Any] = {"model": "simulated?latency_ms=150", "max_open": 4, "max_tokens": 10_000_000, "limit": 200}
    async with watched(tmp_path / "run", **slow) as (client, running, said):
        assert (await client.get("/")).status == 200, "it leads to the run's page"
        received: list[str] = []

        async def follow() -> None:
            async with client.session.get(f"{client.base}/runs/run/events") as stream:
                async for line in stream.content:
                    received.append(line.decode())

        following = asyncio.create_task(follow())
        await until(lambda: any("requests in flight" in line for line in received))
        await until(lambda: read_table(tmp_path / "run", "verdicts").num_rows)
        assert (await client.post("/runs/run/stop", {})).status == 200
        done = await running
        await following
    told = parsed("".join(received))
    assert done.status == "interrupted"
    assert any("stopping" in line for line in said)
    assert told[-1]["event"] == "end"
    assert json.loads(told[-1]["data"]) == {
        "hint": f"moot view {tmp_path / 'run'}",
        "reason": "",
        "status": "interrupted",
        "stopped_by": "",
    }
    last = last_figures(told)
    assert (last["finished"], last["open"], last["can_stop"], last["limits"]) == (done.done, 0, False, [])
    figures = " ".join(each["data"] for each in told if each["event"] == "figures")
    assert '"cap":10000000.0' in figures
    assert '"phase":"Stopping"' in figures or '"can_stop":true' in figures


def last_figures(told: list[dict[str, str]]) -> dict[str, Any]:
    """The last figures that a page got."""
    found: dict[str, Any] = json.loads([each["data"] for each in told if each["event"] == "figures"][-1])
    return found


async def test_its_page_gets_the_last_figures_and_charts_of_the_record(tmp_path: Path) -> None:
    async with watched(tmp_path / "run", model="simulated?latency_ms=20", limit=6) as (client, running, _):
        told = parsed((await client.get("/runs/run/events")).text)
        done = await running
    assert (done.status, done.done) == ("finished", 6)
    last, summary = last_figures(told), summarise(tmp_path / "run")
    assert (last["finished"], last["open"], last["tokens"]) == (6, 0, summary.tokens_paid)
    assert last["accuracy"] == summary.accuracy
    charts = {chart["name"]: chart for chart in json.loads([e["data"] for e in told if e["event"] == "charts"][-1])}
    assert charts["live-accuracy"]["series"][0]["x"][-1] == summary.scored


class _Waiting(Listener):
    """How many forms wait, at each change."""

    def __init__(self) -> None:
        self.waiting_forms: list[int] = []

    def waiting(self, forms: int) -> None:
        self.waiting_forms.append(forms)


async def _answer_all(client: ServerClient) -> None:
    for form in (await client.get("/runs/run/decisions.json")).json:
        assert form["question"].endswith("?")
        assert all(each["who"] and each["text"] for each in form["replies"])
        assert form["replies"]
        wrong = await client.post("/runs/run/decisions", {"case": form["case"], "action": "fly"})
        assert wrong.status == 422
        action = next(each["action"] for each in form["actions"] if not each["takes_text"])
        answered = await client.post("/runs/run/decisions", {"case": form["case"], "action": action})
        assert answered.status == 200


async def test_a_persons_answer_resumes_the_debate_at_once(tmp_path: Path) -> None:
    subject = {"task": "sample-subjects", "protocol": "socrasynth", "limit": 1, "attended": True}
    listener = _Waiting()
    async with watched(tmp_path / "run", listener, **subject) as (client, running, _):
        while not running.done():
            with suppress(aiohttp.ClientConnectionError):  # the page ends with the run
                await _answer_all(client)
            await asyncio.wait([running], timeout=0.02)
        done = running.result()
    assert (done.status, done.parked) == ("finished", ())
    assert listener.waiting_forms == [1, 0] * (len(listener.waiting_forms) // 2)
    assert any(row["role"] == "person" for row in read_table(tmp_path / "run", "turns", ["role"]).to_pylist())


async def test_a_run_with_nothing_to_do_has_no_page(tmp_path: Path) -> None:
    options: dict[str, Any] = {"limit": 1, "protocol": "single-agent", "engine": "inline", "out": tmp_path / "run"}
    said: list[str] = []
    for begins in (True, False):
        done = await WatchedSession(prepare_from(None, options), Listener(), said.append).run()
        assert (done.status, done.worked) == ("finished", begins)
    assert sum("watch the run at" in line for line in said) <= 1


async def test_a_page_that_cannot_be_served_leaves_the_run_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*_: object) -> None:
        raise ConfigError("cannot listen")

    monkeypatch.setattr("moot.deploy.service.view.watch.listening_socket", taken)
    said: list[str] = []
    prepared = prepare_from(None, {"engine": "inline", "out": tmp_path / "run", "limit": 3})
    done = await WatchedSession(prepared, Listener(), said.append).run()
    assert (done.status, done.done) == ("finished", 3)
    assert said == ["the run cannot be watched: cannot listen"]
