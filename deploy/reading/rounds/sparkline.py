"""Numbers as one line of characters."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
"""Levels from lowest to highest where the terminal's encoding has them."""

PLAIN = "_.:-=+*#"
"""The same in ASCII."""


def sparkline(values: Sequence[float | None], low: float, high: float, levels: str = BLOCKS, cells: int = 1) -> str:
    """A line of `cells` characters per value; an unknown value is a gap, the lowest known one is not.

    Args:
        low, high: ends of the scale; where they are equal every known value is on the lowest level.

    >>> sparkline([0.0, 0.5, None, 1.0], 0.0, 1.0)
    '▁▅ █'
    >>> sparkline([0.0, 0.5, None, 1.0], 0.0, 1.0, PLAIN, cells=2)
    '__==  ##'
    """
    return "".join(
        cells * (" " if value is None else levels[_level(value, low, high, len(levels))]) for value in values
    )


def _level(value: float, low: float, high: float, n: int) -> int:
    share = (value - low) / (high - low) if high > low else 0.0
    return min(n - 1, max(0, int(share * n)))
