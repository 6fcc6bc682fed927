"""A record is followed while another writes it: each row comes, and comes once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from journal_writer import debated, new_run, open_writer, session, submit_case

from moot.actors.record import journal
from moot.actors.record.follow import RecordFollower
from moot.actors.record.schema import JOURNAL
from moot.actors.record.segments import SegmentFollower, SegmentWriter
from moot.actors.record.tables import read_table

COLUMNS = {"cases": ["case_id"], "turns": ["case_id", "path"], "events": ["case_id"], "verdicts": ["case_id"]}


class Reader:
    """What a follower has found so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._follower = RecordFollower(new_run(folder), COLUMNS, ["text"])
        self.rows: Counter[tuple[str, ...]] = Counter()

    def read(self) -> None:
        """Read on."""
        for added in self._follower.read():
            found = zip(*(added.rows[name].to_pylist() for name in COLUMNS[added.table]), strict=True)
            self.rows.update((added.table, *row) for row in found)

    def close(self) -> None:
        """Close the files."""
        self._follower.close()

    def assert_all_read_once(self) -> None:
        """Nothing of the record is missing, and nothing came twice."""
        self.read()
        for table, columns in COLUMNS.items():
            for row in read_table(self.folder, table, columns).select(columns).to_pylist():
                assert self.rows.pop((table, *row.values())) == 1, (table, row)
        assert not self.rows


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader from the beginning."""
    with closing(Reader(tmp_path / "run")) as opened:
        yield opened


async def test_each_row_comes_once_while_segments_grow_and_become_parts(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "ROLL_BYTES", 20_000)
    rolls = []
    with closing(Reader(reader.folder)) as late:
        async with open_writer(new_run(reader.folder)) as writer:
            for number in range(40):
                await debated(writer, [number])
                reader.read()
                if number == 20:
                    late.read()
                rolls.append(len(list((reader.folder / "parts").glob("*.json"))))
        assert max(rolls) > 2, "segments became parts meanwhile"
        reader.assert_all_read_once()
        late.assert_all_read_once()


async def test_a_run_that_is_resumed_is_followed_on(reader: Reader) -> None:
    folder = new_run(reader.folder)
    await session(folder, [0, 1], compact=False)
    reader.read()
    await session(folder, [2, 3])
    reader.read()
    await session(folder, [4])
    reader.assert_all_read_once()


async def test_a_reply_comes_before_its_verdict(reader: Reader) -> None:
    async with open_writer(new_run(reader.folder)) as writer:
        await submit_case(writer, 0)
        await writer.flush()
        reader.read()
        assert {key[0] for key in reader.rows} == {"cases", "turns", "events"}
        await debated(writer, [1])
        reader.read()
        assert reader.rows["verdicts", "c001"] == 1


def _batches(rows: int, each: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, each):
        found: list[dict[str, Any]] = [
            {"case_id": f"c{i}", "attempt": 0, "kind": "k", "path": "p", "data": "x" * 300, "at": 0.0}
            for i in range(start, start + each)
        ]
        yield pa.RecordBatch.from_pylist(found, JOURNAL["events"])


def test_a_frame_that_is_not_whole_yet_is_waited_for(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path / "whole", JOURNAL["events"])
    for batch in _batches(40, 10):
        writer.append(batch)
    writer.close()
    raw = (tmp_path / "whole").read_bytes()
    growing = tmp_path / "growing"
    growing.write_bytes(b"")
    follower = SegmentFollower(growing)
    found: list[str] = []
    for end in range(0, len(raw) + 97, 97):
        growing.write_bytes(raw[:end])
        for most in (10, 5000):  # also where less than a frame is read at a time
            for batch in follower.read(most):
                found += batch["case_id"].to_pylist()
    follower.close()
    assert found == [f"c{i}" for i in range(40)]
