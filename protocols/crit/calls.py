"""How many calls CRIT makes."""

from __future__ import annotations

from moot.protocols.crit.settings import CritSettings


def most_readings(crit: CritSettings) -> int:
    """The most calls of one judge for one document."""
    readings = sum(int(crit.max_reasons**depth) for depth in range(crit.max_depth + 1))
    return min(crit.max_calls, readings)
