"""Numbers of a debate by round, from its events: one value of each measure for the whole debate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from moot.protocols.events import GATE, DebateEvent, Figures, Finite, OrNone, RoundFigures

ROUND_MEASURES = (
    "kappa",
    "d",
    "changed",
    "wd",
    "jsd",
    "generalised_jsd",
    "kl",
    "mi",
    "nmi",
    "entropy",
    "mixture_entropy",
    "ce",
    "information_gain",
    "crit",
    "gamma",
)
"""Fields of `RoundFigures` with a number in each round."""

ROUND_EVENTS = (RoundFigures.kind, GATE)
"""Kinds of the events with values by round."""

MISALIGNMENT = "m"
"""Measure of the openings alone, which a gate notes."""


class GateFigures(DebateEvent):
    """Figures of the openings that a gate notes, which are those of round 0.

    Attributes:
        d: disagreement D of the answers, in [0, 2].
        m: misalignment M, in [0, 1].
    """

    kind: ClassVar[str] = GATE

    d: OrNone[Finite] = None
    m: OrNone[Finite] = None


class RoundValues(NamedTuple):
    """Values of a debate in a round, by measure; None is unknown. A measure that the event lacks is left out."""

    round: int
    values: dict[str, float | None]


def read_round_values(kind: str, data: Mapping[str, Any], path: str = "") -> RoundValues | None:
    """Values of an event of kind `round` or `gate`; None for any other event, and without any measure.

    >>> read_round_values("round", {"round": 1, "jsd": 0.5, "entropy": {"agent/0": 0.2, "agent/1": None}})
    RoundValues(round=1, values={'jsd': 0.5, 'entropy': None})
    """
    if kind == GATE:
        gate = GateFigures.read(dict(data))
        values: dict[str, float | None] = {}
        if gate is not None:
            values = {name: getattr(gate, name) for name in ("d", MISALIGNMENT) if name in gate.model_fields_set}
        return RoundValues(0, values) if values else None
    if kind != RoundFigures.kind or (figures := RoundFigures.read(dict(data), path)) is None:
        return None
    found = {name: value_of(getattr(figures, name)) for name in ROUND_MEASURES if name in figures.model_fields_set}
    return RoundValues(figures.round, found) if found else None


def value_of(figures: Figures) -> float | None:
    """One value for the whole debate: of numbers by side the mean, of a list its length."""
    if isinstance(figures, dict):
        return mean_over_sides(list(figures.values()))
    return float(len(figures)) if isinstance(figures, list) else figures


def mean_over_sides(values: Sequence[float | None]) -> float | None:
    """Mean over the sides, or pairs of sides; unknown if one is unknown, or without any."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
