"""The natural order of paths."""

from __future__ import annotations


def natural(path: str) -> tuple[tuple[int, int, str], ...]:
    """A key that orders the numbers in paths as numbers.

    >>> natural("round/2/agent/0") < natural("round/10/agent/0")
    True
    """
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in path.split("/"))
