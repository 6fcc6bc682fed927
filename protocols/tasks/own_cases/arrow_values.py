"""Values of small Arrow batches as Python objects, none of which is larger than its bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moot.protocols.errors import TaskFileError
from moot.protocols.tasks.source import MAX_LINE

_AT_ONCE = 16
"""Rows converted to Python values at once."""

_OBJECT_BYTES = 40
"""Bytes of a Python object without its content, and of the reference to it."""


def batch_rows(batch: Any) -> Iterator[tuple[dict[str, Any] | None, int]]:
    """Rows of a batch as Python values, and about how many bytes each takes; None for a row of more than `MAX_LINE`."""
    for start in range(0, batch.num_rows, _AT_ONCE):
        piece = batch.slice(start, _AT_ONCE)
        size = _python_bytes(piece)
        if size <= MAX_LINE:
            yield from ((row, size // piece.num_rows) for row in piece.to_pylist())
            continue
        for place in range(piece.num_rows):
            row = piece.slice(place, 1)
            size = _python_bytes(row)
            yield row.to_pylist()[0] if size <= MAX_LINE else None, min(size, MAX_LINE)


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

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_dictionary(kind):
        return _is_read(kind.value_type)
    if types.is_struct(kind):
        return all(_is_read(kind.field(i).type) for i in range(kind.num_fields))
    plain = (types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_temporal)
    return any(test(kind) for test in plain) or _has_bytes(kind)


def _has_bytes(kind: Any) -> bool:
    import pyarrow.types as types

    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary)
    return any(test(kind) for test in tests)


def _python_bytes(batch: Any) -> int:
    return sum(map(_bytes_of, batch.columns))


def _bytes_of(column: Any) -> int:
    """About how many bytes its values take as Python objects. Those of categories, views and lists of nulls are far
    larger than the column."""
    import pyarrow.types as types

    kind, objects = column.type, len(column) * _OBJECT_BYTES
    if types.is_struct(kind):
        return objects + sum(_bytes_of(column.field(i)) for i in range(kind.num_fields))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return objects + _bytes_of(column.flatten())
    if types.is_dictionary(kind) and not _has_bytes(kind.value_type):
        return objects + _bytes_of(column.dictionary_decode())
    return objects + _text_bytes(column)


def _text_bytes(column: Any) -> int:
    """Bytes of texts, or of categories that are texts."""
    import pyarrow.compute as pc
    import pyarrow.types as types

    if types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary).take(column.indices)
    elif types.is_string_view(column.type):
        return _view_bytes(column)
    elif _has_bytes(column.type):
        lengths = pc.binary_length(column)
    else:
        return 0
    return int(pc.sum(pc.cast(lengths, "int64")).as_py() or 0)


def bytes_of_views(batch: Any) -> int:
    """Bytes of all texts that are views, of a batch that may be invalid. Many views may show one text."""
    return sum(map(_all_views, batch.columns))


def _all_views(column: Any) -> int:
    import pyarrow.types as types

    kind = column.type
    if types.is_struct(kind):
        return sum(_all_views(column.field(i)) for i in range(kind.num_fields))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _all_views(column.values)
    if types.is_dictionary(kind):
        return _all_views(column.dictionary)
    return _view_bytes(column) if types.is_string_view(kind) else 0


def _view_bytes(column: Any) -> int:
    import numpy as np

    views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)
    return int(views[column.offset : column.offset + len(column), 0].sum(dtype=np.int64))
