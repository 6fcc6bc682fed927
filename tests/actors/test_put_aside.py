"""Debates put aside without a verdict: their writer forgets them, and goes on with them when they come again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from journal_writer import batch, closing, debate_rows, labelled, reply
from signals_from_record import assert_same_signals

from moot.actors.record import put_aside
from moot.actors.record.folder import Ownership, RunFolder
from moot.actors.record.recorder import Recorder
from moot.actors.record.signal_recovery import recover_signals
from moot.actors.record.tables import read_table
from moot.actors.remote.archive import RayArchive
from moot.actors.remote.peers import Peer
from moot.actors.remote.runtime import RaySeat
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RecordError
from moot.protocols.messages import Event

KEPT = 3


@asynccontextmanager
async def recording(folder: Path) -> AsyncIterator[Recorder]:
    (folder / "run.yaml").write_text("test: true\n")
    owner = Ownership.take(RunFolder(folder))
    made = Recorder(folder, owner.epoch)
    made._registry._aside = put_aside.PutAside(KEPT)
    await made.load()
    yield made
    await made.close()
    owner.release()


def assessment(path: str = "a") -> Event:
    told: dict[str, Any] = {"reply": path, "role": "constructor", "domain": "m", "scores": {"x": 2.0}, "flag": 0.0}
    return Event("assessment", f"assessment/{path}", told | {"quality": 7.0})


async def begin(made: Recorder, number: int, count: int = 0) -> dict[str, str]:
    """Register a case and take its first reply, judged; gives what its verdict would rest on so far."""
    await made.register([labelled(number)], count)
    (first, _) = debate_rows(f"c{number:03d}", "e1")
    made.add_replies(batch([first]))
    made.add_events([(first["case_id"], 0, assessment(), 1.0)])
    return {first["path"]: first["reply_id"]}


def in_mind(made: Recorder) -> tuple[int, int, int]:
    """How many cases and debates are kept in mind, by who keeps them."""
    return len(made._registry._right), len(made._arrivals._open), len(made.signals._debates)


async def test_what_is_kept_in_mind_of_withdrawn_debates_is_bounded(tmp_path: Path) -> None:
    async with recording(tmp_path) as made:
        for number in range(20):
            await begin(made, number)
            made.forget([(0, f"c{number:03d}")])
        assert in_mind(made) == (KEPT,) * 3
        for number in range(20):  # of an ask that was under way when its debate was withdrawn
            made.add_replies(batch([reply(f"c{number:03d}", "late", f"late{number}")]))
        assert max(in_mind(made)) <= KEPT
    async with recording(tmp_path) as again:
        await begin(again, 20)
        again.forget([(0, "c020")])
        assert max(in_mind(again)) <= KEPT


@pytest.mark.parametrize("owners", [1, 2])
async def test_a_forgotten_debate_goes_on_where_it_was(tmp_path: Path, owners: int) -> None:
    """Its rows lie in the journal's segments, or in a part of an earlier owner."""
    cases = [f"c{number:03d}" for number in range(5)]
    if owners == 2:
        async with recording(tmp_path) as made:
            begun = [await begin(made, number) for number in range(5)]
    async with recording(tmp_path) as made:
        if owners == 1:
            begun = [await begin(made, number) for number in range(5)]
        made.forget([(0, case_id) for case_id in cases])
        assert made._arrivals.is_forgotten(("c000", 0))
        made.add_replies(batch([reply("c000", "late", "l"), reply("c000", "a", "paid twice")]))
        await made.register([labelled(0)])
        rows = debate_rows("c000", "e1")
        made.add_replies(batch(rows))  # of which the first has come before
        made.add_events([("c000", 0, assessment(), 2.0)])
        (history,) = await made.history([("c000", 0)])
        told = {each.path: each.answered.reply_id for each in history.replies}
        assert told == begun[0] | {"late": "l", rows[1]["path"]: rows[1]["reply_id"]}
        assert await made.commit([closing("c000", told)]) == [True]
        assert (await made.endings(["c000"]))["c000"].closing.answer == "Yes"
        live = await made.signals.signals()
        assert live.replies == 1
    recorded = recover_signals(RunFolder(tmp_path), lambda _: True)
    assert_same_signals(live, await recorded.signals())
    assert len(read_table(tmp_path, "events").to_pylist()) == 5


async def test_a_case_that_was_registered_since_is_not_forgotten(tmp_path: Path) -> None:
    async with recording(tmp_path) as made:
        begun = await begin(made, 0, count=1)
        await made.register([labelled(0)], 3)
        made.forget([(2, "c000")])  # late
        for number in range(1, 6):
            await begin(made, number, count=4)
            made.forget([(4, f"c{number:03d}")])
        assert await made.commit([closing("c000", begun)]) == [True]


async def test_the_engine_tells_each_writer_which_cases_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.remote.archive._FORGET_EACH_S", 0.0)
    told = asyncio.Queue[tuple[str, Any]]()

    class Writer(Peer):
        async def call(self, method: str, *args: Any) -> Any:
            told.put_nowait((method, args))

        async def watch(self, lost: Callable[[], Any]) -> None:
            await asyncio.Event().wait()

    archive = RayArchive([Writer("writer", "here")])
    await archive.register([labelled(0), labelled(1)])
    archive.forget(["c000"])
    assert (await told.get())[1][1] == 1
    assert await told.get() == ("forget", ([(1, "c000")],))
    archive.forget(["c000"])  # it was withdrawn before the writer knew it
    assert await told.get() == ("forget", ([(1, "c000")],))
    await archive._lost(0)
    method, (raw, number) = await told.get()
    assert (method, number) == ("reopen", 2)
    assert msgspec.msgpack.decode(raw, type=list[LabelledCase]) == [labelled(1)]
    await archive.unwatch()


async def test_a_writer_that_is_watched_no_longer_ends_the_run() -> None:
    class Writer(Peer):
        async def watch(self, lost: Callable[[], Any]) -> None:
            raise RecordError("the journal cannot be read")

    class Idle(Peer):
        async def call(self, method: str, *args: Any) -> Any:
            raise AssertionError("nothing more is handed over")

    archive = RayArchive([Writer("writer", "here")])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(RecordError, match="cannot be read"):
        await RaySeat(Idle("moderator", "here"), archive).exchange([], wait=False)
    await archive.unwatch()


async def test_nothing_is_forgotten_before_a_lost_writer_is_told_what_is_open(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("test: true\n")
    owner = Ownership.take(RunFolder(tmp_path))
    lives = []
    for _ in range(2):
        life = Recorder(tmp_path, owner.epoch)
        life._registry._aside = put_aside.PutAside(KEPT)
        await life.load()
        lives.append(life)
        if len(lives) == 1:
            for number in range(9):
                await begin(life, number)
            await life.flush()
            for segment in life._journal._segments.values():
                segment.close()
    _, second = lives
    await second.register([labelled(9)])
    second.forget([(0, "c009")])
    second.add_replies(batch(debate_rows("c000", "e1")[:1]))  # its writer was lost before it had answered
    await second.reopen([labelled(0), labelled(1)], 1)
    second.forget([])
    assert len(second._arrivals._open) == 2 + KEPT - 1
    await second.close()
    owner.release()
    assert len(read_table(tmp_path, "turns").to_pylist()) == second.progress.counts.replies == 9
