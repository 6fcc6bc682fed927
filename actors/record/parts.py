"""Reader of committed parts: Parquet files whose page checksums are verified, and whose sizes are bounded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from moot.protocols.arrow_sizes import text_bytes
from moot.protocols.errors import RecordError
from moot.protocols.parquet_pages import ColumnPages, ParquetLayout
from moot.protocols.regular_files import open_regular

Groups = Callable[[Path], list[int]]
"""Row groups of a part's file that may contain the requested rows, ascending."""

_MOST_BYTES, _MOST_TIMES = 2**29, 1000
"""Most bytes of a part when decoded, or most times its size if that is more. A roll has far less."""

_NUMBER_BYTES = 8


class PartReader:
    """Open Parquet file of a part.

    Texts are decoded as categories first: a page may repeat a long one for ever, and then it is not decoded at all.

    Args:
        file: the file, at least as long open as this.

    Attributes:
        names: of its columns.
        groups: number of its row groups.
    """

    def __init__(self, file: BinaryIO) -> None:
        status = os.fstat(file.fileno())
        self._stream = file
        self._layout = _layout(file, status)
        self._most_bytes = self._left_bytes = max(_MOST_BYTES, _MOST_TIMES * status.st_size)
        options: dict[str, Any] = {"page_checksum_verification": True, "pre_buffer": False}
        plain = pq.ParquetFile(file, **options)
        self._schema: pa.Schema = plain.schema_arrow
        self.names: list[str] = self._schema.names
        self.groups: int = plain.num_row_groups
        texts = [column.path for column in self._layout.columns if column.is_text]
        self._file = pq.ParquetFile(file, metadata=plain.metadata, read_dictionary=texts, **options)

    def read(self, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None) -> pa.Table:
        """Columns of some row groups, in the given order; all when None. Columns that are not there are skipped.

        Raises:
            ValueError: together with what was read before, they are larger than any part that was written.
            pyarrow.ArrowException, OSError: they cannot be read.
        """
        names = [name for name in (self.names if columns is None else columns) if name in self.names]
        chosen = range(self.groups) if groups is None else groups
        self._check_pages(set(names), set(chosen))
        pieces = [self._decoded(self._read_group(group, names).select(names)) for group in chosen]
        schema = pa.schema([self._schema.field(name) for name in names], self._schema.metadata)
        return pa.concat_tables(pieces) if pieces else schema.empty_table()

    def categories(self, column: str, group: int) -> pa.Array:
        """Distinct texts of a column in a row group. Raises like `read`."""
        self._check_pages({column}, {group})
        found = self._read_group(group, [column])[column].unique()
        return found.dictionary.take(found.indices) if pa.types.is_dictionary(found.type) else found

    def _read_group(self, group: int, names: list[str]) -> pa.Table:
        # pyarrow's threads release buffers of a Python file after a read has returned. One that does so while the
        # interpreter ends aborts the process (8 % of short programs).
        return self._file.read_row_group(group, columns=names, use_threads=False)

    def _check_pages(self, names: set[str], groups: set[int]) -> None:
        wanted = self._layout.pages(self._stream, names, groups)
        self._count(sum(map(_least_bytes, wanted)))
        if any(each.has_prefixes for each in wanted):
            raise ValueError("it is delta-encoded")

    def _count(self, size_bytes: int) -> None:
        if size_bytes > self._left_bytes:
            raise ValueError(f"decoded it takes more than {self._most_bytes >> 20:,} MiB")

    def _decoded(self, rows: pa.Table) -> pa.Table:
        """Rows with categories decoded to texts, if they are not too large."""
        size = rows.nbytes + sum(text_bytes(piece) for column in rows.columns for piece in column.chunks)
        self._count(size)
        self._left_bytes -= size
        return rows.cast(pa.schema([self._schema.field(name) for name in rows.column_names], rows.schema.metadata))


_LAYOUTS: dict[tuple[int, ...], ParquetLayout] = {}
"""Layouts of the files that were read last: reading one takes longer than reading a few rows."""

_MOST_LAYOUTS = 32


def _layout(file: BinaryIO, status: os.stat_result) -> ParquetLayout:
    key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    found = _LAYOUTS.get(key)
    if found is None:
        if len(_LAYOUTS) >= _MOST_LAYOUTS:
            _LAYOUTS.clear()
        found = _LAYOUTS[key] = ParquetLayout(file)
    return found


def _least_bytes(pages: ColumnPages) -> int:
    """Bytes of a column when its texts are categories."""
    return pages.bytes + _NUMBER_BYTES * pages.values


@contextmanager
def open_part(file: Path) -> Iterator[PartReader]:
    """Opens a Parquet file of a part.

    Raises:
        RecordError: it cannot be read, or is too large, here or in the body of the context.
    """
    try:
        with open_regular(file) as stream:
            yield PartReader(stream)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordError(f"{file} cannot be read: {reason}") from error


def columns_of(file: Path) -> set[str]:
    """Column names of a part. Raises like `open_part`."""
    with open_part(file) as part:
        return set(part.names)


def read_part(file: Path, columns: list[str]) -> pa.Table:
    """Reads those columns of a part that it has. Raises like `open_part`."""
    with open_part(file) as part:
        return part.read(columns)


def read_rows(file: Path, columns: list[str], keys: Sequence[str], only: pc.Expression) -> pa.Table:
    """Reads columns of the rows of a part that a filter on `keys` selects. Raises like `open_part`."""
    with open_part(file) as part:
        there = [group for group in range(part.groups) if part.read(keys, [group]).filter(only).num_rows]
        return part.read(columns, there).filter(only)


def read_groups(file: Path, groups: list[int], columns: list[str]) -> pa.Table:
    """Reads columns of some row groups of a part, in the given order; missing columns are skipped. Raises like
    `open_part`."""
    with open_part(file) as part:
        return part.read(columns, groups)


def groups_with(case_ids: Iterable[str]) -> Groups:
    """Selects the row groups of a part's file with rows of some cases; each file's ids are read once."""
    wanted = pa.array(sorted(set(case_ids)), pa.string())

    @cache
    def groups(file: Path) -> list[int]:
        with open_part(file) as part:
            there = ((number, part.categories("case_id", number)) for number in range(part.groups))
            return [number for number, ids in there if pc.any(pc.is_in(ids, value_set=wanted)).as_py()]

    return groups
