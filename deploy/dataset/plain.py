"""What lies in a batch's cell as plain data: texts, numbers, bytes, lists and mappings; None for what is missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """A cell's value, NaN and null as None, arrays as lists, and what has no plain form as its text.

    >>> import numpy as np
    >>> plain(np.array(["a", None])), plain(float("nan")), plain(np.int64(3)), plain({"x": np.float32(0.5)})
    (['a', None], None, 3, {'x': 0.5})
    """
    if value is None or isinstance(value, str | bytes | bool | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if hasattr(value, "tolist"):  # an array or scalar of numpy
        return plain(value.tolist())
    return None if str(value) in ("NaT", "<NA>") else str(value)
