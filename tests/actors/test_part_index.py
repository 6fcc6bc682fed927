"""Looking for a few cases in a large record: no more of it is read than what may hold them, beside what is written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from journal_writer import batch, closing, debate_rows, labelled

from moot.actors.record import as_written, compaction, read_back, tables
from moot.actors.record.closing import ModelUsage
from moot.actors.record.folder import Ownership, RunFolder
from moot.actors.record.part_index import PartIndex
from moot.actors.record.parts import read_groups
from moot.actors.record.recorder import Recorder
from moot.actors.record.recovery import histories

CASES = 12


@pytest.fixture
async def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Recorder]:
    """A writer of a record with a part of an earlier owner, where every debate has row groups of its own."""
    monkeypatch.setattr(compaction, "_CHUNK_BYTES", 1)
    (tmp_path / "run.yaml").touch()
    owner = Ownership.take(RunFolder(tmp_path))
    first = Recorder(tmp_path, owner.epoch)
    await first.load()
    for number in range(CASES):
        await end(first, number)
    await first.close()
    owner.release()
    owner = Ownership.take(RunFolder(tmp_path))
    second = Recorder(tmp_path, owner.epoch)
    await second.load()
    yield second
    owner.release()


async def end(made: Recorder, number: int) -> None:
    case_id = labelled(number).case.id
    await made.register([labelled(number)])
    rows = debate_rows(case_id, "e1")
    made.add_replies(batch(rows))
    await made.flush()
    assert await made.commit([closing(case_id, {row["path"]: row["reply_id"] for row in rows})]) == [True]
    await made.flush()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many row groups each reading of a part took."""
    counted: list[int] = []

    def counting(file: Path, groups: list[int], columns: list[str]) -> pa.Table:
        counted.append(len(groups))
        return read_groups(file, groups, columns)

    monkeypatch.setattr(tables, "read_groups", counting)
    monkeypatch.setattr(as_written, "read_groups", counting)
    return counted


def test_a_case_is_found_in_every_group_that_holds_it(tmp_path: Path) -> None:
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "none.parquet"]
    for file, groups in zip(files, [["ab", "b", "ca"], ["d", "e"], []], strict=True):
        with pq.ParquetWriter(file, pa.schema([("case_id", pa.string())])) as writer:
            for group in groups:
                writer.write_table(pa.table({"case_id": list(group)}))
    index = PartIndex()
    assert [index.groups_of(["a", "d"])(file) for file in files] == [[0, 2], [0], []]
    assert [index.groups_of(["b", "x"])(file) for file in files] == [[0, 1], [], []]
    assert [index.groups_of([])(file) for file in files] == [[], [], []]


async def test_of_a_case_that_ended_long_ago_its_own_rows_are_read(made: Recorder, read: list[int]) -> None:
    found = await made.endings(["c003", "nobody"])
    assert found.keys() == {"c003"}
    assert found["c003"].usage == {"simulated": ModelUsage(20, 10)}
    assert read == [1, 1]  # of verdicts, of turns
    await made.close()


async def test_of_a_debate_that_goes_on_its_own_rows_are_read(made: Recorder, read: list[int]) -> None:
    one, other = await made.history([("c003", 0), ("nobody", 0)])
    assert [reply.path for reply in one.replies] == ["a", "j/judge/0"]
    assert other.replies == []
    assert read == [1]
    await made.close()


async def test_verdicts_become_durable_while_histories_are_read(
    made: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(*args: Any) -> Any:
        reading.set()
        assert go_on.wait(30)
        return histories(*args)

    monkeypatch.setattr(read_back, "histories", slow)
    await made.register([labelled(CASES)])
    made.add_replies(batch(debate_rows(f"c{CASES:03d}", "e2")))
    asked = asyncio.create_task(made.history([(f"c{CASES:03d}", 0), ("c001", 0)]))
    assert await asyncio.to_thread(reading.wait, 30)
    try:
        async with asyncio.timeout(10):
            await end(made, CASES + 1)
            await made.close()  # what lay in segments is in a part now
    finally:
        go_on.set()
    assert [len(history.replies) for history in await asked] == [2, 2]
