"""A record from before a column came: read, gone on with and compacted, the new column null."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from houses import sorted_rows
from journal_writer import new_run, session

from moot.actors.record.folder import RunFolder
from moot.actors.record.schema import CASES
from moot.actors.record.segments import read_segment
from moot.actors.record.tables import read_table

NEW = ("aliases", "documents")


def _older(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in NEW])


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
    folder = new_run(tmp_path / "run")
    await session(folder, [0], compact=compacted)
    written = sorted_rows(folder.path, "cases")
    assert written[0]["documents"] == []
    assert _age(folder) == 1
    aged = [row | dict.fromkeys(NEW) for row in written]
    assert sorted_rows(folder.path, "cases") == aged
    assert read_table(folder, "cases", ["documents"]).to_pylist() == [{"case_id": "c000", "documents": None}]
    await session(folder, [1], compact=compacted)
    rows = sorted_rows(folder.path, "cases")
    assert rows[:1] == aged
    assert [(row["case_id"], row["documents"]) for row in rows] == [("c000", None), ("c001", [])]
    assert read_table(folder, "verdicts").num_rows == 2
