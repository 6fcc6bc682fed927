"""Read-only access to another run's replies: an in-memory index of those that count, whole rows from the files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from moot.actors.record.completeness import complete_segments
from moot.actors.record.folder import RunFolder
from moot.actors.record.parts import open_part
from moot.actors.record.roll_files import Part
from moot.actors.record.schema import TOKEN_COLUMNS, TURNS, completed
from moot.actors.record.segments import read_segment
from moot.actors.record.tables import effective_turns
from moot.protocols.errors import RecordError

Row = dict[str, Any]
"""Row of the journal's stream `replies`: token columns as Arrow arrays, without nulls."""

StepKey = tuple[str, int, str]
"""Case id, attempt, path."""

_INDEXED = ["case_id", "attempt", "path", "fingerprint", "outcome", "reply_id", "supersedes"]
_RACES = 5
_KEPT_BYTES = 64 * 2**20
_CONVERTED_TOGETHER = 16


class _Group(NamedTuple):
    """Row group of a Parquet file."""

    path: Path
    number: int


class HashIndex:
    """Hash index of row numbers by text, in sixteen bytes per row, a tenth of a dictionary of strings.

    Args:
        texts: one for each row, in order.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        digests = np.fromiter(map(_digest, texts), np.uint64, len(texts))
        self._order = np.argsort(digests, kind="stable")
        self._digests = digests[self._order]

    def find(self, text: str) -> list[int]:
        """Rows with that text in order and, once in 2^64, with another text: the caller compares."""
        digest = np.uint64(_digest(text))
        first, last = (int(np.searchsorted(self._digests, digest, side)) for side in ("left", "right"))
        found: list[int] = self._order[first:last].tolist()
        return found


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


class RecordedRun:
    """Recorded run: its replies on record when this was created; the folder is only read.

    A reply counts if it is the first of its key and no later one supersedes it. The constructor and `read` are slow:
    keep them off an event loop.

    Args:
        folder: of a run that is finished, still running, or was killed.

    Attributes:
        name: the folder's name.
        replies: one row per reply that counts, sorted by key: `case_id`, `attempt`, `path`, `fingerprint`, `outcome`,
            `reply_id`. Row numbers are indices into this table.

    Raises:
        RecordError: the folder has no run, or a part of it cannot be read.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = RunFolder(folder)
        self.name = self._folder.path.name
        if not self._folder.exists():
            raise RecordError(f"{folder}: no run there (no run.yaml)")
        self._kept: OrderedDict[_Group, pa.RecordBatch] = OrderedDict()
        for _ in range(_RACES):
            try:
                self._load()
                return
            except FileNotFoundError:  # a live run has just turned a segment into a part
                continue
            except (pa.ArrowException, OSError) as error:
                raise RecordError(f"{folder} cannot be read: {error}") from error
        raise RecordError(f"{folder} changes faster than it can be read; try again")

    def _load(self) -> None:
        self._sources: list[_Group | pa.RecordBatch] = []
        pieces, token_ids, self._token_places = [], list[str](), list[tuple[_Group, int]]()
        segments = complete_segments(self._folder, "replies")  # first: one that becomes a part is read twice
        for part in self._folder.committed_parts():
            for group, ids in self._groups(part, "tokens", ["reply_id"]):
                token_ids += ids["reply_id"].to_pylist()
                self._token_places += [(group, row) for row in range(ids.num_rows)]
            for group, turns in self._groups(part, "turns", _INDEXED):
                pieces.append(self._piece(group, turns))
        for segment in segments:
            for batch in read_segment(*segment):
                pieces.append(self._piece(batch, pa.Table.from_batches([batch.select(_INDEXED)])))
        self._tokens_by_id = HashIndex(token_ids)
        schema = pa.schema([*(TURNS.field(name) for name in _INDEXED), ("source", pa.int32()), ("row", pa.int64())])
        whole = pa.concat_tables([piece.cast(schema) for piece in pieces]) if pieces else schema.empty_table()
        keys = [("case_id", "ascending"), ("attempt", "ascending"), ("path", "ascending")]
        self.replies = effective_turns(whole).sort_by(keys).combine_chunks()

    def _groups(self, part: Part, table: str, columns: list[str]) -> Iterator[tuple[_Group, pa.Table]]:
        """Columns of each row group of a part's table."""
        if table not in part.tables:
            return
        path = self._folder.table_file(part, table)
        with open_part(path) as file:
            for number in range(file.groups):
                yield _Group(path, number), file.read(columns, [number])

    def _piece(self, source: _Group | pa.RecordBatch, turns: pa.Table) -> pa.Table:
        self._sources.append(source)
        number, rows = len(self._sources) - 1, turns.num_rows
        places = [pa.array(np.full(rows, number, np.int32)), pa.array(np.arange(rows, dtype=np.int64))]
        return turns.append_column("source", places[0]).append_column("row", places[1])

    def __len__(self) -> int:
        """Number of replies that count."""
        return int(self.replies.num_rows)

    def key(self, number: int) -> StepKey:
        """Key of a reply in its run."""
        case_id, attempt, path = (self.replies[name][number].as_py() for name in ("case_id", "attempt", "path"))
        return case_id, attempt, path

    def label(self, number: int) -> str:
        """Label of a reply, unique over runs: `RUN:CASE/ATTEMPT/PATH`."""
        return f"{self.name}:{'/'.join(map(str, self.key(number)))}"

    def read(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Read complete rows by row number.

        Raises:
            RecordError: a file cannot be read any more.
        """
        by_source: dict[int, list[tuple[int, int]]] = {}
        for number in set(numbers):
            source, row = (self.replies[name][number].as_py() for name in ("source", "row"))
            by_source.setdefault(source, []).append((row, number))
        found: dict[int, Row] = {}
        try:
            for source, members in sorted(by_source.items()):
                content = self._content(self._sources[source])
                chosen = _turns_of(content).take(pa.array([row for row, _ in members], pa.int64()))
                for (row, number), values in zip(members, _as_dicts(chosen), strict=True):
                    found[number] = values | self._tokens(content, row, values["reply_id"])
        except (pa.ArrowException, OSError) as error:
            raise RecordError(f"{self._folder.path} cannot be read: {error}") from error
        return found

    def _tokens(self, content: pa.RecordBatch, row: int, reply_id: str) -> Row:
        """Token columns of a reply: from its own row in a segment, from a separate table in a part."""
        if "token" in content.schema.names:
            return _token_values(content, row)
        for number in self._tokens_by_id.find(reply_id):
            group, place = self._token_places[number]
            tokens = self._content(group)
            if tokens["reply_id"][place].as_py() == reply_id:
                return _token_values(tokens, place)
        return {}

    def _content(self, source: _Group | pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a source; the last used Parquet row groups are cached."""
        if not isinstance(source, _Group):
            return source
        known = self._kept.pop(source, None)
        if known is None:
            with open_part(source.path) as file:
                known = _one_batch(file.read(None, [source.number]))
        self._kept[source] = known
        while len(self._kept) > 1 and sum(batch.get_total_buffer_size() for batch in self._kept.values()) > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return known


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _turns_of(content: pa.RecordBatch) -> pa.RecordBatch:
    """Columns of `turns`; those newer than the rows are null."""
    return completed(content.select([name for name in TURNS.names if name in content.schema.names]), TURNS)


def _as_dicts(rows: pa.RecordBatch) -> Iterator[Row]:
    """Rows as dictionaries, a few at a time: Arrow keeps the interpreter's lock while converting, and event loops
    wait."""
    for first in range(0, rows.num_rows, _CONVERTED_TOGETHER):
        yield from rows.slice(first, _CONVERTED_TOGETHER).to_pylist()


def _token_values(content: pa.RecordBatch, row: int) -> Row:
    """Token columns of a row that are not null; lists stay Arrow arrays.

    They are copied: a slice would keep its whole row group in memory.
    """
    copied = content.select(TOKEN_COLUMNS).take(pa.array([row], pa.int64()))
    scalars = {name: copied[name][0] for name in TOKEN_COLUMNS}
    return {
        name: scalar.values if pa.types.is_list(scalar.type) else scalar.as_py()
        for name, scalar in scalars.items()
        if scalar.is_valid
    }
