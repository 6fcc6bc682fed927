"""Runs that pages follow: released when no page is open, ended with a reason when the record cannot be read."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from planted_records import PlantedSession
from server_client import parsed, until

from moot.actors.record.folder import RunFolder
from moot.actors.record.follow import Added, RecordFollower
from moot.actors.record.ownership import Ownership
from moot.deploy.service.errors import RequestError
from moot.deploy.service.live.live_run import LiveRun
from moot.deploy.service.view.actions import RecordedControl
from moot.deploy.service.view.catalogue import FoundRun
from moot.deploy.service.view.followed import FollowedRuns, OwnProcess


class OwnControl(RecordedControl):
    """Control of a run of this process, whose figures wait while `is_quick` is not set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.is_quick = asyncio.Event()
        self.is_quick.set()

    async def beside(self) -> Mapping[str, Any]:
        """See `RunControl.beside`."""
        await self.is_quick.wait()
        return {}


@pytest.fixture
def run(session: PlantedSession) -> FoundRun:
    """A run with an open debate, whose record is still a journal."""
    session.compacts = False
    session.case("ended")
    session.reply("ended", "opening/agent/0", 10)
    session.verdict("ended")
    session.case("open")
    session.reply("open", "opening/agent/0", 10)
    session.reply("open", "judge/candidate/0/judge/1/variant/2/pass/0", 10)
    path = session.plant(sessions=[{"status": "running"}])
    return FoundRun(path.name, path)


def follow(run: FoundRun, control: OwnControl | None = None) -> FollowedRuns:
    """Follows a run as its own process does: it is under way until it is closed."""
    return FollowedRuns(OwnProcess(control or OwnControl(run.path), str(run.path)))


def open_files(folder: Path) -> list[str]:
    """Files of a folder that this process has open."""
    held = (os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
    return [each for each in held if each.startswith(str(folder))]


async def read(live: LiveRun, last: str) -> list[tuple[str, Any]]:
    """Server-sent events of a run, to the first of some name."""
    found: list[tuple[str, Any]] = []
    async for chunk in live.updates():
        events = parsed(chunk.decode())
        found += [(each["event"], msgspec.json.decode(each["data"])) for each in events if "event" in each]
        if found and found[-1][0] == last:
            break
    return found


async def test_a_debate_shows_its_last_step_in_words(run: FoundRun) -> None:
    followed = follow(run)
    with ExitStack() as page:
        figures = (await read(await followed.follow(run, page), "figures"))[-1][1]
    await followed.close()
    (debate,) = figures["debates"]
    assert (debate["case"], debate["step"]) == ("open", "Judging, candidate 0, judge 1, evidence variant 2, pass 0")


async def test_a_page_hears_of_the_server_while_figures_are_not_ready(
    run: FoundRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.deploy.service.live.live_run.HEARTBEAT_S", 0.01)
    control = OwnControl(run.path)
    control.is_quick.clear()
    followed = follow(run, control)
    with ExitStack() as page:
        live = await followed.follow(run, page)
        await read(live, "heartbeat")
        control.is_quick.set()
        assert (await read(live, "figures"))[-1][1]["finished"] == 1
    await followed.close()


async def test_a_run_without_open_pages_is_released(run: FoundRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is released at once, without last figures: a page that opens while they are made would get its end."""
    control = OwnControl(run.path)
    followed = follow(run, control)
    with ExitStack() as page:
        first = await followed.follow(run, page)
        await read(first, "figures")
        assert open_files(run.path)
        control.is_quick.clear()
        monkeypatch.setattr("moot.deploy.service.live.live_run.IDLE_S", 0.0)
        monkeypatch.setattr("moot.deploy.service.live.live_run._LIVE_CHECK_S", math.inf)
    await until(lambda: first.has_ended and not open_files(run.path))
    monkeypatch.undo()
    control.is_quick.set()
    with ExitStack() as page:
        again = await followed.follow(run, page)
        assert again is not first
        assert (await read(again, "figures"))[-1][1]["finished"] == 1
    await followed.close()
    assert not open_files(run.path)


async def test_a_record_that_cannot_be_read_any_more_ends_the_page_with_the_reason(run: FoundRun) -> None:
    followed = follow(run)
    with ExitStack() as page:
        live = await followed.follow(run, page)
        await read(live, "figures")
        (run.path / "parts").mkdir(exist_ok=True)
        (run.path / "parts" / "e000001-w00-r0000.json").write_text("{")
        end = (await read(live, "end"))[-1][1]
        assert "cannot be read" in end["reason"]
        (told,) = parsed("".join([chunk.decode() async for chunk in live.debate("open")]))
        assert (told["event"], "cannot be read" in told["data"]) == ("end", True)
    await followed.close()


async def test_a_server_that_stops_ends_its_pages_without_reading_the_rest(run: FoundRun) -> None:
    """They connect again: to a server that starts meanwhile."""
    followed, owner = FollowedRuns(), Ownership.acquire(RunFolder(run.path))
    with ExitStack() as page:
        live = await followed.follow(run, page)
        await followed.close()
        ((name, end),) = await read(live, "end")
        assert (name, end["status"], end["reason"]) == ("end", "live", "")
        debate = parsed("".join([chunk.decode() async for chunk in live.debate("open")]))
        assert [each["event"] for each in debate] == ["note", "note"], "no end"
        owner.release()
        assert not open_files(run.path)
        with pytest.raises(RequestError, match="stopping"):
            await followed.follow(run, page)


async def test_reads_of_all_runs_stop_at_once_between_chunks(run: FoundRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run's read is under way when the server stops: both get their end before either read goes on."""
    other = FoundRun("other", run.path.with_name("other"))
    shutil.copytree(run.path, other.path)
    go_on, chunks = threading.Event(), dict[RecordFollower, list[str]]()
    whole = RecordFollower.read

    def gated(follower: RecordFollower) -> Iterator[Added]:
        for added in whole(follower):
            chunks.setdefault(follower, []).append(added.table)
            go_on.wait()
            yield added

    monkeypatch.setattr(RecordFollower, "read", gated)
    monkeypatch.setattr("moot.deploy.service.live.live_run.STOP_S", 600.0)
    followed, owners = FollowedRuns(), [Ownership.acquire(RunFolder(each.path)) for each in (run, other)]
    with ExitStack() as page:
        lives = [await followed.follow(each, page) for each in (run, other)]
        await until(lambda: len(chunks) == 2)
        closing = asyncio.create_task(followed.close())
        try:
            await until(lambda: all(live.has_ended for live in lives))
            assert not closing.done(), "it waits for the reads, whose files are open"
        finally:
            go_on.set()
        await closing
    assert not any("verdicts" in tables for tables in chunks.values()), "the last table is not read any more"
    for owner in owners:
        owner.release()
    assert not open_files(run.path)
    assert not open_files(other.path)
