"""Rows of Parquet and Arrow files, a few in memory at a time; without pandas or `datasets`."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moot.protocols.errors import TaskFileError
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.source import MAX_LINE

_AT_ONCE = 16
"""Rows converted to Python values at once."""

_LARGEST_GROUP = 2**31
"""Most bytes of a decompressed row group, as declared in the file."""


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
            with _reading(name):
                _, batches = _opened(name, place, columns)
                line = 0
                for batch in batches():
                    _check_types(name, batch.schema)
                    for start in range(0, batch.num_rows, _AT_ONCE):
                        for values in _values(batch.slice(start, _AT_ONCE)):
                            line += 1
                            if values is None:
                                problem = TaskFileError(
                                    name, line, "", f"expected at most {MAX_LINE >> 20} MiB in a row"
                                )
                                yield Row(name, line, {}, problem)
                            else:
                                yield Row(name, line, values)

    def _first_file(self) -> tuple[tuple[str, ...], bytes | None]:
        """Columns of the first file, and the metadata of `datasets` in it."""
        if self._first is None:
            name, place = self._files[0]
            with _reading(name):
                schema = _opened(name, place, None)[0]
                self._first = tuple(schema.names), (schema.metadata or {}).get(b"huggingface")
        return self._first


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Converts pyarrow's errors on a broken file to user errors."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TaskFileError(name, 0, "", f"cannot be read as Parquet or Arrow: {reason}") from None


def _opened(name: str, place: Path, columns: list[str] | None) -> tuple[Any, Callable[[], Iterator[Any]]]:
    """Schema of a file, and a reader of its batches with these columns."""
    with place.open("rb") as stream:
        magic = stream.read(6)
    return _parquet(name, place, columns) if magic[:4] == b"PAR1" else _arrow(name, place, columns, magic == b"ARROW1")


def _parquet(name: str, place: Path, columns: list[str] | None) -> tuple[Any, Callable[[], Iterator[Any]]]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(place, pre_buffer=False)
    if columns is not None:
        _check_columns(name, file.schema_arrow.names, columns)
        _check_groups(name, file.metadata)
    return file.schema_arrow, lambda: file.iter_batches(batch_size=64, columns=columns, use_threads=False)


def _arrow(name: str, place: Path, columns: list[str] | None, random: bool) -> tuple[Any, Callable[[], Iterator[Any]]]:
    import pyarrow as pa

    mapped = pa.memory_map(str(place))
    reader: Any = pa.ipc.open_file(mapped) if random else pa.ipc.open_stream(mapped)
    if columns is not None:
        _check_columns(name, reader.schema.names, columns)

    def batches() -> Iterator[Any]:
        found = (reader.get_batch(i) for i in range(reader.num_record_batches)) if random else reader
        for batch in found:
            batch.validate(full=True)  # offsets of a foreign file may point anywhere
            yield batch.select(columns)

    return reader.schema, batches


def _check_columns(name: str, there: list[str], columns: list[str]) -> None:
    for column in columns:
        if there.count(column) != 1:
            raise TaskFileError(name, 0, column, "is there twice" if column in there else "is missing in this file")


def _check_groups(name: str, metadata: Any) -> None:
    # asking for a group's columns one by one would end the process on a broken file: pyarrow lets C++ throw there
    for group in range(metadata.num_row_groups):
        if metadata.row_group(group).total_byte_size > _LARGEST_GROUP:
            expected = f"expected row groups of at most {_LARGEST_GROUP >> 30} GiB, decompressed: write smaller ones"
            raise TaskFileError(name, 0, "", expected)


def _check_types(name: str, schema: Any) -> None:
    """Refuses types whose values can be far larger than their bytes in the file, and types that no case has."""
    import pyarrow as pa

    def is_plain(kind: Any) -> bool:
        return bool(
            pa.types.is_null(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_temporal(kind)
            or pa.types.is_string(kind)
            or pa.types.is_large_string(kind)
            or pa.types.is_string_view(kind)
            or pa.types.is_binary(kind)
            or pa.types.is_large_binary(kind)
        )

    def is_read(kind: Any) -> bool:
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            return is_read(kind.value_type)
        if pa.types.is_struct(kind):
            return all(is_read(kind.field(i).type) for i in range(kind.num_fields))
        return is_plain(kind)

    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not is_read(kind):
            raise TaskFileError(name, 0, field.name, f"expected texts, numbers, lists or objects, found {field.type}")


def _values(batch: Any) -> list[dict[str, Any] | None]:
    """Rows of a small batch as Python values; None for a row that is too large."""
    batch = _decoded(batch)
    if batch.nbytes <= MAX_LINE:
        found: list[dict[str, Any] | None] = batch.to_pylist()
        return found
    rows = (batch.slice(place, 1) for place in range(batch.num_rows))
    return [row.to_pylist()[0] if row.nbytes <= MAX_LINE else None for row in rows]


def _decoded(batch: Any) -> Any:
    """Batch with decoded categories, for categorical columns of pandas and `datasets`."""
    import pyarrow as pa

    columns = []
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            if column.dictionary.nbytes > MAX_LINE:
                raise pa.ArrowInvalid(f"expected at most {MAX_LINE >> 20} MiB of categories")
            column = column.dictionary_decode()
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
