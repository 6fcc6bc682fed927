"""Values of small Arrow batches as Python objects, none of which is larger than its bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moot.protocols.arrow_sizes import has_bytes, is_list, text_bytes, view_bytes
from moot.protocols.errors import TaskFileError
from moot.protocols.tasks.source import MAX_LINE

_AT_ONCE = 16
"""Rows converted to Python values at once."""

_MEASURED = 1024
"""Rows whose size is taken at once."""

_OBJECT_BYTES = 40
"""Bytes of a Python object without its content, and of the reference to it."""


def batch_rows(batch: Any) -> Iterator[tuple[dict[str, Any] | None, int]]:
    """Rows of a batch as Python values, and about how many bytes each takes; None for a row of more than `MAX_LINE`."""
    for start in range(0, batch.num_rows, _MEASURED):
        yield from _rows(batch.slice(start, _MEASURED))


def _rows(piece: Any) -> Iterator[tuple[dict[str, Any] | None, int]]:
    size, count = _python_bytes(piece), piece.num_rows
    if size <= MAX_LINE:
        for start in range(0, count, _AT_ONCE):
            yield from ((row, size // count) for row in piece.slice(start, _AT_ONCE).to_pylist())
    elif count == 1:
        yield None, MAX_LINE
    else:
        half = count // 2
        yield from _rows(piece.slice(0, half))
        yield from _rows(piece.slice(half))


def check_types(name: str, schema: Any) -> None:
    """Refuses types that no field of a case has.

    Raises:
        TaskFileError: naming the column.
    """
    for field in schema:
        if not _is_read(field.type):
            raise TaskFileError(name, 0, field.name, f"expected texts, numbers, lists or objects, found {field.type}")


def _is_read(kind: Any) -> bool:
    import pyarrow.types as types

    if is_list(kind) or types.is_dictionary(kind):
        return _is_read(kind.value_type)
    if types.is_struct(kind):
        return all(_is_read(kind.field(i).type) for i in range(kind.num_fields))
    plain = (types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_temporal)
    return any(test(kind) for test in plain) or has_bytes(kind)


def bytes_of_views(batch: Any) -> int:
    """Bytes of all texts that are views, of a batch that may be invalid: validating reads each of them."""
    return sum(map(_all_views, batch.columns))


def _all_views(column: Any) -> int:
    import pyarrow.types as types

    kind = column.type
    if types.is_struct(kind):
        return sum(_all_views(column.field(i)) for i in range(kind.num_fields))
    if is_list(kind):
        return _all_views(column.values)
    if types.is_dictionary(kind):
        return _all_views(column.dictionary)
    return view_bytes(column) if types.is_string_view(kind) else 0


def _python_bytes(batch: Any) -> int:
    """About how many bytes the values of a batch take as Python objects."""
    return sum(text_bytes(column) + _OBJECT_BYTES * _objects(column) for column in batch.columns)


def _objects(column: Any) -> int:
    """Number of Python objects: a list of nulls takes no byte in a file."""
    import pyarrow.types as types

    if types.is_struct(column.type):
        return len(column) + sum(_objects(column.field(i)) for i in range(column.type.num_fields))
    return len(column) + (_objects(column.flatten()) if is_list(column.type) else 0)
