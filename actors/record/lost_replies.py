"""After a salvage: rows that rest on replies which are lost are taken out, so that their debates are held again."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from moot.actors.record.files import checksum, encode_file
from moot.actors.record.folder import Part, RunFolder, decode_part, write_whole
from moot.actors.record.parts import opened
from moot.actors.record.schema import ABANDONED, ASKED

Row = dict[str, Any]
Key = tuple[str, int]

_NEEDED = {
    "turns": ["case_id", "attempt", "path", "reply_id"],
    "events": ["case_id", "attempt", "kind", "path"],
    "verdicts": ["case_id", "attempt"],
}


def reopen_debates(folder: RunFolder) -> Iterator[str]:
    """Take out the verdicts of debates of which a reply is lost, and what belongs to lost replies.

    A debate asked for each of its replies on record; one without the reply, and without a word that there is none, has
    lost it. The folder's owner calls this when everything is in parts.
    """
    turns, events, verdicts = (list(_rows(folder, table)) for table in ("turns", "events", "verdicts"))
    known = {(row["case_id"], row["attempt"], row["path"]) for row in turns}
    ended = {(row["case_id"], row["attempt"], row["path"]) for row in events if row["kind"] == ABANDONED}
    lost: dict[Key, int] = defaultdict(int)
    for row in {(row["case_id"], row["attempt"], row["path"]) for row in events if row["kind"] == ASKED}:
        if row not in known and row not in ended:
            lost[row[:2]] += 1
    judged = {(row["case_id"], row["attempt"]) for row in verdicts}
    replies = {row["reply_id"] for row in turns}
    _filter(folder, "verdicts", lambda row: (row["case_id"], row["attempt"]) not in lost)
    for table in ("tokens", "judgments"):
        _filter(folder, table, lambda row: row["reply_id"] in replies)
    if lost:
        again = len(judged & lost.keys())
        yield f"{sum(lost.values()):,} replies are lost; {again:,} debates with a verdict are held again by `moot run`"


def _rows(folder: RunFolder, table: str) -> Iterator[Row]:
    for part in folder.committed_parts():
        if table in part.tables:
            with opened(folder.path / part.tables[table]) as content:
                yield from content.read(columns=_NEEDED[table]).to_pylist()


def _filter(folder: RunFolder, table: str, keeps: Callable[[Row], bool]) -> None:
    """Keep the rows of a table that `keeps` says."""
    for file in sorted(folder.parts.glob("*.json")):
        part = decode_part(file)
        if table not in part.tables:
            continue
        path = folder.path / part.tables[table]
        with opened(path) as content:
            rows = content.read()
        names = [name for name in ("case_id", "attempt", "reply_id") if name in rows.column_names]
        kept = [number for number, row in enumerate(rows.select(names).to_pylist()) if keeps(row)]
        if len(kept) < rows.num_rows:
            _write(path, rows.take(pa.array(kept, pa.int64())))
            checksums = {**part.checksums, table: checksum(path)}
            write_whole(file, encode_file(Part(part.tables, part.covers, checksums)))


def _write(path: Path, rows: pa.Table) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    pq.write_table(rows, draft, compression="zstd", write_page_checksum=True)
    os.replace(draft, path)
