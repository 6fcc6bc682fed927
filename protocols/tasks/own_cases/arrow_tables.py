"""Rows of Parquet and Arrow files, a few in memory at a time; without pandas or `datasets`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from moot.protocols.arrow_messages import check_messages, stream_of
from moot.protocols.errors import TaskFileError
from moot.protocols.parquet_pages import Column, ParquetLayout
from moot.protocols.regular_files import map_regular, open_regular
from moot.protocols.tasks.own_cases.arrow_values import batch_rows, bytes_of_views, check_types
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.source import MAX_LINE, MOST_COLUMNS

_LARGEST_PAGES = 2**30
"""Most bytes of the pages of all columns that are decompressed at once, and of an Arrow batch."""

_BATCH_BYTES, _BATCH_ROWS = 2**26, 256
"""Most bytes of a batch of a Parquet file, as long as one row is not larger, and most rows."""

_MOST_NESTED = 2**26
"""Most items of the lists of a column in one row group: the decoder looks through them for the end of a row."""

_MOST_BYTES, _MOST_TIMES = 2**34, 1000
"""Most bytes of all rows of a file, or most times its size if that is more."""


class ArrowTable:
    """Table in Parquet or Arrow files, all with the columns of the first.

    Args:
        file: the file or folder as the user named it, for errors of the whole.
        files: each file's name for errors, and its path; at least one.
    """

    def __init__(self, file: str, files: Collection[tuple[str, Path]]) -> None:
        self.file = file
        self._files = tuple(files)
        self._first: tuple[tuple[str, ...], bytes | None] | None = None

    def header(self) -> tuple[str, ...]:
        """Names of the columns.

        Raises:
            TaskFileError: the first file cannot be read.
        """
        return self._first_file()[0]

    def class_names(self) -> Mapping[str, tuple[str, ...]]:
        """Names of whole numbers by column, where `datasets` has written them into the file.

        Raises:
            TaskFileError: see `header`.
        """
        written = self._first_file()[1]
        try:
            features = json.loads(written)["info"]["features"] if written else {}
            return {
                column: tuple(map(str, feature["names"]))
                for column, feature in features.items()
                if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and feature.get("names")
            }
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}

    def rows(self, wanted: Collection[str] | None = None) -> Iterator[Row]:
        """Rows; `line` is a row's index in its file, from 1.

        Args:
            wanted: columns to read; None for all.

        Raises:
            TaskFileError: a file cannot be read, lacks a column, or has one that is too large or of a type that no
                field of a case has.
        """
        columns = [name for name in self.header() if wanted is None or name in wanted]
        for name, place in self._files:
            with _opened(name, place, columns) as (_, batches):
                line = 0
                most = left = _most_bytes(place.stat().st_size)
                for batch in batches:
                    check_types(name, batch.schema)
                    for values, size in batch_rows(batch):
                        line, left = line + 1, left - size
                        if left < 0:
                            raise TaskFileError(name, line, "", f"expected at most {most >> 30:,} GiB in all rows")
                        if values is None:
                            problem = TaskFileError(name, line, "", f"expected at most {MAX_LINE >> 20} MiB in a row")
                            yield Row(name, line, {}, problem)
                        else:
                            yield Row(name, line, values)

    def _first_file(self) -> tuple[tuple[str, ...], bytes | None]:
        """Columns of the first file, and the metadata of `datasets` in it."""
        if self._first is None:
            name, place = self._files[0]
            with _opened(name, place, None) as (schema, _):
                if len(schema.names) > MOST_COLUMNS:
                    raise TaskFileError(name, 0, "", f"expected at most {MOST_COLUMNS:,} columns")
                self._first = tuple(schema.names), (schema.metadata or {}).get(b"huggingface")
        return self._first


def _most_bytes(size_bytes: int) -> int:
    """Most bytes of all rows of a file: a page or a batch may repeat a text for ever."""
    return max(_MOST_BYTES, _MOST_TIMES * size_bytes)


_Opened = tuple[Any, Iterator[Any]]
"""Schema of a file, and its batches with some columns."""


@contextmanager
def _opened(name: str, place: Path, columns: list[str] | None) -> Iterator[_Opened]:
    """Opens a file; without columns for its schema only. Converts errors on a broken file to user errors."""
    import pyarrow as pa

    try:
        with open_regular(place) as stream:
            magic = stream.read(4)
            yield _parquet(name, stream, columns) if magic == b"PAR1" else _arrow(name, place, columns)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:200]
        raise TaskFileError(name, 0, "", f"cannot be read as Parquet or Arrow: {reason}") from None


def _parquet(name: str, stream: BinaryIO, columns: list[str] | None) -> _Opened:
    import pyarrow.parquet as pq

    if columns is None:
        return pq.ParquetFile(stream, pre_buffer=False).schema_arrow, iter(())
    largest: dict[Column, int] = {}
    for pages in ParquetLayout(stream).pages(stream, columns):
        largest[pages.column] = max(largest.get(pages.column, 0), pages.largest_bytes)
        if pages.column.is_nested and (pages.has_prefixes or pages.values > _MOST_NESTED):
            expected = f"expected lists of at most {_MOST_NESTED:,} items in a row group, not delta-encoded"
            raise TaskFileError(name, 0, pages.column.path, expected)
    if sum(largest.values()) > _LARGEST_PAGES:
        expected = f"expected pages of at most {_LARGEST_PAGES >> 20:,} MiB, decompressed: write smaller ones"
        raise TaskFileError(name, 0, "", expected)
    # Texts in lists stay categories until their sizes are known: a row may have any number of them.
    lists = {column.path for column in largest if column.is_nested and column.is_text}
    file = pq.ParquetFile(stream, pre_buffer=False, read_dictionary=list(lists))
    _check_columns(name, file.schema_arrow.names, columns)
    rows = _BATCH_BYTES // max(1, sum(size for column, size in largest.items() if column.path not in lists))
    rows = max(1, min(rows, _BATCH_ROWS))
    return file.schema_arrow, file.iter_batches(batch_size=rows, columns=columns, use_threads=False)


def _arrow(name: str, place: Path, columns: list[str] | None) -> _Opened:
    import pyarrow as pa

    content = pa.py_buffer(map_regular(place))
    schema = pa.ipc.open_stream(stream_of(content)).schema
    if columns is None:
        return schema, iter(())
    _check_columns(name, schema.names, columns)
    check_messages(content, _LARGEST_PAGES)
    options = pa.ipc.IpcReadOptions(included_fields=[schema.names.index(column) for column in columns])

    def batches() -> Iterator[Any]:
        for batch in pa.ipc.open_stream(stream_of(content), options=options):
            if bytes_of_views(batch) > _most_bytes(content.size):
                raise ValueError(f"expected texts of at most {_most_bytes(content.size) >> 30:,} GiB")
            batch.validate(full=True)  # offsets of a foreign file may point anywhere
            yield batch

    return schema, batches()


def _check_columns(name: str, there: list[str], columns: list[str]) -> None:
    for column in columns:
        if there.count(column) != 1:
            raise TaskFileError(name, 0, column, "is there twice" if column in there else "is missing in this file")
