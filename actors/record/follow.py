"""Follower of a record that another process writes: reads added rows, each about once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from moot.actors.record.compaction import stream_of
from moot.actors.record.completeness import complete_segments
from moot.actors.record.folder import RunFolder, Segment
from moot.actors.record.parts import columns_of, read_part
from moot.actors.record.roll_files import epoch_of, stream_of_segment
from moot.actors.record.schema import JOURNAL, TABLES, completed
from moot.actors.record.segments import SegmentFollower, has_checksums, read_segment

_CHUNK_BYTES = 4 * 2**20
_TABLES = ("cases", "turns", "events", "verdicts")


class Added(NamedTuple):
    """Rows that were added to the record.

    Attributes:
        table: `cases`, `turns`, `events` or `verdicts`.
        rows: with the requested columns; null in records older than a column.
        epoch: number of the owner that wrote them, or that compacted what earlier owners had left.
    """

    table: str
    rows: pa.Table
    epoch: int


class RecordFollower:
    """Follows a record: first its content, then what is added. Not for an event loop.

    A row may come twice when it was written twice. Rows that a live run wrote and compacted between two reads, just
    before it ended, may come from its parts alone. Use the rows for sums on a screen, not for results.

    Args:
        folder: of the run.
        columns: columns to read, by table.
        of_journal: further columns of `turns`, for rows from the journal.
    """

    def __init__(self, folder: RunFolder, columns: Mapping[str, Sequence[str]], of_journal: Sequence[str] = ()) -> None:
        self._folder, self._columns, self._of_journal = folder, columns, of_journal
        self._segments: dict[str, SegmentFollower | None] = {}
        self._parts: set[str] = set()

    def read(self) -> Iterator[Added]:
        """Rows added since the last call. Streams come in the order of flushing, so that a verdict comes after its
        replies.

        Raises:
            RecordError: the record cannot be read.
        """
        segments = complete_segments(self._folder)
        yield from self._new_parts()
        for stream in JOURNAL:
            table = "turns" if stream == "replies" else stream
            if table in self._columns:
                for segment in segments:
                    name = segment.path.name
                    if stream_of_segment(name) == stream and name not in self._segments:
                        yield from self._rows(table, self._begin(segment), name)
                for name, follower in self._segments.items():
                    while (
                        follower is not None
                        and stream_of_segment(name) == stream
                        and (rows := follower.read(_CHUNK_BYTES))
                    ):
                        yield from self._rows(table, rows, name)
        self._close_gone({segment.path.name for segment in segments})

    def _begin(self, segment: Segment) -> list[pa.RecordBatch]:
        """Begin to follow a segment; one of an earlier version is read whole here, because nobody appends to it."""
        name = segment.path.name
        try:
            if has_checksums(segment.path):
                self._segments[name] = SegmentFollower(segment.path, segment.valid_bytes)
                return []
            self._segments[name] = None
            return list(read_segment(*segment))
        except FileNotFoundError:  # a live run has just turned it into a part, which is read next time
            return []

    def _rows(self, table: str, batches: list[pa.RecordBatch], segment: str) -> Iterator[Added]:
        if not batches:
            return
        schema = JOURNAL[stream_of(table)]
        names = list(dict.fromkeys([*self._columns[table], *(self._of_journal if table == "turns" else [])]))
        rows = pa.Table.from_batches([completed(batch, schema).select(names) for batch in batches])
        yield Added(table, rows, epoch_of(segment))

    def _new_parts(self) -> Iterator[Added]:
        """Tables of new parts, except those whose segments have been followed."""
        for part in self._folder.committed_parts():
            for table in (name for name in _TABLES if name in part.tables and name in self._columns):
                if part.tables[table] in self._parts:
                    continue
                self._parts.add(part.tables[table])
                replaced = (name for name in part.covers if stream_of_segment(name) == stream_of(table))
                if not any(name in self._segments for name in replaced):
                    file = self._folder.table_file(part, table)
                    yield Added(table, self._part_rows(file, table), epoch_of(file.name))

    def _part_rows(self, path: Path, table: str) -> pa.Table:
        names, there = list(self._columns[table]), columns_of(path)
        rows = read_part(path, [name for name in names if name in there])
        for name in names:
            if name not in there:
                rows = rows.append_column(name, pa.nulls(rows.num_rows, TABLES[table].field(name).type))
        return rows.select(names)

    def _close_gone(self, there: set[str]) -> None:
        """Close segments that have become parts, once they were read to their ends; they stay known."""
        for name, follower in self._segments.items():
            if follower is not None and name not in there:
                follower.close()
                self._segments[name] = None

    def close(self) -> None:
        """Close the files."""
        self._close_gone(set())
