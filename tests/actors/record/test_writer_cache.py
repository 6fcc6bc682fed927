"""Writer cache: evicted debates resume where they were, and the rows of old cases are read from the record."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_writer import (
    assert_same_signals,
    batch,
    debate_result,
    debate_rows,
    debated,
    labelled,
    new_run,
    open_writer,
    reply,
)

from moot.actors.models.usage_totals import UsageTotals
from moot.actors.record import compaction, journal, record_writer, recovery, tables, writer_cache
from moot.actors.record.debate_result import WITHDRAWN, DebateEnd, DebateResult
from moot.actors.record.folder import RunFolder
from moot.actors.record.parts import read_groups
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.recovery import recorded_results
from moot.actors.record.rows import INVALID_SUFFIX, SHARED
from moot.actors.record.schema import CANCELLED, RESUMED
from moot.actors.record.signal_recovery import recover_signals
from moot.actors.record.tables import read_table
from moot.actors.record.writer_cache import WriterCache
from moot.actors.remote.peers import Peer
from moot.actors.remote.runtime import RayModeratorHandle
from moot.actors.remote.writer_pool import RayWriterPool
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RecordError
from moot.protocols.messages import Event

CASES = 6


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "_COMMIT_S", 0.01)
        yield


async def begin(made: RecordWriter, number: int, count: int = 0) -> dict[str, str]:
    """Register a case and take its first reply, judged; gives what its verdict would rest on so far."""
    await made.register([labelled(number)], count)
    (first, _) = debate_rows(f"c{number:03d}", "e1")
    made.add_replies(batch([first]))
    made.add_events([(first["case_id"], 0, assessment(), 1.0)])
    return {first["path"]: first["reply_id"]}


def assessment() -> Event:
    told: dict[str, Any] = {"reply": "a", "role": "constructor", "domain": "m", "scores": {"x": 2.0}, "flag": 0.0}
    return Event("assessment", "assessment/a", told | {"quality": 7.0})


# --- evicted debates ---


async def test_nothing_is_kept_in_memory_of_withdrawn_debates(folder: RunFolder) -> None:
    for incarnation in range(2):  # in a second one, the debates of the first are open, too
        async with open_writer(folder) as made:
            for number in range(20):
                await begin(made, number)
                made.end([(0, DebateEnd(f"c{number:03d}", 0, WITHDRAWN))])
            for number in range(20):  # of an ask that was under way when its debate was withdrawn
                made.add_replies(batch([reply(f"c{number:03d}", "late", f"late{incarnation}-{number}")]))
            assert (len(made._arrivals._open), len(made._arrivals._ground_truth)) == (0, 0)
    assert len(read_table(folder, "turns").to_pylist()) == 40


@pytest.mark.parametrize("incarnations", [1, 2])
async def test_an_evicted_debate_resumes_where_it_was(folder: RunFolder, incarnations: int) -> None:
    """Whether this incarnation of the writer has evicted it, or an earlier one has recorded it."""
    if incarnations == 2:
        async with open_writer(folder) as made:
            begun = [await begin(made, number) for number in range(5)]
    async with open_writer(folder) as made:
        if incarnations == 1:
            begun = [await begin(made, number) for number in range(5)]
        made.end([(0, DebateEnd(f"c{number:03d}", 0, WITHDRAWN)) for number in range(5)])
        assert ("c000", 0) not in made._arrivals._open
        made.add_replies(batch([reply("c000", "late", "l"), reply("c000", "a", "paid twice")]))
        await made.register([labelled(0)])
        rows = debate_rows("c000", "e1")
        made.add_replies(batch(rows))  # of which the first has come before
        made.add_events([("c000", 0, assessment(), 2.0)])
        (history,) = await made.history([("c000", 0)])
        told = {each.path: each.answered.reply_id for each in history.replies}
        assert told == begun[0] | {"late": "l", rows[1]["path"]: rows[1]["reply_id"]}
        assert await made.commit([debate_result("c000", told)]) == [True]
        assert (await made.results(["c000"]))["c000"].usage == {"simulated": UsageTotals(30, 15, 3)}
        live = await made.signals.signals()
        assert live.replies == 1
    recorded = recover_signals(folder, lambda _: True)
    assert_same_signals(live, recorded)
    assert live.group("m", "constructor").without_logprobs == 0
    kinds = Counter(row["kind"] for row in read_table(folder, "events").to_pylist())
    assert kinds == {"assessment": 5, CANCELLED: 5, RESUMED: 1}


async def test_a_cancelled_debate_takes_no_verdict_until_its_case_is_registered_again(folder: RunFolder) -> None:
    ended = [(0, DebateEnd("c000", 0, WITHDRAWN))]
    async with open_writer(folder, compact=False) as made:
        replies = await begin(made, 0)
        made.end(ended)
        made.end(ended)  # sent twice
        assert await made.commit([debate_result("c000", replies)]) == [False]
    async with open_writer(folder) as made:  # another incarnation knows it, too
        made.end(ended)
        assert await made.commit([debate_result("c000", replies)]) == [False]
        await made.register([labelled(0)])
        assert await made.commit([debate_result("c000", replies)]) == [True]
        made.end(ended)  # late
        assert (made._arrivals._open, made._arrivals._ground_truth) == ({}, {})
    kinds = [row["kind"] for row in read_table(folder, "events").to_pylist()]
    assert sorted(kinds) == sorted(["assessment", CANCELLED, RESUMED])


async def test_a_shared_reply_that_nobody_has_paid_for_leaves_nothing(folder: RunFolder) -> None:
    async with open_writer(folder) as made:
        for number in range(5):
            assert (await made.acquire_lease(f"{SHARED}-{number}", 1.0))[0]
            assert not await made.has_shared(f"{SHARED}-{number}")
            made.leases.release(f"{SHARED}-{number}")
        assert (made._arrivals._open, made.leases._leases) == ({}, {})


async def test_a_case_that_was_registered_since_is_not_forgotten(folder: RunFolder) -> None:
    async with open_writer(folder) as made:
        begun = await begin(made, 0, count=1)
        await made.register([labelled(0)], 3)
        made.end([(2, DebateEnd("c000", 0, WITHDRAWN))])  # late
        for number in range(1, 6):
            await begin(made, number, count=4)
            made.end([(4, DebateEnd(f"c{number:03d}", 0))])
        assert await made.commit([debate_result("c000", begun)]) == [True]


async def test_the_engine_notifies_each_writer_of_ended_debates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.remote.writer_pool._END_EACH_S", 0.0)
    told = asyncio.Queue[tuple[str, Any]]()

    class Writer(Peer):
        async def call(self, method: str, *args: Any) -> Any:
            told.put_nowait((method, args))

        async def watch(self, lost: Callable[[], Any]) -> None:
            await asyncio.Event().wait()

    writers = RayWriterPool([Writer("writer", "here")])
    await writers.register([labelled(0), labelled(1)])
    end = DebateEnd("c000", 0, WITHDRAWN)
    writers.end([end])
    assert (await told.get())[1][1] == 1
    method, (raw,) = await told.get()
    assert (method, msgspec.msgpack.decode(raw, type=list[tuple[int, DebateEnd]])) == ("end", [(1, end)])
    await writers._lost(0)
    method, (raw, number) = await told.get()
    assert (method, number) == ("register", 2)
    assert msgspec.msgpack.decode(raw, type=list[LabelledCase]) == [labelled(1)]
    await writers.stop_watching()


async def test_a_writer_that_is_watched_no_longer_ends_the_run() -> None:
    class Writer(Peer):
        async def watch(self, lost: Callable[[], Any]) -> None:
            raise RecordError("the journal cannot be read")

    class Idle(Peer):
        async def call(self, method: str, *args: Any) -> Any:
            raise AssertionError("nothing more is handed over")

    writers = RayWriterPool([Writer("writer", "here")])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(RecordError, match="cannot be read"):
        await RayModeratorHandle(Idle("moderator", "here"), writers).exchange([], wait=False)
    await writers.stop_watching()


# --- how debates ended ---


@settings(max_examples=12)
@given(
    incarnations=st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from(["m", "n", ""]),
            st.none() | st.integers(0, 9),
            st.sampled_from(["ok", "reasked", "refused"]),
        ),
        min_size=1,
        max_size=6,
    ),
    swapped=st.booleans(),
    repeated=st.booleans(),
)
def test_what_is_known_is_what_is_recorded(
    incarnations: list[tuple[str, str, int | None, str]], swapped: bool, repeated: bool
) -> None:
    """Replies that supersede others, with or without an unreadable first one, in whatever order they come; an ask that
    was refused has used nothing, which is known."""
    rows, current = list[dict[str, Any]](), dict[str, str]()
    for number, (path, model, tokens, outcome) in enumerate(incarnations):
        before, now = current.get(path), f"{path}{number}"
        used: dict[str, Any] = {"prompt_tokens": tokens}
        if outcome == "refused":
            used = {"outcome": "failed", "unconfirmed_attempts": 0, "prompt_tokens": None, "completion_tokens": None}
        made = [reply("c000", path, now, supersedes=before, model=model or None, **used)]
        if outcome == "reasked":
            gone = before + INVALID_SUFFIX if before else None
            suffixed = path + INVALID_SUFFIX, now + INVALID_SUFFIX
            made.insert(0, reply("c000", *suffixed, supersedes=gone, model="m", outcome="invalid"))
        rows += reversed(made) if swapped else made
        current[path] = now

    async def told(place: Path) -> None:
        folder = new_run(place)
        async with open_writer(folder, compact=False) as made:
            await made.register([labelled(0)])
            for row in rows:
                made.add_replies(batch([row, row] if repeated else [row]))
            fields: dict[str, Any] = {"distribution": {"Yes": 0.1, "No": 0.9}, "flags": ("x",), "wall_s": 0.3}
            await made.commit([debate_result("c000", current, payload={"of": [1, {"a": None}]}, **fields)])
            known = made._memory.results(["c000"])
            assert known == await made.results(["c000"]) == recorded_results(folder, ["c000"], WriterCache())

    with tempfile.TemporaryDirectory() as place:
        asyncio.run(told(Path(place)))


async def test_the_last_results_are_cached(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(place: RunFolder, case_ids: list[str], memory: WriterCache) -> dict[str, DebateResult]:
        raise AssertionError(f"the record is read for {case_ids}")

    async with open_writer(folder) as made:
        await debated(made, [0])
        monkeypatch.setattr(record_writer, "recorded_results", refuse)
        assert (await made.results(["c000"]))["c000"].answer == "Yes"
        with pytest.raises(AssertionError, match="is read for"):
            await made.results(["c009"])


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_cache, "_MOST_BYTES", 500)
    known = WriterCache(most_results=2)
    for number in (0, 1, 2, 1, 3):
        known.put_result(debate_result(f"c{number}", {}))
    known.put_result(debate_result("c4", {}, payload={"text": "x" * 600}))
    assert known.results([f"c{number}" for number in range(5)]).keys() == {"c1", "c3"}
    known.put_result(debate_result("c3", {}, attempt=1))
    assert known.results(["c3"])["c3"].attempt == 1


# --- reading back what is in parts, beside what is written ---


@pytest.fixture
async def made(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RecordWriter]:
    """A writer of a record with a part of an earlier owner, where every debate has row groups of its own."""
    monkeypatch.setattr(compaction, "_CHUNK_BYTES", 1)
    async with open_writer(folder) as first:
        await debated(first, range(CASES))
    async with open_writer(folder) as second:
        yield second


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many row groups each reading of a part took."""
    counted: list[int] = []

    def counting(file: Path, groups: list[int], columns: list[str]) -> pa.Table:
        counted.append(len(groups))
        return read_groups(file, groups, columns)

    monkeypatch.setattr(tables, "read_groups", counting)
    return counted


async def test_of_an_old_case_its_own_rows_are_read(made: RecordWriter, read: list[int]) -> None:
    found = await made.results(["c003", "nobody"])
    assert found.keys() == {"c003"}
    assert found["c003"].usage == {"simulated": UsageTotals(20, 10, 2)}
    assert read == [1, 1]  # of verdicts, of turns
    one, other = await made.history([("c003", 0), ("nobody", 0)])
    assert [reply.path for reply in one.replies] == ["a", "j/judge/0"]
    assert other.replies == []
    assert read == [1, 1, 1]


async def test_verdicts_become_durable_while_the_record_is_read(
    made: RecordWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(*args: Any) -> Any:
        reading.set()
        assert go_on.wait(30)
        return read_table(*args)

    monkeypatch.setattr(recovery, "read_table", slow)
    await made.register([labelled(CASES)])
    made.add_replies(batch(debate_rows(f"c{CASES:03d}", "e2")))
    asked = asyncio.create_task(made.history([(f"c{CASES:03d}", 0), ("c001", 0)]))
    assert await asyncio.to_thread(reading.wait, 30)
    try:
        async with asyncio.timeout(10):
            await debated(made, [CASES + 1])
            await made._journal.close()  # what lay in segments is in a part now
    finally:
        go_on.set()
    assert [len(history.replies) for history in await asked] == [2, 2]
