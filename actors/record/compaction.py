"""Compaction of journal segments to Parquet: write the parts, rename them, commit them with one file, drop segments."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from moot.actors.record.completeness import complete_segments, rows_nowhere_else, unlisted_files
from moot.actors.record.files import checksum, encode_file, file_bytes
from moot.actors.record.flush_log import append_flush
from moot.actors.record.folder import RunFolder, Segment
from moot.actors.record.roll_files import Part, is_part_name, roll_of, stream_of_segment
from moot.actors.record.schema import JOURNAL, JUDGMENTS, KEYS, TABLES, completed
from moot.actors.record.segments import read_segment
from moot.actors.telemetry.failpoints import failpoint
from moot.protocols.errors import RecordError

_CHUNK_BYTES = 16 * 2**20


_OF_REPLIES = ("turns", "tokens", "judgments")


def stream_of(table: str) -> str:
    """Journal stream of a table."""
    return "replies" if table in _OF_REPLIES else table


def rows_of(
    table: str, batches: list[pa.RecordBatch], names: Sequence[str] | None = None, only: pc.Expression | None = None
) -> pa.Table:
    """Rows of a table from its stream's batches.

    Args:
        names: columns; all when None. The others are not copied: a reply's tokens are most of its bytes.
        only: filter on key columns.
    """
    names = list(TABLES[table].names if names is None else names)
    schema = JOURNAL[stream_of(table)]
    rows = pa.Table.from_batches([completed(batch, schema) for batch in batches], schema)
    if table == "judgments":
        return _judgments(rows if only is None else rows.filter(only)).select(names)
    there = pc.is_valid(rows["token"]) if table == "tokens" else None
    rows = rows.select(list(dict.fromkeys([*names, *KEYS[table]]))).combine_chunks()  # a filter takes long per batch
    rows = rows if there is None else rows.filter(there)
    rows = rows if only is None else rows.filter(only)
    return rows.select(names).cast(pa.schema([TABLES[table].field(name) for name in names]))


def _judgments(replies: pa.Table) -> pa.Table:
    likely = pc.or_(
        pc.match_substring(pc.fill_null(replies["data"], ""), "support"),
        pc.match_substring(replies["path"], "judge/"),
    )
    replies = replies.filter(likely)
    rows = []
    columns = ["case_id", "attempt", "path", "role", "model", "data", "failure", "outcome", "reply_id"]
    for row in replies.select(columns).to_pylist():
        data = msgspec.json.decode(row["data"]) if row["data"] else {}
        judged = "score" in data and "support" in data
        if row["outcome"] == "invalid" or not (judged or (row["failure"] and "/judge/" in f"/{row['path']}")):
            continue
        fields = {name: data.get(name) for name in ("support", "score", "rationale")}
        rows.append({name: row.get(name) for name in JUDGMENTS.names} | fields | {"judge": row["role"]})
    return pa.Table.from_pylist(rows, JUDGMENTS)


def compact(folder: RunFolder, name: str, segments: dict[str, list[Segment]]) -> None:
    """Compacts segments to Parquet files and deletes them.

    Args:
        name: stem of the new files.
        segments: by stream, the segments with their valid lengths.

    After a crash at any point, either the segments or the committed part are valid, never both and never neither.

    Raises:
        RecordError: a part of that name is already committed, or it cannot be written; the segments are then kept.
    """
    if folder.get(f"parts/{name}.json") is not None:
        raise RecordError(f"{folder.path}: the part {name} is there already, and is not written again")
    files: dict[str, str] = {}
    checksums: dict[str, int] = {}
    for stream, of_stream in segments.items():
        with ExitStack() as open_parts:
            parts: dict[str, _PartWriter] = {}
            for batches in chunked(batch for segment in of_stream for batch in read_segment(*segment)):
                for table in (name for name in TABLES if stream_of(name) == stream):
                    content = rows_of(table, batches)
                    if content.num_rows and table not in parts:
                        parts[table] = open_parts.enter_context(_PartWriter(folder, table, name, content.schema))
                    if content.num_rows:
                        parts[table].write(content)
        for table, part in parts.items():
            checksums[table] = part.checksum()
            files[table] = part.commit()
    pa.default_memory_pool().release_unused()
    paths = [segment.path for of_stream in segments.values() for segment in of_stream]
    covers = [path.name for path in paths]
    folder.put(f"parts/{name}.json", encode_file(Part(files, covers, checksums)))
    failpoint("compaction.manifest_written")
    _keep_logs(folder, paths)
    for path in paths:
        path.unlink(missing_ok=True)
    if folder.store is not None:
        for roll in sorted(set(map(roll_of, covers))):
            folder.store.delete_folder(f"journal/{roll}")


def _keep_logs(folder: RunFolder, segments: Iterable[Path]) -> None:
    """Write the flush logs of compacted rolls that have none, and put all into the store: a lost part is noticed."""
    lengths: dict[str, dict[str, int]] = {}
    for path in segments:
        length = file_bytes(path)
        lengths.setdefault(roll_of(path.name), {})[stream_of_segment(path.name)] = length
    for roll, written in sorted(lengths.items()):
        log = folder.flush_log(roll)
        if not log.exists():
            append_flush(log, written, written, ends=True)
        if folder.store is not None:
            folder.store.put(f"parts/{log.name}", log)


def chunked(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches of about `_CHUNK_BYTES` in total: a roll is far larger than what should be decoded at once."""
    chunk: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        chunk.append(batch)
        size += batch.get_total_buffer_size()  # `nbytes` takes longer than everything else that is done to a batch
        if size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


class _PartWriter:
    """Writer of a Parquet file, under a temporary name until `commit`."""

    def __init__(self, folder: RunFolder, table: str, name: str, schema: pa.Schema) -> None:
        self._folder, self._name = folder, f"{table}/{name}.parquet"
        self._target = folder.path / self._name
        self._target.parent.mkdir(exist_ok=True)
        self._temporary = self._target.with_name(f".{name}.{os.getpid()}.tmp")
        self._file = open(self._temporary, "wb")  # noqa: SIM115 - closed on exit
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd", write_page_checksum=True)

    def write(self, content: pa.Table) -> None:
        """Append rows."""
        self._writer.write_table(content)

    def __enter__(self) -> _PartWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self._writer.close()
            self._file.flush()
            os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def checksum(self) -> int:
        """CRC-32 of the closed file."""
        return checksum(self._temporary)

    def commit(self) -> str:
        """Rename the closed file; returns its name relative to the run's folder."""
        failpoint("compaction.part_written")
        os.replace(self._temporary, self._target)
        failpoint("compaction.part_renamed")
        if self._folder.store is not None:
            self._folder.store.put(self._name, self._target)
            failpoint("store.part_put")
        return self._name


def _free_name(folder: RunFolder, epoch: int) -> str:
    """Unused name of a part: an owner in a store may write several, at its start and at its end."""
    names = (f"e{epoch:04d}-rest{number}" for number in count())
    return next(name for name in names if folder.get(f"parts/{name}.json") is None)


def compact_leftovers(folder: RunFolder, epoch: int) -> None:
    """Compacts every remaining segment, of any owner, into one part; removes stray temporary files.

    Raises:
        RecordError: the part cannot be written; the segments are then left unchanged.
    """
    left, segments = complete_segments(folder), dict[str, list[Segment]]()
    for stream in JOURNAL:
        if found := [segment for segment in left if stream_of_segment(segment.path.name) == stream]:
            segments[stream] = found
    if segments:
        try:
            compact(folder, _free_name(folder, epoch), segments)
        except OSError as error:
            raise RecordError(f"cannot write to {folder.path}: {error.strerror}") from error
    for table in TABLES:
        for stray in (folder.path / table).glob(".*.tmp"):
            stray.unlink(missing_ok=True)
    remove_orphans(folder)
    covered = {name for part in folder.committed_parts() for name in part.covers}
    for path in folder.journal.glob("e*.arrows"):
        if path.name in covered:
            path.unlink(missing_ok=True)
    if folder.store is not None:
        folder.store.delete_folder("journal")  # its valid rows are in the parts


def remove_orphans(folder: RunFolder) -> None:
    """Deletes the Parquet files that no part lists, if all their rows are recorded elsewhere.

    A crash before the commit leaves such files beside their segments. If their rows are in no segment and no other
    part, the part's JSON file was lost.

    Raises:
        RecordError: rows of such a file exist nowhere else; none was deleted.
    """
    listed = {name for part in folder.committed_parts() for name in part.tables.values()}
    in_store = [] if folder.store is None else [n for n in folder.store.sizes() if n.partition("/")[0] in TABLES]
    for name in in_store:
        if name not in listed and _is_table_file(name) and folder.store is not None:
            folder.store.get_file(name, folder.path / name)
    orphans = [name for names in unlisted_files(folder, folder.committed_parts()).values() for name in names]
    for name in orphans:
        if missing := rows_nowhere_else(folder, name.partition("/")[0], name):
            raise RecordError(
                f"{folder.path / name} holds {missing:,} rows that no part lists: is parts/{Path(name).stem}.json "
                "lost? Restore it from a copy, or list the file again: "
                f"`moot verify {shlex.quote(str(folder.path))} --salvage`"
            )
    for name in orphans:
        (folder.path / name).unlink()
    if folder.store is not None:
        folder.store.delete([name for name in in_store if name not in listed])


def _is_table_file(name: str) -> bool:
    file = Path(name)
    return name == f"{file.parent}/{file.stem}.parquet" and is_part_name(file.stem)
