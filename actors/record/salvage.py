"""Salvage of a damaged record: intact data is kept, damaged files are quarantined, and nothing is deleted.

Rows that depend on lost replies are removed, so that their debates run again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.files import checksum, encode_file, write_whole
from moot.actors.record.folder import Part, RunFolder, decode_part
from moot.actors.record.ownership import Ownership
from moot.actors.record.parts import open_parquet
from moot.actors.record.schema import ABANDONED, ASKED, JOURNAL, TABLES
from moot.actors.record.segments import read_segment, salvage_segment
from moot.protocols.errors import RecordError

ASIDE = "damaged"
"""Subfolder of the run's folder for replaced files."""


def salvage(folder: RunFolder) -> list[str]:
    """Replaces damaged files by their intact part; lost debates run again when the run resumes.

    Returns:
        What was done, one line per file.

    Raises:
        RunFolderBusy: another process owns the folder.
        RecordError: the record is in a bucket, there is no run, or a file that determines which files count is damaged.
    """
    if folder.store is not None:
        raise RecordError(f"{folder.store.uri}: copy the folder from the bucket, and salvage the copy")
    if not folder.exists():
        raise RecordError(folder.missing())
    owner = Ownership.acquire(folder)
    try:
        report = [*_list_orphans(folder), *_salvage_parts(folder), *_salvage_segments(folder)]
        _note_what_is_left(folder)
        if report:
            compact_leftovers(folder, owner.epoch)
            report += reopen_debates(folder)
        return report
    finally:
        owner.release()


def _list_orphans(folder: RunFolder) -> Iterator[str]:
    """Recreates the parts of Parquet files without one; where segments have the same rows, the first written count."""
    listed = {name for part in folder.committed_parts() for name in part.tables.values()}
    found: dict[str, dict[str, str]] = {}
    for table in TABLES:
        for path in sorted((folder.path / table).glob("*.parquet")):
            if f"{table}/{path.name}" not in listed:
                found.setdefault(path.stem, {})[table] = f"{table}/{path.name}"
    for stem, tables in found.items():
        checksums = {table: checksum(folder.path / name) for table, name in tables.items()}
        folder.put(f"parts/{stem}.json", encode_file(Part(tables, [], checksums)))
        yield f"parts/{stem}.json: written again, it lists {', '.join(sorted(tables.values()))}"


def _salvage_parts(folder: RunFolder) -> Iterator[str]:
    for file in sorted(folder.parts.glob("*.json")):
        part = decode_part(file)
        checksums, report = dict(part.checksums), []
        for table, name in part.tables.items():
            path = folder.path / name
            if table in checksums and path.exists() and checksum(path) == checksums[table]:
                continue
            report.append(_rewrite(folder, path))
            checksums[table] = checksum(path)
        if report:
            write_whole(file, encode_file(Part(part.tables, part.covers, checksums)))
            yield from report


def _rewrite(folder: RunFolder, path: Path) -> str:
    """Keep the row groups of a Parquet file that can be read."""
    name = path.relative_to(folder.path)
    groups, kept = 0, [TABLES[name.parts[0]].empty_table()]
    with suppress(RecordError), open_parquet(path) as content:
        groups, kept = content.num_row_groups, [content.schema_arrow.empty_table()]
    for number in range(groups):
        with suppress(RecordError), open_parquet(path) as content:
            kept.append(content.read_row_group(number))
    _quarantine(folder, path)
    _write(path, pa.concat_tables(kept))
    return f"{name}: {len(kept) - 1} of {groups} row groups kept" if groups else f"{name}: nothing of it can be read"


def _salvage_segments(folder: RunFolder) -> Iterator[str]:
    for path, valid in list(folder.segments()):
        try:
            for _ in read_segment(path, valid):
                pass
        except RecordError:
            draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            batches = salvage_segment(path, draft, JOURNAL[path.stem.rsplit("-", 1)[1]], valid)
            _quarantine(folder, path)
            if batches:
                os.replace(draft, path)
            yield f"journal/{path.name}: {batches} whole batches kept"


def _note_what_is_left(folder: RunFolder) -> None:
    """Set the valid length of each segment to that of its salvaged part."""
    epochs = folder.epochs()
    for epoch in epochs:
        left = {name: folder.journal / name for name in epoch.valid_bytes if (folder.journal / name).exists()}
        epoch.valid_bytes = {name: min(epoch.valid_bytes[name], path.stat().st_size) for name, path in left.items()}
    folder.put("epochs.json", encode_file(epochs))


def _quarantine(folder: RunFolder, path: Path) -> None:
    if not path.exists():
        return
    target = folder.path / ASIDE / path.relative_to(folder.path)
    number = 0
    while target.exists():
        number += 1
        target = target.with_name(f"{path.name}.{number}")
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(path, target)


Row = dict[str, Any]

_NEEDED = {
    "turns": ["case_id", "attempt", "path", "reply_id"],
    "events": ["case_id", "attempt", "kind", "path"],
    "verdicts": ["case_id", "attempt"],
}


def reopen_debates(folder: RunFolder) -> Iterator[str]:
    """Removes the verdicts of debates with a lost reply, and rows that belong to lost replies.

    Each ask of a debate is on record; an ask without a reply, and without an event for its absence, has lost it. The
    folder's owner calls this when everything is in parts.
    """
    turns, events, verdicts = (list(_rows(folder, table)) for table in ("turns", "events", "verdicts"))
    answered = {_key(row, "path") for row in turns}
    asked, ended = ({_key(row, "path") for row in events if row["kind"] == kind} for kind in (ASKED, ABANDONED))
    lost = Counter(key[:2] for key in asked - answered - ended)
    replies = {row["reply_id"] for row in turns}
    _filter(folder, "verdicts", lambda row: _key(row) not in lost)
    for table in ("tokens", "judgments"):
        _filter(folder, table, lambda row: row["reply_id"] in replies)
    if lost:
        again = len({_key(row) for row in verdicts} & lost.keys())
        yield f"{lost.total():,} replies are lost; {again:,} debates with a verdict run again with `moot run`"


def _key(row: Row, *more: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("case_id", "attempt", *more))


def _rows(folder: RunFolder, table: str) -> Iterator[Row]:
    for part in folder.committed_parts():
        if table in part.tables:
            with open_parquet(folder.path / part.tables[table]) as content:
                yield from content.read(columns=_NEEDED[table]).to_pylist()


def _filter(folder: RunFolder, table: str, keeps: Callable[[Row], bool]) -> None:
    """Keep the rows of a table for which `keeps` is true."""
    for file in sorted(folder.parts.glob("*.json")):
        part = decode_part(file)
        if table not in part.tables:
            continue
        path = folder.path / part.tables[table]
        with open_parquet(path) as content:
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
