"""Lost replies of a damaged record: a verdict stays, the asks of an unfinished debate are paid for again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from journal_writer import debate_result, new_run, open_writer, session, submit_case
from small_runs import sorted_rows

from moot.actors.record.folder import RunFolder
from moot.actors.record.lost_replies import find_lost_replies
from moot.actors.record.parts import PartReader
from moot.actors.record.salvage import salvage
from moot.actors.record.schema import ABANDONED, ASKED
from moot.actors.record.tables import read_table
from moot.actors.record.verify import verify
from moot.protocols.errors import RecordError
from moot.protocols.messages import Event

ENDED, OPEN = ("c000", 0), ("c001", 0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A record of a debate with a verdict and one without, whose file of replies is cut off."""
    asyncio.run(_write(new_run(tmp_path / "a run")))
    (turns,) = (tmp_path / "a run" / "turns").glob("*.parquet")
    turns.write_bytes(turns.read_bytes()[:-20])
    return tmp_path / "a run"


async def _write(folder: RunFolder) -> None:
    async with open_writer(folder) as writer:
        for number, (case_id, attempt) in enumerate((ENDED, OPEN)):
            replies = await submit_case(writer, number)
            writer.add_events([(case_id, attempt, Event(ASKED, path), 1.0) for path in replies])
            if (case_id, attempt) == ENDED:
                assert await writer.commit(
                    [debate_result(case_id, replies, calls=2, prompt_tokens=20, completion_tokens=10)]
                ) == [True]


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}


def test_the_loss_is_known_before_anything_is_written(run: Path) -> None:
    before = _files(run)
    lost = find_lost_replies(RunFolder(run))
    assert (lost.asks, lost.tokens) == ({ENDED: ["a", "j/judge/0"], OPEN: ["a", "j/judge/0"]}, {ENDED: 30})
    ended, others = lost.lines()
    assert ended.startswith("2 replies of 1 debates with a verdict are lost")
    assert "30 tokens" in ended
    assert others.startswith("2 asks of 1 debates without a verdict have no reply")
    assert _files(run) == before


def test_a_verdict_stays_and_every_replaced_file_is_kept_aside(run: Path) -> None:
    verdicts, cases, before = sorted_rows(run, "verdicts"), sorted_rows(run, "cases"), _files(run)
    salvage(RunFolder(run))
    assert (sorted_rows(run, "verdicts"), sorted_rows(run, "cases")) == (verdicts, cases)
    aside = _files(run / "damaged")
    assert {name.partition("/")[0] for name in aside} == {"turns", "tokens", "judgments"}
    assert all(before[name] == content for name, content in aside.items())
    assert verify(RunFolder(run)).faults == []
    assert list(find_lost_replies(RunFolder(run)).asks) == [OPEN]
    events = read_table(run, "events").to_pylist()
    assert [row["case_id"] for row in events if row["kind"] == ABANDONED] == [ENDED[0]] * 2
    asyncio.run(session(RunFolder(run), range(2)))
    assert [(row["case_id"], row["path"]) for row in sorted_rows(run, "turns")] == [
        (OPEN[0], "a"),
        (OPEN[0], "j/judge/0"),
    ]
    assert verify(RunFolder(run)).faults == []


def test_a_damaged_file_is_named_with_the_command_that_repairs_it(run: Path) -> None:
    command = f"`moot verify '{run}' --salvage`"
    with pytest.raises(RecordError, match=r"turns/.* is damaged: ") as raised:
        read_table(run, "turns")
    assert command in str(raised.value)
    found = verify(RunFolder(run))
    assert command in found.advice
    assert command not in " ".join(found.faults)


def test_of_whole_files_only_what_is_compared_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts and vectors are most of a record; and each table is read once."""
    asyncio.run(_write(new_run(tmp_path / "run")))
    read, was = list[tuple[str, ...]](), PartReader.read

    def noted(part: PartReader, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None) -> pa.Table:
        read.append(tuple(part.names if columns is None else columns))
        return was(part, columns, groups)

    monkeypatch.setattr(PartReader, "read", noted)
    assert not find_lost_replies(RunFolder(tmp_path / "run")).tokens
    assert len(read) == len(set(read))
    assert not {"text", "vector"} & {name for names in read for name in names}
