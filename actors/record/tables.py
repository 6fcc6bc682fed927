"""Reading a record: the tables of a run, finished or not, live or torn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from moot.actors.record.compaction import tables_of
from moot.actors.record.folder import RunFolder
from moot.actors.record.schema import BOOKKEEPING_EVENTS, KEYS, TABLES
from moot.actors.record.segments import read_segment
from moot.protocols.errors import RecordError, unknown_name

_STREAM_OF = {"turns": "replies", "tokens": "replies", "judgments": "replies"}


def read_table(folder: RunFolder | str | Path, table: str, columns: Sequence[str] | None = None) -> pa.Table:
    """A table of the record: committed Parquet parts plus what still lies in the journal.

    Of several rows with one key the first that no later row supersedes is kept. `turns` has an extra column
    `superseded`, and keeps superseded rows.

    Args:
        folder: the run's folder.
        table: a name of `schema.TABLES`.
        columns: which columns; all when None. Key columns always come along.

    Raises:
        RecordError: when there is no run in the folder or a part cannot be read.
    """
    folder = folder if isinstance(folder, RunFolder) else RunFolder(folder)
    if table not in TABLES:
        raise unknown_name("table", table, TABLES)
    if not folder.exists():
        raise RecordError(f"{folder.path}: no run there (no run.yaml)")
    names = _with_key(table, columns)
    try:
        pieces = [
            pq.read_table(folder.path / part.tables[table], columns=names, partitioning=None)
            for part in folder.committed_parts()
            if table in part.tables
        ]
    except (OSError, pa.ArrowException) as error:
        raise RecordError(f"{folder.path}: a part of `{table}` cannot be read: {error}") from error
    stream = _STREAM_OF.get(table, table)
    for path, valid in folder.segments(stream):
        batches = list(read_segment(path, valid))
        if batches:
            pieces.append(tables_of(stream, batches)[table].select(names))
    schema = pa.schema([TABLES[table].field(name) for name in names])
    whole = pa.concat_tables([piece.cast(schema) for piece in pieces]) if pieces else schema.empty_table()
    if table in ("tokens", "judgments"):
        whole = whole.filter(pc.invert(pc.is_in(whole["reply_id"], value_set=_superseded_ids(folder))))
    return _winners(table, whole)


def _superseded_ids(folder: RunFolder) -> pa.Array:
    column = read_table(folder, "turns", ["supersedes"])["supersedes"]
    return column.drop_null().combine_chunks().cast(pa.string())


def _with_key(table: str, columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        return list(TABLES[table].names)
    extra = {"turns": ("reply_id", "supersedes"), "tokens": ("reply_id",), "judgments": ("reply_id",)}
    needed = [*KEYS[table], *extra.get(table, ())]
    return list(dict.fromkeys([*needed, *columns]))


def _winners(table: str, whole: pa.Table) -> pa.Table:
    if table == "turns":
        gone = whole["supersedes"].drop_null().unique()
        whole = whole.append_column("superseded", pc.is_in(whole["reply_id"], value_set=gone))
        key = [*KEYS[table], "superseded"]
    else:
        key = list(KEYS[table])
    if table == "events":
        repeats = pc.is_in(whole["kind"], value_set=pa.array(sorted(BOOKKEEPING_EVENTS)))
        unique = _first_of_each(whole.filter(pc.invert(repeats)), key)
        return pa.concat_tables([unique, whole.filter(repeats)])
    return _first_of_each(whole, key)


def _first_of_each(whole: pa.Table, key: list[str]) -> pa.Table:
    if whole.num_rows < 2:
        return whole
    order = pa.array(range(whole.num_rows), pa.int64())
    numbered = whole.select(key).append_column("__row", order)
    grouped = numbered.group_by(key, use_threads=False).aggregate([("__row", "min")])
    if grouped.num_rows == whole.num_rows:
        return whole
    return whole.take(grouped["__row_min"].combine_chunks().sort())
