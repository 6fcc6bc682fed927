"""Rows of a record in the order they were written: those of committed parts, then those of the journal's segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.folder import Part, RunFolder
from moot.actors.record.part_index import PartIndex
from moot.actors.record.parts import read_groups, read_part
from moot.actors.record.schema import TABLES, completed
from moot.actors.record.segments import read_segment


def rows_as_written(
    folder: RunFolder, table: str, stream: str, columns: Sequence[str], case_ids: pa.Array | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a table; nobody may be writing meanwhile."""
    names = list(columns)
    chosen = None if case_ids is None else pc.field("case_id").isin(case_ids)
    for part in folder.committed_parts():
        if table in part.tables:
            yield from read_part(folder.table_file(part, table), names, chosen).to_batches()
    yield from _in_segments(folder, stream, names, case_ids)


@dataclass(frozen=True)
class Snapshot:
    """What was recorded of some cases at one moment; the parts of it may be read at any time, for they never change.

    Attributes:
        case_ids: of these cases.
        parts: the parts that were committed.
        segments: rows that lay in the journal's segments, by stream.
    """

    folder: RunFolder
    case_ids: list[str]
    parts: list[Part]
    segments: dict[str, list[pa.RecordBatch]]

    @classmethod
    def take(cls, folder: RunFolder, case_ids: Sequence[str], streams: Sequence[str]) -> Snapshot:
        """Read what lies in segments, while none of the cases' own writer changes: that is one roll of it at most."""
        chosen = sorted(set(case_ids))
        parts = folder.committed_parts()
        array = pa.array(chosen, pa.string())
        return cls(folder, chosen, parts, {each: list(_in_segments(folder, each, None, array)) for each in streams})

    def rows(self, table: str, stream: str, columns: Sequence[str], index: PartIndex) -> Iterator[pa.RecordBatch]:
        """The rows of a table; columns that came after they were written are null."""
        names = list(columns)
        schema = pa.schema([TABLES[table].field(name) for name in names])
        groups_of = index.groups_of(self.case_ids)
        chosen = pc.field("case_id").isin(pa.array(self.case_ids, pa.string()))
        for part in self.parts:
            if table in part.tables:
                path = self.folder.table_file(part, table)
                if groups := groups_of(path):
                    found = read_groups(path, groups, names).filter(chosen).to_batches()
                    yield from (completed(batch, schema) for batch in found)
        for batch in self.segments[stream]:
            yield completed(batch.select([name for name in names if name in batch.schema.names]), schema)


def _in_segments(
    folder: RunFolder, stream: str, names: list[str] | None, case_ids: pa.Array | None
) -> Iterator[pa.RecordBatch]:
    for path, valid in folder.segments(stream):
        try:
            for batch in read_segment(path, valid):
                if case_ids is not None:
                    batch = batch.filter(pc.is_in(batch["case_id"], value_set=case_ids))
                if batch.num_rows:
                    yield batch if names is None else batch.select(names)
        except FileNotFoundError:  # another writer has just turned its own into a part: none of these cases is its
            if case_ids is None:
                raise
