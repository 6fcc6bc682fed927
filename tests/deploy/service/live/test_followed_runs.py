"""Runs that pages follow: released when nobody looks, ended with a reason when the record cannot be read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from planted_records import PlantedSession
from server_client import parsed, until

from moot.deploy.service.live.live_run import LiveRun
from moot.deploy.service.view.actions import RecordedControl
from moot.deploy.service.view.catalogue import FoundRun
from moot.deploy.service.view.followed import FollowedRuns, OwnProcess


class OwnControl(RecordedControl):
    """Control of a run of this process."""

    async def beside(self) -> Mapping[str, Any]:
        """See `RunControl.beside`."""
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
    path = session.plant()
    return FoundRun(path.name, path)


def follow(run: FoundRun) -> FollowedRuns:
    """Follows a run as its own process does: it is under way until it is closed."""
    return FollowedRuns(OwnProcess(OwnControl(run.path), str(run.path)))


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


async def test_a_run_that_nobody_looks_at_is_released(run: FoundRun, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = follow(run)
    with ExitStack() as page:
        first = await followed.follow(run, page)
        await read(first, "figures")
        assert open_files(run.path)
        monkeypatch.setattr("moot.deploy.service.live.live_run.IDLE_S", 0.0)
    await until(lambda: first.has_ended and not open_files(run.path))
    monkeypatch.undo()
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
