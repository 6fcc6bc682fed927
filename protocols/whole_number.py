"""The one rule for whole numbers, such as scores, as models and files write them."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"([-+]?\d{1,15})(?:\.0*)?(?:\s*/\s*(\d{1,15})(?:\.0*)?)?", re.ASCII)


def whole_number(value: object, top: int | None = None) -> int | None:
    """The whole number that a value is; None for anything else. Raises nothing.

    A truth value is no number. So is a fraction, unless it is out of the scale's top score.

    Args:
        top: the highest score of the scale; None for what has no scale.

    >>> [whole_number(value, top=3) for value in (3, 3.0, "3", "3.0", "+3", "3/3")]
    [3, 3, 3, 3, 3, 3]
    >>> [whole_number(value, top=3) for value in (True, 2.5, "2.5", "3/5", "three", None)]
    [None, None, None, None, None, None]
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    found = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or (found[2] and int(found[2]) != top):
        return None
    return int(found[1])
