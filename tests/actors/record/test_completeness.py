"""What is complete, and what is not: flush logs, lengths at a takeover, lost parts, and readers of a live run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from journal_writer import abandon_journal, batch, debate_result, debated, labelled, new_run, open_writer, reply
from small_runs import sorted_rows
from structlog.testing import capture_logs

from moot.actors.record import completeness, flush_log
from moot.actors.record.completeness import check_complete
from moot.actors.record.files import encode_file
from moot.actors.record.folder import RunFolder
from moot.actors.record.frames import frame_header, whole_frames
from moot.actors.record.ownership import Ownership
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.roll_files import decode_part
from moot.actors.record.salvage import salvage
from moot.actors.record.segments import _content
from moot.actors.record.tables import read_table
from moot.actors.record.verify import verify
from moot.protocols.errors import RecordError
from moot.protocols.messages import Event


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A record of two debates, in the segments of a killed process."""
    made = new_run(tmp_path / "run")
    asyncio.run(_killed(made))
    return made


async def _killed(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await debated(writer, [0])
        writer._journal._synced_at = 0.0  # the next flush is synced
        await debated(writer, [1])


def segment(folder: RunFolder, stream: str) -> Path:
    """The segment of a stream."""
    (found,) = folder.journal.glob(f"*-{stream}.arrows")
    return found


def cut(path: Path, frames: int) -> None:
    """Cut the last frames of a file."""
    ends = [frame.at for frame in whole_frames(_content(path, None))]
    path.write_bytes(path.read_bytes()[: ends[-frames]])


def verdicts(folder: RunFolder) -> list[str]:
    """Ids of the cases with a verdict."""
    return [row["case_id"] for row in sorted_rows(folder.path, "verdicts")]


def test_what_a_process_had_not_flushed_when_it_was_killed_is_no_loss(folder: RunFolder) -> None:
    (log,) = folder.parts.glob("*.flushes")
    cut(log, 1)
    log.write_bytes(log.read_bytes() + b"moot\x01\x02")
    with open(segment(folder, "events"), "ab") as torn:
        torn.write(b"moot\x10\x00\x00\x00torn")
    assert (verdicts(folder), verify(folder).faults) == (["c000", "c001"], [])
    asyncio.run(_killed_more(folder))
    assert (verdicts(folder), verify(folder).faults) == (["c000", "c001", "c002"], [])


async def _killed_more(folder: RunFolder) -> None:
    async with open_writer(folder) as writer:
        await debated(writer, [2])


async def test_what_a_writer_adds_to_a_torn_tail_after_a_takeover_does_not_count(folder: RunFolder) -> None:
    owner = Ownership.acquire(folder)
    old = RecordWriter(folder.path, owner.epoch)
    await old.load()
    await debated(old, [2])
    events = segment_of(folder, owner.epoch, "events")
    whole = events.read_bytes()
    with open(events, "ab") as torn:
        torn.write(b"moot")
    owner.release()
    second = Ownership.acquire(folder)
    events.write_bytes(whole)
    await debated(old, [3])
    assert verdicts(folder) == ["c000", "c001", "c002"]
    assert verify(folder).faults == []
    second.release()
    await abandon_journal(old)


def segment_of(folder: RunFolder, epoch: int, stream: str) -> Path:
    """The segment of a stream of an owner's first roll."""
    return folder.segment_path(epoch, 0, 0, stream)


@pytest.fixture
def restarted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes this another start of the machine."""
    return lambda: monkeypatch.setattr(flush_log, "boot_id", lambda: "another start")


def test_a_power_failure_may_take_what_was_not_synced_and_a_resume_says_so(
    folder: RunFolder, restarted: Callable[[], None]
) -> None:
    asyncio.run(_unsynced(folder))
    lost = segment_of(folder, 2, "verdicts")
    lost.write_bytes(bytes(lost.stat().st_size))
    with pytest.raises(RecordError, match=lost.name):
        verdicts(folder)
    restarted()
    assert verdicts(folder) == ["c000", "c001"]
    with capture_logs() as logged:
        Ownership.acquire(folder).release()
    assert [entry["segment"] for entry in logged if "lost_bytes" in entry] == [lost.name]
    assert (verdicts(folder), verify(folder).faults) == (["c000", "c001"], [])


async def _unsynced(folder: RunFolder) -> None:
    async with open_writer(folder, compact=False) as writer:
        await debated(writer, [2])


def test_a_power_failure_takes_nothing_that_was_synced(folder: RunFolder, restarted: Callable[[], None]) -> None:
    restarted()
    cut(segment(folder, "replies"), 1)
    with pytest.raises(RecordError, match="replies"):
        Ownership.acquire(folder)
    assert len(folder.epochs()) == 1


def test_a_record_that_lost_a_file_gets_no_owner(folder: RunFolder) -> None:
    cut(segment(folder, "verdicts"), 1)
    for _ in range(2):
        with pytest.raises(RecordError, match="are left of"):
            Ownership.acquire(folder)
    salvage(folder)
    Ownership.acquire(folder).release()


@pytest.mark.parametrize("files", [False, True])
@pytest.mark.parametrize("successor", [False, True])
def test_a_lost_part_is_noticed_with_and_without_its_files(tmp_path: Path, files: bool, successor: bool) -> None:
    folder = new_run(tmp_path / "run")
    asyncio.run(_killed_more(folder))
    if successor:
        Ownership.acquire(folder).release()
    (listed,) = folder.parts.glob("*.json")
    listed.unlink()
    for file in folder.path.glob("*/*.parquet") if files else ():
        file.unlink()
    with pytest.raises(RecordError, match=listed.stem):
        read_table(folder, "cases")
    assert any(listed.stem in fault for fault in verify(folder).faults)
    salvage(folder)
    assert (verdicts(folder), verify(folder).faults) == ([] if files else ["c002"], [])


def test_an_entry_of_a_flush_log_that_no_writer_made_is_skipped(folder: RunFolder) -> None:
    (log,) = folder.parts.glob("*.flushes")
    was = flush_log.last_flush(log)
    with open(log, "ab") as file:
        for payload in (b"\x93\xa1\xff\x80\x80", b"\x91" * 2000):  # no UTF-8, too deep
            file.write(frame_header(payload) + payload)
    assert was is not None
    assert flush_log.last_flush(log) == was


def test_a_part_that_does_not_list_one_of_its_files_is_noticed_and_mended(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    asyncio.run(_killed_more(folder))
    turns = sorted_rows(folder.path, "turns")
    (listed,) = folder.parts.glob("*.json")
    part = decode_part(listed)
    del part.tables["turns"], part.checksums["turns"]
    folder.put(f"parts/{listed.name}", encode_file(part))
    with pytest.raises(RecordError, match=f"{listed.name}: .*no part lists turns/"):
        read_table(folder, "cases")
    assert any("turns/" in fault for fault in verify(folder).faults)
    salvage(folder)
    assert (sorted_rows(folder.path, "turns"), verify(folder).faults) == (turns, [])


@pytest.mark.parametrize(
    "step", ["covered", "epochs", "valid_bytes", "_orphans", "_stated_by_logs", "_cut", "_owned_files"]
)
async def test_a_part_that_a_live_run_makes_meanwhile_is_no_loss(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step of the check, once before and once after it."""
    async with open_writer(new_run(tmp_path / "run")) as writer:
        for before in (True, False):
            await debated(writer, [int(before)])
            _once(monkeypatch, step, writer._journal._compact, before=before)
            check_complete(RunFolder(tmp_path / "run"))
            monkeypatch.undo()


def _once(monkeypatch: pytest.MonkeyPatch, name: str, event: Callable[[], object], *, before: bool) -> None:
    """Let an event happen before or after the first call of a step."""
    place: Any = completeness if name.startswith("_") else RunFolder
    step, due = getattr(place, name), [event]

    def with_event(*args: Any) -> Any:
        if before and due:
            due.pop()()
        found = step(*args)
        if due:
            due.pop()()
        return found

    monkeypatch.setattr(place, name, with_event)


def test_what_verdicts_state_is_compared_with_their_replies(tmp_path: Path) -> None:
    """In a record of an earlier version, where nothing else states how many there were."""
    folder = new_run(tmp_path / "run")
    asyncio.run(_stated(folder))
    for log in folder.parts.glob("*.flushes"):
        log.unlink()
    assert (verify(folder).faults, verify(folder).unlogged) == ([], 4)
    cut(segment(folder, "replies"), 1)
    (fault,) = verify(folder).faults
    assert "1 replies with 15 tokens" in fault
    salvage(folder)
    assert verify(folder).faults == []
    (lost,) = [row for row in sorted_rows(folder.path, "events") if '"why":"lost"' in row["data"]]
    assert '"tokens_at_most":15' in lost["data"]


async def _stated(folder: RunFolder) -> None:
    """A debate whose verdict states what its three replies used; one of them is superseded, and one a person's."""
    unpaid = {"prompt_tokens": None, "completion_tokens": None}
    async with open_writer(folder, compact=False) as writer:
        await writer.register([labelled(0)])
        writer.add_events([("c000", 0, Event("signal", "here"), 1.0)])
        for rows in (
            [
                reply("c000", "a", "old"),
                reply("c000", "a~1", "new~1", outcome="invalid"),
                reply("c000", "p", "decision-p", **unpaid),
            ],
            [reply("c000", "a", "new", supersedes="old")],
            [reply("c000", "b", "b")],
        ):
            writer.add_replies(batch(rows))
            await writer.flush()
        used = {"calls": 2, "prompt_tokens": 30, "completion_tokens": 15}
        assert await writer.commit([debate_result("c000", {"a": "new", "b": "b"}, **used)]) == [True]
