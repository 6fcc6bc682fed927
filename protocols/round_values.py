"""Numbers of a debate by round, from its events: one value of each measure for the whole debate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from moot.protocols.events import GATE, RoundFigures

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

_MEASURES = {RoundFigures.kind: ROUND_MEASURES, GATE: ("d", "m")}


class RoundValues(NamedTuple):
    """Values of a debate in a round, by measure; None is unknown. A measure that the event lacks is left out."""

    round: int
    values: dict[str, float | None]


def read_round_values(kind: str, data: Mapping[str, Any]) -> RoundValues | None:
    """Values of an event of kind `round` or `gate`; None for any other event, and without any measure.

    D and M of a gate are those of the openings, which are round 0. The values are those of `RoundFigures`, which takes
    ten times as long: every event of a run is read here.

    >>> read_round_values("round", {"round": 1, "jsd": 0.5, "entropy": {"agent/0": 0.2, "agent/1": None}})
    RoundValues(round=1, values={'jsd': 0.5, 'entropy': None})
    """
    names = _MEASURES.get(kind, ())
    number = 0 if kind == GATE else data.get("round")
    if not names or type(number) is not int:
        return None
    values = {name: _value(data[name]) for name in names if name in data}
    return RoundValues(number, values) if values else None


def _value(figures: Any) -> float | None:
    """One value for the whole debate: of numbers by side the mean, of a list its length."""
    if isinstance(figures, dict):
        return mean_over_sides([_number(each) for each in figures.values()])
    return float(len(figures)) if isinstance(figures, list) else _number(figures)


def _number(value: Any) -> float | None:
    """The value if it is a number that a float can hold: one odd value of a user's protocol must not hide the others,
    nor fail its debates."""
    if type(value) not in (int, float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def mean_over_sides(values: Sequence[float | None]) -> float | None:
    """Mean over the sides, or pairs of sides; unknown if one is unknown, without any, or if their sum overflows."""
    known = [value for value in values if value is not None]
    mean = sum(known) / len(known) if known and len(known) == len(values) else math.inf
    return mean if math.isfinite(mean) else None
