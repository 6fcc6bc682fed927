"""The levels of contentiousness from the opening to the joint proposal."""

from __future__ import annotations

from typing import Literal

from moot.protocols.contentiousness import FLOOR

Schedule = Literal["geometric", "three-phase", "fixed"]
"""Schedule of contentiousness; see `next_level`."""

RENAMED = {"two-phase": "fixed"}
"""New name by old name of a schedule: every debate ends with a joint proposal at `CONCILIATION`, its second phase."""

DELTA = 1.2
"""Default divisor of the geometric schedule after each round: delta of the source's pseudo-code."""

PHASES = (0.7, 0.5, FLOOR)
"""The three phases of the source's text after the opening, one round each."""

CONCILIATION = 0.3
"""The level of the joint proposal."""


def next_level(schedule: Schedule, number: int, before: float, delta: float = DELTA) -> float | None:
    """The level of refutation round `number` (from 1); None if the schedule has ended.

    - `geometric`: the last level divided by delta, as long as that is above 0.1: twelve rounds from 0.9 by 1.2
      (pseudo-code).
    - `three-phase`: 0.7, then 0.5, then 0.1 (text); never above the last level.
    - `fixed`: the last level, so 0.9 until something else ends the rounds (case studies).

    Args:
        before: the level of the previous round, which a person may have set.
        delta: at least 1.
    """
    if schedule == "fixed":
        return before
    if schedule == "three-phase":
        return min(before, PHASES[number - 1]) if number <= len(PHASES) else None
    level = before / delta
    return level if level > FLOOR else None
