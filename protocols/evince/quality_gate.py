"""The quality gate: whether an argument is put before the other sides, and the numbers behind the decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from moot.protocols.evince.settings import GateSettings


@dataclass(frozen=True, slots=True)
class GateDecision:
    """What the gate said of a turn.

    Attributes:
        on: whether there is a gate at all.
        threshold: the bar for this turn, in [0, 1]; None without a gate.
        crit: the turn's score; None when unknown.
        passed: whether the others see the arguments.
        why: in words.
    """

    on: bool
    threshold: float | None
    crit: float | None
    passed: bool
    why: str

    def record(self) -> dict[str, Any]:
        """As the event `quality-gate` holds it."""
        return asdict(self)


NO_GATE = "the gate is off"


def gate_of(crit: float | None, earlier: Sequence[float], quality: GateSettings, *, on: bool) -> GateDecision:
    """Let an argument through, or withhold it; see `GateSettings` for the bar.

    An argument whose score is unknown passes: that no judge could read it says nothing about it.

    Args:
        crit: the turn's score.
        earlier: the known scores that it is compared with, of all sides.
    """
    if not on:
        return GateDecision(False, None, crit, True, NO_GATE)
    bar = max(quality.threshold, fmean(earlier) - quality.margin) if earlier else quality.threshold
    if crit is None:
        return GateDecision(True, bar, None, True, "no judge gave a score")
    passed = crit >= bar
    return GateDecision(True, bar, crit, passed, "at or above the bar" if passed else "below the bar")
