"""A debate's numbers, round by round, from its `round` events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from moot.deploy.reading.frozen import Frozen
from moot.deploy.reading.natural import natural
from moot.deploy.reading.rounds.measures import BY_KEY, MEASURES, Measure
from moot.deploy.reading.text import number


class Series(Frozen):
    """One number over the rounds.

    Attributes:
        key: the measure's, see `MEASURES`.
        name: as it is shown.
        of: the side, or the pair of sides, that it is of; empty for the whole debate.
        values: one per round of the trace, as recorded; None is unknown, never 0.
    """

    key: str
    name: str
    of: str
    values: list[float | None]

    @property
    def measure(self) -> Measure:
        """What it is a series of."""
        return BY_KEY[self.key]

    @property
    def shown(self) -> list[float | None]:
        """The values as people see them, in the measure's unit."""
        return [None if value is None else self.measure.times * value for value in self.values]

    @property
    def title(self) -> str:
        """Its name with whom it is of."""
        return f"{self.name} {self.of}" if self.of else self.name


class Trace(Frozen):
    """The numbers of a debate: its rounds as the protocol counts them, and series in the order of `MEASURES`."""

    rounds: list[int]
    series: list[Series]


def trace_of(rounds: Iterable[tuple[str, Mapping[str, Any]]]) -> Trace | None:
    """The trace of a debate; None when it has no round, or none of its numbers are known to `MEASURES`.

    Args:
        rounds: path and data of the `round` events, in any order.
    """
    numbered = [(path, data) for path, data in rounds if _round_of(data) is not None]
    ordered = [data for _, data in sorted(numbered, key=lambda each: natural(each[0]))]
    series = [one for measure in MEASURES for one in _series(measure, ordered)]
    if not series:
        return None
    return Trace(rounds=[n for data in ordered if (n := _round_of(data)) is not None], series=series)


def _round_of(data: Mapping[str, Any]) -> int | None:
    found = data.get("round")
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _series(measure: Measure, rounds: Sequence[Mapping[str, Any]]) -> Iterable[Series]:
    found = [data.get(measure.key) for data in rounds]
    sides = {str(side): None for value in found if isinstance(value, Mapping) for side in value}
    for side in sorted(sides, key=natural):
        values = [_number(value.get(side)) if isinstance(value, Mapping) else None for value in found]
        yield Series(key=measure.key, name=measure.name, of=side, values=values)
    if not sides and any(measure.key in data for data in rounds):
        values = [float(len(value)) if isinstance(value, list) else _number(value) for value in found]
        yield Series(key=measure.key, name=measure.name, of="", values=values)


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return float(value) if known else None


def aligned(values: Sequence[float | None], digits: int = 3) -> list[str]:
    """Numbers in words, all with as many digits as the longest of them needs; `unknown` among them stays.

    >>> aligned([0.9, 0.75, None]), aligned([3.0, 0.0])
    (['0.90', '0.75', 'unknown'], ['3', '0'])
    """
    written = [number(value, digits).partition(".")[2] for value in values if value is not None]
    longest = max(map(len, written), default=0)
    return [number(None) if value is None else f"{value:.{longest}f}" for value in values]
