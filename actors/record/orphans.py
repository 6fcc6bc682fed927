"""Parquet files that no part lists: left by a crash before the commit, or their part's JSON file was lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from moot.actors.record.folder import RunFolder, is_part_name
from moot.actors.record.parts import columns_of, read_part
from moot.actors.record.schema import KEYS, TABLES
from moot.protocols.errors import RecordError


def remove_orphans(folder: RunFolder) -> None:
    """Delete the Parquet files that no part lists, if all their rows are on record elsewhere.

    A crash before the commit leaves such files beside the segments that they were made from. Where no segment and no
    other part holds the rows, the part's JSON file was lost.

    Raises:
        RecordError: rows of such a file are nowhere else; nothing of its table was deleted.
    """
    listed = {name for part in folder.committed_parts() for name in part.tables.values()}
    in_store = [] if folder.store is None else [n for n in folder.store.sizes() if n.partition("/")[0] in TABLES]
    for name in in_store:
        if name not in listed and _is_table_file(name) and folder.store is not None:
            folder.store.get_file(name, folder.path / name)
    for table in TABLES:
        orphans = {f"{table}/{path.name}" for path in (folder.path / table).glob("*.parquet")} - listed
        for name in sorted(orphans):
            if missing := _rows_nowhere_else(folder, table, name):
                raise RecordError(
                    f"{folder.path / name} holds {missing:,} rows that no part lists: is parts/{Path(name).stem}.json "
                    "lost? Restore it from a copy, or list the file again: `moot verify RUN --salvage`"
                )
        for name in orphans:
            (folder.path / name).unlink()
    if folder.store is not None:
        folder.store.delete([name for name in in_store if name not in listed])


def _is_table_file(name: str) -> bool:
    file = Path(name)
    return name == f"{file.parent}/{file.stem}.parquet" and is_part_name(file.stem)


def _rows_nowhere_else(folder: RunFolder, table: str, orphan: str) -> int:
    file = folder.path / orphan
    key = [*KEYS[table], *({"reply_id"} & columns_of(file) - {*KEYS[table]})]
    missing: pa.Table = read_part(file, key)
    for part in folder.committed_parts():
        if table in part.tables and missing.num_rows:
            known = read_part(folder.table_file(part, table), key)
            missing = missing.join(known, key, join_type="left anti")
    return int(missing.num_rows)
