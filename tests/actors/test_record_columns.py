"""A record from before a column came: read, gone on with and compacted, the new column null."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from houses import sorted_rows
from journal_writer import batch, closing, debate_rows, labelled

from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.folder import Ownership, RunFolder
from moot.actors.record.recorder import Recorder
from moot.actors.record.schema import CASES
from moot.actors.record.segments import read_segment
from moot.actors.record.tables import read_table

NEW = ("aliases", "documents")


def _older(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in NEW])


async def _write(folder: RunFolder, number: int, *, compacted: bool) -> None:
    """One more debate, by an owner of its own."""
    owner = Ownership.take(folder)
    try:
        compact_leftovers(folder, owner.epoch)
        recorder = Recorder(folder.path, owner.epoch)
        await recorder.load()
        case = labelled(number)
        await recorder.register([case])
        rows = debate_rows(case.case.id, f"e{owner.epoch}")
        recorder.add_replies(batch(rows))
        assert all(await recorder.commit([closing(case.case.id, {row["path"]: row["reply_id"] for row in rows})]))
        if compacted:
            await recorder.close()
        else:
            await recorder.flush()
            for segment in recorder._journal._segments.values():
                segment.close()
    finally:
        owner.release()


def _age(folder: RunFolder) -> int:
    """Rewrites the cases as they were written before the new columns and the checksums; gives how many files."""
    segments = [path for path, _ in folder.segments("cases")]
    for path in segments:
        batches = list(read_segment(path))
        path.unlink()
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, _older(CASES)) as writer:
            for each in batches:
                writer.write_batch(each.select(_older(CASES).names))
    parts = list((folder.path / "cases").glob("*.parquet"))
    for path in parts:
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns(list(NEW)), path)
    for file in folder.parts.glob("*.json"):
        part = json.loads(file.read_bytes().splitlines()[0])
        file.write_text(json.dumps({"tables": part["tables"], "covers": part["covers"]}))
    return len(segments) + len(parts)


@pytest.mark.parametrize("compacted", [True, False], ids=["parquet", "journal"])
async def test_an_older_record_is_read_and_gone_on_with(tmp_path: Path, compacted: bool) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    (folder.path / "run.yaml").write_text("test: true\n")
    await _write(folder, 0, compacted=compacted)
    written = sorted_rows(folder.path, "cases")
    assert written[0]["documents"] == []
    assert _age(folder) == 1
    aged = [row | dict.fromkeys(NEW) for row in written]
    assert sorted_rows(folder.path, "cases") == aged
    assert read_table(folder, "cases", ["documents"]).to_pylist() == [{"case_id": "c000", "documents": None}]
    await _write(folder, 1, compacted=compacted)
    rows = sorted_rows(folder.path, "cases")
    assert rows[:1] == aged
    assert [(row["case_id"], row["documents"]) for row in rows] == [("c000", None), ("c001", [])]
    assert read_table(folder, "verdicts").num_rows == 2
