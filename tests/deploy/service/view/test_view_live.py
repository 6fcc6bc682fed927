"""Pages of a run under way: they grow with its record, in any process, and end with it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from planted_records import PlantedSession
from server_client import ServerClient, listening
from waiting import wait_until

import moot
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.tables import read_table
from moot.deploy.runs.decide import pending_forms
from moot.deploy.service.view.app import make_view
from moot.deploy.service.view.catalogue import RunCatalogue


@asynccontextmanager
async def viewed(folder: Path) -> AsyncIterator[ServerClient]:
    """The pages of a folder's runs on a port of their own."""
    catalogue = RunCatalogue(folder)
    view = make_view(catalogue)
    async with listening(view) as (port, _), aiohttp.ClientSession() as session:
        yield ServerClient(f"http://127.0.0.1:{port}", session)
        await view.close()
    await catalogue.close()


async def streamed(client: ServerClient, path: str) -> AsyncIterator[tuple[str, Any]]:
    """Server-sent events as they come, to the end."""
    async with client.session.get(client.base + path) as answer:
        assert answer.content_type == "text/event-stream"
        name = ""
        async for line in answer.content:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                yield name, json.loads(value)


@contextmanager
def started(folder: Path, log: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run in another process, which is ended at the end."""
    command = [sys.executable, "-m", "moot", "run", "--engine", "inline", "--quiet", "--out", str(folder), *options]
    with log.open("wb") as sink, subprocess.Popen(command, stdout=sink, stderr=sink) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_run_of_another_process_is_followed_and_stopped(tmp_path: Path) -> None:
    out, log = tmp_path / "runs" / "live", tmp_path / "log"
    with started(out, log, "--model", "simulated?latency_ms=400", "--max-open", "4") as process:
        wait_until(lambda: (out / "run.yaml").exists())
        async with viewed(tmp_path / "runs") as client:
            row = (await client.get("/runs.json")).json[0]
            assert (row["name"], row["state"]) == ("live", "live")
            page = (await client.get("/runs/live/")).text
            assert '"live":"events"' in page
            done: list[int] = []
            debate = ""
            async for name, told in streamed(client, "/runs/live/events"):
                if name != "figures":
                    continue
                assert told["total"] == 72
                assert (told["can_stop"], told["budgets"], told["limits"]) == (True, None, None)
                done.append(told["finished"])
                debate = debate or next((each["case"] for each in told["debates"] if each["replies"]), "")
                if told["finished"] >= 4 and told["open"]:
                    break
            assert done == sorted(done)
            notes = [
                told async for name, told in streamed(client, f"/runs/live/cases/{debate}/events") if name == "note"
            ]
            assert notes[-1]["kind"] == "verdict"
            assert {note["data"]["role"] for note in notes if note["kind"] == "reply"} >= {
                "agent/0",
                "agent/1",
                "agent/2",
            }
            for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
                assert (await client.post("/runs/live/stop", {}, headers=headers)).status == 403
            form = await client.ask("POST", "/runs/live/stop", data="{}", headers={"Content-Type": "text/plain"})
            assert form.status == 415
            assert (await client.get("/runs/live/stop")).status == 405
            assert process.poll() is None
            for _ in range(2):  # the second one is not passed on: it would end the process at once
                assert (await client.post("/runs/live/stop", {})).status == 200
            names = [name async for name, _ in streamed(client, "/runs/live/events")]
            assert names[-1] == "end"
            assert process.wait(60) == 130
            assert "run the same command to resume" in log.read_text()
            assert (await client.get("/runs.json")).json[0]["state"] == "interrupted"
            assert (await client.post("/runs/live/stop", {})).status == 409
            last = [told async for name, told in streamed(client, "/runs/live/events") if name == "figures"][-1]
    assert last["finished"] == read_table(out, "verdicts").num_rows


@pytest.fixture
def retried(session: PlantedSession) -> Path:
    """A run whose only case failed, with a reply of its retry."""
    session.case("c1")
    session.verdict("c1", None, "failed", failure="quorum_failed")
    session.reply("c1", "opening/agent/0", 3, attempt=1)
    return session.plant()


async def test_a_retry_is_read_while_a_process_works_on_the_run(retried: Path) -> None:
    page = f"/runs/{retried.name}/cases/c1.json"
    async with viewed(retried.parent) as client:
        assert (await client.get(page)).json["state"] == "failed"
        owner = Ownership.acquire(RunFolder(retried))
        assert (await client.get(page)).json["state"] == "open"
        owner.release()


async def test_a_debate_that_waits_for_a_person_is_answered(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "attended"
    options: dict[str, Any] = {"task": "sample-subjects", "protocol": "socrasynth", "limit": 1, "engine": "inline"}
    moot.run(**options, attended=True, out=out)
    async with viewed(tmp_path / "runs") as client:
        (form,) = (await client.get("/runs/attended/decisions.json")).json
        asked = pending_forms(out)[0]
        assert (form["case"], form["title"]) == (asked.case_id, asked.form.title)
        assert [each["action"] for each in form["actions"]] == list(asked.form.actions)
        action = next(each["action"] for each in form["actions"] if not each["takes_text"])
        for body, status in (
            ({"case": form["case"], "action": "fly"}, 422),
            ({"case": "none", "action": action}, 422),
            ({"case": form["case"]}, 422),
            ({"case": form["case"], "action": action, "more": 1}, 422),
        ):
            assert (await client.post("/runs/attended/decisions", body)).status == status
        deep = f'{{"more": {9999 * "["}'
        headers = {"content-type": "application/json"}
        assert (await client.ask("POST", "/runs/attended/decisions", data=deep, headers=headers)).status == 422
        answered = await client.post("/runs/attended/decisions", {"case": form["case"], "action": action})
        assert answered.status == 200
        assert "resume" in answered.json["message"]
        assert (await client.get("/runs/attended/decisions.json")).json == []
    assert [row["data"] for row in read_table(out, "turns", ["role", "data"]).to_pylist() if row["role"] == "person"]
