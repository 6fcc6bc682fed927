"""Sizes of Arrow arrays with each value counted: categories and views may show one text any number of times."""

from __future__ import annotations

from typing import Any


def has_bytes(kind: Any) -> bool:
    """Whether a type's values are texts or byte strings."""
    import pyarrow.types as types

    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary)
    return any(test(kind) for test in tests)


def is_list(kind: Any) -> bool:
    """Whether a type is one of lists whose items lie one after the other."""
    import pyarrow.types as types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def text_bytes(array: Any) -> int:
    """Bytes of all texts of an array, of those in lists and structures, too. Each occurrence counts."""
    import pyarrow.types as types

    kind = array.type
    if types.is_struct(kind):
        return sum(text_bytes(array.field(i)) for i in range(kind.num_fields))
    if types.is_map(kind):
        return text_bytes(array.keys) + text_bytes(array.items)
    if is_list(kind):
        return text_bytes(array.flatten())
    if types.is_dictionary(kind):
        return _category_bytes(array)
    if types.is_string_view(kind):
        return view_bytes(array)
    return _sum(_lengths(array)) if has_bytes(kind) else 0


def view_bytes(array: Any) -> int:
    """Bytes of the texts of an array of views, which need not be valid."""
    import numpy as np

    views = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)
    return int(views[array.offset : array.offset + len(array), 0].sum(dtype=np.int64))


def _category_bytes(array: Any) -> int:
    return _sum(_lengths(array.dictionary).take(array.indices)) if has_bytes(array.type.value_type) else 0


def _lengths(texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_length(texts.cast(pa.large_string()) if pa.types.is_string_view(texts.type) else texts)


def _sum(lengths: Any) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(lengths).as_py() or 0)
