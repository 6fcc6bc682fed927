"""The journal: torn tails, takeovers, who wins, commits, compaction and its crashes."""

from __future__ import annotations

import asyncio
import fcntl
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_writer import (
    abandon_journal,
    assert_whole,
    batch,
    debate_result,
    debate_rows,
    debated,
    labelled,
    open_writer,
    reply,
    run_forked,
    submit_case,
    write_journal,
)
from small_runs import sorted_rows

from moot.actors.record import compaction, tables
from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.debate_result import writer_of
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.schema import JOURNAL, TABLES
from moot.actors.record.segments import SegmentWriter, read_segment
from moot.actors.record.tables import read_table
from moot.protocols.errors import ConfigError, RecordError, RunFolderBusy
from moot.protocols.messages import Event

# --- segments and torn tails ---


def _event_batch(first: int, count: int) -> pa.RecordBatch:
    rows = [
        {"case_id": f"c{i}", "attempt": 0, "kind": "k", "path": "p", "data": "x" * (i % 50), "at": float(i)}
        for i in range(first, first + count)
    ]
    return pa.RecordBatch.from_pylist(rows, JOURNAL["events"])


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[tuple[int, int]]]:
    """A segment's bytes, and after how many bytes how many rows are whole."""
    path = tmp_path_factory.mktemp("segment") / "e0001-w0-r0000-events.arrows"
    writer, whole, rows = SegmentWriter(path, JOURNAL["events"]), [(0, 0)], 0
    for count in (1, 40, 3, 60):
        writer.append(_event_batch(rows, count))
        writer.sync()
        rows += count
        whole.append((writer.size, rows))
    writer.close()
    return path.read_bytes(), whole


@given(data=st.data())
def test_a_torn_tail_is_cut_wherever_it_tears(segment: tuple[bytes, list[tuple[int, int]]], data: Any) -> None:
    raw, whole = segment
    edges = [at + shift for at, _ in whole for shift in (-9, -8, -1, 0, 1, 7, 8, 9)]
    near = st.sampled_from([edge for edge in edges if 0 <= edge <= len(raw)])
    cut = data.draw(st.one_of(st.integers(0, len(raw)), near))
    expected = max(rows for at, rows in whole if at <= cut)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "segment"
        path.write_bytes(raw[:cut])
        torn = pa.Table.from_batches(list(read_segment(path)), JOURNAL["events"])
        path.write_bytes(raw)
        limited = pa.Table.from_batches(list(read_segment(path, cut)), JOURNAL["events"])
    assert torn["case_id"].to_pylist() == [f"c{i}" for i in range(expected)]
    assert limited == torn


@pytest.mark.parametrize("zeros", [1, 15, 16, 100, 600, 5000])
def test_zeros_that_a_lost_machine_leaves_are_a_torn_tail(
    zeros: int, segment: tuple[bytes, list[tuple[int, int]]], tmp_path: Path
) -> None:
    raw, whole = segment
    path = tmp_path / "segment"
    path.write_bytes(raw[: whole[-2][0]] + bytes(zeros))
    assert sum(batch.num_rows for batch in read_segment(path)) == whole[-2][1]
    path.write_bytes(raw[: whole[-2][0] + 1000] + bytes(len(raw) - whole[-2][0] - 1000))
    assert sum(batch.num_rows for batch in read_segment(path)) == whole[-2][1]


# --- owners ---


async def overtaken(folder: RunFolder, debates: int) -> tuple[RecordWriter, Ownership]:
    """A writer with this many debates, and the owner that has taken the folder over from it."""
    first = Ownership.acquire(folder)
    old = RecordWriter(folder.path, first.epoch)
    await old.load()
    await debated(old, range(debates))
    first.release()
    return old, Ownership.acquire(folder)


async def test_what_an_older_owner_appends_after_a_takeover_does_not_count(folder: RunFolder) -> None:
    old, second = await overtaken(folder, 2)
    new = RecordWriter(folder.path, second.epoch)
    await new.load()
    await debated(old, range(2, 4))
    late = {row["case_id"] for row in sorted_rows(folder.path, "verdicts")}
    assert late == {"c000", "c001"}
    await debated(new, range(2, 3))
    assert [row["case_id"] for row in sorted_rows(folder.path, "verdicts")] == ["c000", "c001", "c002"]
    turns = {row["reply_id"] for row in sorted_rows(folder.path, "turns")}
    assert len(turns) == 6
    await new.close()
    await abandon_journal(old)
    second.release()
    third = Ownership.acquire(folder)
    compact_leftovers(folder, third.epoch)
    assert [row["case_id"] for row in sorted_rows(folder.path, "verdicts")] == ["c000", "c001", "c002"]
    third.release()


async def test_a_segment_that_an_older_owner_begins_after_a_takeover_does_not_count(folder: RunFolder) -> None:
    old, second = await overtaken(folder, 0)
    await debated(old, range(1))
    await abandon_journal(old)
    assert sorted_rows(folder.path, "verdicts") == []
    second.release()


async def test_an_older_owner_replaces_nothing_after_a_takeover(folder: RunFolder) -> None:
    old, second = await overtaken(folder, 2)
    await debated(old, range(2, 4))
    with pytest.raises(RecordError, match="another process"):
        await old.close()
    assert folder.committed_parts() == []
    assert [row["case_id"] for row in sorted_rows(folder.path, "verdicts")] == ["c000", "c001"]
    second.release()


def test_a_second_live_owner_is_refused(folder: RunFolder) -> None:
    code = (
        "import sys, time; from moot.actors.record.folder import RunFolder; "
        "from moot.actors.record.ownership import Ownership; "
        "owner = Ownership.acquire(RunFolder(sys.argv[1])); print('mine', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(folder.path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "mine\n"
        with pytest.raises(RunFolderBusy, match=f"pid {holder.pid}"):
            Ownership.acquire(folder)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    owner = Ownership.acquire(folder)
    assert owner.epoch == 2
    owner.release()


def test_looking_whether_there_is_an_owner_keeps_none_from_starting(folder: RunFolder) -> None:
    Ownership.acquire(folder).release()
    with open(folder.path / "owner.lock", "rb") as looked_at, ThreadPoolExecutor(1) as thread:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        starting = thread.submit(Ownership.acquire, folder)
        wait([starting], timeout=0.03)
        fcntl.flock(looked_at, fcntl.LOCK_UN)
        owner = starting.result()
    assert owner.epoch == 2
    owner.release()


def test_what_a_segment_still_buffers_fails_only_once_on_a_full_disk(tmp_path: Path) -> None:
    """Closing the file writes it again, and hid the error of the run behind a traceback."""
    segment = SegmentWriter(tmp_path / "s", JOURNAL["events"])
    with open("/dev/full", "wb") as segment._file:
        segment.append(_event_batch(0, 1))
        with pytest.raises(OSError, match="No space left"):
            segment.flush()
        segment.abandon()


async def test_nothing_more_is_taken_once_a_row_could_not_be_written(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a run would continue to pay for what cannot be recorded."""

    def full(self: object, batch: pa.RecordBatch) -> None:
        raise OSError(28, "No space left on device")

    writer = RecordWriter(folder.path, 1)
    await writer.load()
    writer.add_events([("c000", 0, Event("asked", "a"), 1.0)])
    monkeypatch.setattr(SegmentWriter, "append", full)
    with pytest.raises(RecordError, match="No space left"):
        await writer.flush()
    with pytest.raises(RecordError, match="No space left"):
        writer.add_events([("c000", 0, Event("asked", "b"), 1.0)])
    with pytest.raises(RecordError, match="No space left"):
        writer.add_replies(batch(debate_rows("c000", "e1")))
    for segment in writer._journal._segments.values():
        segment.close()


# --- which row wins ---


async def test_an_ask_that_used_nothing_has_known_usage(folder: RunFolder) -> None:
    failed = {"outcome": "failed", "failure": "request", "prompt_tokens": None, "completion_tokens": None}
    rows = [reply("c000", "a", "refused", **failed), reply("c000", "b", "billed", unconfirmed_attempts=1, **failed)]
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0)])
        writer.add_replies(batch(rows[:1]))
        assert writer.progress.counts.paid.calls_without_usage == 0
        writer.add_replies(batch(rows[1:]))
        assert writer.progress.counts.paid.calls_without_usage == 1
    async with open_writer(folder) as again:
        assert again.progress.counts.paid.calls_without_usage == 1


async def test_the_first_row_of_a_key_wins_and_later_ones_are_dropped(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0)])
        writer.add_replies(batch([reply("c000", "a", "first", text="1"), reply("c000", "a", "second", text="2")]))
        writer.add_replies(batch([reply("c000", "a", "third", text="3"), reply("c000", "b", "other")]))
        writer.add_replies(batch([reply("c000", "a", "first", text="1")]))
        assert writer.progress.counts.paid.calls == 2
        assert writer.progress.counts.paid.tokens == 30
        assert await writer.commit([debate_result("c000", {"a": "first", "b": "other"})]) == [True]
        writer.add_replies(batch([reply("c000", "c", "after the verdict")]))
        assert writer.progress.counts.paid.calls == 2
        assert await writer.commit([debate_result("c000", {"a": "first"}, answer="No")]) == [True]
    assert [(row["path"], row["reply_id"]) for row in sorted_rows(folder.path, "turns")] == [
        ("a", "first"),
        ("b", "other"),
    ]
    assert [row["answer"] for row in sorted_rows(folder.path, "verdicts")] == ["Yes"]


async def test_the_first_row_wins_on_reading_too(folder: RunFolder) -> None:
    """Two segments that hold the same keys, as after a crash between writing and remembering."""
    owner = Ownership.acquire(folder)
    for roll, word in enumerate(("one", "two")):
        writer = SegmentWriter(folder.segment_path(owner.epoch, 0, roll, "replies"), JOURNAL["replies"])
        writer.append(batch([reply("c000", "a", word), reply("c000", f"only-{word}", word)]))
        writer.close()
    found = {row["path"]: row["reply_id"] for row in sorted_rows(folder.path, "turns")}
    assert found == {"a": "one", "only-one": "one", "only-two": "two"}
    compact_leftovers(folder, owner.epoch)
    assert {row["path"]: row["reply_id"] for row in sorted_rows(folder.path, "turns")} == found
    owner.release()


def test_rows_that_were_read_do_not_keep_their_segment(folder: RunFolder) -> None:
    owner = Ownership.acquire(folder)
    writer = SegmentWriter(folder.segment_path(owner.epoch, 0, 0, "replies"), JOURNAL["replies"])
    writer.append(batch([reply("c000", "a", "one"), reply("c000", "b", "two")]))
    writer.close()
    rows = read_table(folder, "turns", ["role"])
    assert rows.num_rows == 2
    for column in rows.columns:
        assert all(buffer is None or buffer.parent is None for chunk in column.chunks for buffer in chunk.buffers())
    owner.release()


async def test_the_first_vector_of_a_text_wins_on_reading(folder: RunFolder) -> None:
    owner = Ownership.acquire(folder)
    schema = JOURNAL["embeddings"]
    for roll in range(2):
        row = {"case_id": "c000", "attempt": 0, "encoder": "e", "text_hash": "h", "vector": [float(roll)]}
        writer = SegmentWriter(folder.segment_path(owner.epoch, 0, roll, "embeddings"), schema)
        writer.append(pa.RecordBatch.from_pylist([row], schema=schema))
        writer.close()
    assert [row["vector"] for row in read_table(folder, "embeddings").to_pylist()] == [[0.0]]
    owner.release()


async def test_a_superseding_row_replaces_and_the_old_one_stays_marked(folder: RunFolder) -> None:
    async with open_writer(folder) as writer:
        await writer.register([labelled(0)])
        writer.add_replies(batch([reply("c000", "a", "old", token=["x"], logprob=[-1.0])]))
        writer.add_replies(batch([reply("c000", "a", "wrong", supersedes="never seen")]))
        writer.add_replies(batch([reply("c000", "a", "new", supersedes="old", token=["y"], logprob=[-2.0])]))
        assert (await writer.history([("c000", 0)]))[0].replies[0].answered.reply_id == "new"
        assert await writer.commit([debate_result("c000", {"a": "new"})]) == [True]
    rows = {row["reply_id"]: row["superseded"] for row in sorted_rows(folder.path, "turns")}
    assert rows == {"old": True, "new": False}
    assert [row["reply_id"] for row in sorted_rows(folder.path, "tokens")] == ["new"]


async def test_the_last_of_an_event_counts_and_bookkeeping_is_all_kept(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        for number in range(3):
            writer.add_events([("c000", 0, Event("signal", "p", {"n": number}), 1.0 + number)])
            writer.add_events([("c000", 0, Event("signal", "p", {"n": number}), 1.5 + number)])
            writer.add_events([("c000", 0, Event("asked", "p"), 1.0 + number)])
    async with open_writer(folder) as writer:
        writer.add_events([("c000", 0, Event("signal", "p", {"n": 9}), 9.0)])
        writer.add_events([("c000", 0, Event("asked", "p"), 9.0)])
        writer.add_events([("c000", 0, Event("asked", "p"), 9.0)])  # the same one, delivered twice
    rows = [(row["kind"], row["data"]) for row in sorted_rows(folder.path, "events")]
    assert rows == [("asked", "{}")] * 4 + [("signal", '{"n":9}')]


# --- verdicts ---


async def test_a_dropped_row_leaves_what_its_attempts_may_have_cost(
    folder: RunFolder,
) -> None:
    told = {"unconfirmed_attempts": 1, "unconfirmed_tokens_max": 700, "at": 3.0}
    async with open_writer(folder) as writer:
        writer.add_replies(batch([reply("c000", "p", "first", **told)]))
        writer.add_replies(batch([reply("c000", "p", "first", **told)]))
        writer.add_replies(batch([reply("c000", "p", "second", **told)]))
        writer.add_replies(batch([reply("c000", "p", "second", **told)]))
        writer.add_replies(batch([reply("c000", "p", "third")]))
    (event,) = sorted_rows(folder.path, "events")
    data = {"attempts": 1, "model": "simulated", "tokens_at_most": 700, "why": "duplicate"}
    assert (event["kind"], event["path"], json.loads(event["data"])) == ("abandoned", "p", data)


async def test_a_verdict_waits_for_its_replies(folder: RunFolder) -> None:
    async with open_writer(folder) as writer:
        await writer.register([labelled(0)])
        commit = asyncio.create_task(writer.commit([debate_result("c000", {"a": "1", "b": "2"})]))
        await asyncio.sleep(0.05)
        writer.add_replies(batch([reply("c000", "a", "1")]))
        await asyncio.sleep(0.05)
        assert not commit.done()
        writer.add_replies(batch([reply("c000", "b", "2")]))
        assert await commit == [True]


async def test_a_verdict_is_refused_without_its_replies_and_taken_with_them(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.actors.record.deduplicator._PATIENCE_S", 0.1)
    async with open_writer(folder) as writer:
        await writer.register([labelled(0), labelled(1)])
        writer.add_replies(batch([reply("c000", "a", "another life")]))
        assert await writer.commit([debate_result("c000", {"a": "1"}), debate_result("c001", {})]) == [False, True]
        assert await writer.commit([debate_result("c000", {"a": "another life", "b": "2"})]) == [False]
        assert writer.progress.counts.finished == 1
        writer.add_replies(batch([reply("c000", "b", "2")]))
        assert await writer.commit([debate_result("c000", {"a": "another life", "b": "2"})]) == [True]
    assert len(sorted_rows(folder.path, "verdicts")) == 2


async def test_a_verdict_waits_until_its_gold_label_is_known(folder: RunFolder) -> None:
    async with open_writer(folder) as writer:
        commit = asyncio.create_task(writer.commit([debate_result("c000", {})]))
        await asyncio.sleep(0.05)
        assert not commit.done()
        await writer.register([labelled(0)])
        assert await commit == [True]
    assert [(row["gold"], row["correct"]) for row in sorted_rows(folder.path, "verdicts")] == [("Yes", True)]


async def test_a_failed_case_is_neither_right_nor_wrong(folder: RunFolder) -> None:
    async with open_writer(folder) as writer:
        await writer.register([labelled(0)])
        await writer.commit([debate_result("c000", {}, answer=None, how="failed", failure="bug", error="oh")])
        counts = writer.progress.counts
        assert (counts.failed, counts.finished, counts.scored) == (1, 0, 0)
    row = sorted_rows(folder.path, "verdicts")[0]
    assert (row["failed"], row["failure"], row["correct"], row["gold"]) == (True, "bug", None, "Yes")


# --- restarts and several writers ---


async def test_a_restarted_recorder_knows_what_it_wrote(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await debated(writer, range(3))
        await writer.register([labelled(7)])
        writer.add_replies(batch([reply("c007", "a", "kept")]))
        counts = writer.progress.counts
    async with open_writer(folder) as again:
        assert again.progress.counts == counts
        again.add_replies(batch([reply("c007", "a", "late"), reply("c001", "a", "late too")]))
        assert again.progress.counts == counts
        await again.register([labelled(7)])
        assert await again.commit([debate_result("c007", {"a": "kept"})]) == [True]
    assert len(sorted_rows(folder.path, "cases")) == 4
    assert len({row["reply_id"] for row in sorted_rows(folder.path, "turns")}) == 7


async def test_writers_share_a_folder_by_hash(folder: RunFolder) -> None:
    owner = Ownership.acquire(folder)
    writers = [RecordWriter(folder.path, owner.epoch, number, 3) for number in range(3)]
    for writer in writers:
        await writer.load()
    for number, writer in enumerate(writers):
        mine = [i for i in range(30) if writer_of(f"c{i:03d}", 3) == number]
        assert all(await writer.commit([debate_result(f"c{i:03d}", await submit_case(writer, i)) for i in mine]))
    assert min(writer.progress.counts.finished for writer in writers) > 0
    for writer in writers:
        await writer.close()
    owner.release()
    assert [row["case_id"] for row in sorted_rows(folder.path, "verdicts")] == [f"c{i:03d}" for i in range(30)]


async def test_a_history_is_whole_however_fast_segments_become_parts(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_writer(folder) as writer:
        await debated(writer, range(2))

        def rolled(path: Path, valid: int | None, least: int) -> Iterator[pa.RecordBatch]:
            writer._journal._compact()
            number = len(folder.committed_parts())
            writer._journal._append({"replies": [batch([reply("c009", f"p{number}", f"r{number}")])]})
            return read_segment(path, valid, least)

        monkeypatch.setattr(tables, "read_segment", rolled)
        found = await writer.history([("c000", 0), ("c001", 0)])
        monkeypatch.undo()
    assert [[said.path for said in history.replies] for history in found] == [["a", "j/judge/0"]] * 2
    assert len(folder.committed_parts()) == 2


# --- compaction ---


async def test_compaction_changes_nothing_that_is_read(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await debated(writer, range(10))
        writer.add_vectors("c001", 0, "e", [("h", b"\0\0\x80?" * 4)])
        await writer.flush()
        before = {table: sorted_rows(folder.path, table) for table in TABLES}
        assert list(folder.segments())
        await writer.close()
        assert not list(folder.segments())
        after = {table: sorted_rows(folder.path, table) for table in TABLES}
    assert before == after
    assert all(before.values())
    assert not list(folder.journal.glob("*.arrows"))


async def test_leftovers_for_which_there_is_no_room_stay_as_they_are(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_writer(folder, compact=False) as writer:
        await debated(writer, range(3))

    def full(self: object, content: pa.Table) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compaction._PartWriter, "write", full)
    with pytest.raises(RecordError, match="No space left"):
        compact_leftovers(folder, 2)
    assert (len(sorted_rows(folder.path, "verdicts")), folder.committed_parts()) == (3, [])


async def test_a_part_is_written_once_and_named_where_it_cannot_be_read(folder: RunFolder) -> None:
    async with open_writer(folder) as writer:
        await debated(writer, range(2))
    with pytest.raises(RecordError, match="e0001-w0-r0000 is there already"):
        compaction.compact(folder, "e0001-w0-r0000", {})
    part = folder.path / "turns" / "e0001-w0-r0000.parquet"
    for harm in (lambda: part.write_bytes(b"PAR1 no more"), part.unlink):
        harm()
        with pytest.raises(RecordError, match=r"turns/e0001-w0-r0000\.parquet"):
            read_table(folder, "turns")


FAILPOINTS = [
    pytest.param(f"{name}:{hit}", marks=[] if hit == hits[0] else pytest.mark.slow)
    for name, hits in {
        "compaction.part_written": (4, 1, 6),
        "compaction.part_renamed": (4, 1, 6),
        "compaction.manifest_written": (1,),
        "segment.torn": (9, 1, 2, 23),
        "writer.flushed": (5, 1),
        "writer.buffered": (5, 1),
    }.items()
    for hit in hits
]


LEFTOVERS = "writer.flushed:6,compaction.part_written:2,compaction.part_renamed:5,compaction.manifest_written:1"
"""The next owner crashes, too, while it compacts what the first has left."""


@pytest.mark.parametrize("failpoints", [*FAILPOINTS, LEFTOVERS])
def test_a_crash_anywhere_leaves_a_whole_record(folder: RunFolder, failpoints: str) -> None:
    debates, crashes = 6, failpoints.count(":")
    marks = folder.path.parent / "marks"
    marks.mkdir()
    paid: set[str] = set()
    for incarnation in range(crashes + 1):
        ended = run_forked(
            write_journal, folder.path, debates, MOOT_FAILPOINTS=failpoints, MOOT_FAILPOINT_DIR=str(marks)
        )
        assert ended.returncode == (-signal.SIGKILL if incarnation < crashes else 0), ended.stderr
        durable = set(ended.stdout.split())
        assert ("closed" in durable) == (incarnation == crashes)
        found = {row["case_id"] for row in sorted_rows(folder.path, "verdicts")}
        assert durable - {"closed"} <= found
        assert_whole(folder.path)
        before, paid = paid, {row["reply_id"] for row in sorted_rows(folder.path, "turns")}
        assert before <= paid
    assert found == {f"c{i:03d}" for i in range(debates)}
    assert len(paid) == 2 * debates
    assert not list(folder.path.rglob("*.tmp"))
    assert not list(folder.journal.glob("*.arrows"))


# --- readers ---


def test_reading_what_is_no_run_is_an_error(tmp_path: Path, folder: RunFolder) -> None:
    with pytest.raises(RecordError, match="no run"):
        read_table(tmp_path / "nowhere", "turns")
    with pytest.raises(ConfigError, match="did you mean 'turns'"):
        read_table(folder, "turn")
    assert read_table(folder, "turns").num_rows == 0
