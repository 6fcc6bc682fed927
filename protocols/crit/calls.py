"""How many calls CRIT makes."""

from __future__ import annotations

from moot.protocols.crit.settings import CritSettings


def most_readings(crit: CritSettings) -> int:
    """The most calls of one judge for one document; it may name more reasons than it was asked for."""
    return crit.max_calls if crit.max_depth else 1
