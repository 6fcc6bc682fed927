"""Bands of round measures: quantiles over the debates so far, round by round, from samples of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moot.deploy.results.rounds.round_trace import MEASURES, Measure, build_round_trace
from moot.protocols.events import RoundFigures

SAMPLED = 400
"""Most values kept of a measure in a round; beyond that, a uniform sample."""

_MOST_ROUNDS = 40
_SHARES = (0.10, 0.25, 0.50, 0.75, 0.90)


class Reservoir:
    """Uniform random sample of a stream of values (Vitter's algorithm R).

    Attributes:
        seen: number of values added.
    """

    def __init__(self, seed: int) -> None:
        self.seen = 0
        self._random = np.random.default_rng(seed)
        self._kept = np.zeros(SAMPLED)

    def add(self, value: float) -> None:
        """Add a value."""
        place = self.seen if self.seen < SAMPLED else int(self._random.integers(self.seen + 1))
        if place < SAMPLED:
            self._kept[place] = value
        self.seen += 1

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The sample; all values while they are few."""
        return self._kept[: min(self.seen, SAMPLED)]


class RoundBand(NamedTuple):
    """Quantiles of a measure over debates in a round, in display units; `n` is the number of values, of all sides."""

    round: int
    n: int
    low_10: float
    low_25: float
    median: float
    high_75: float
    high_90: float


class RoundBands:
    """Bands of every measure with a plot, see `MEASURES`; rounds beyond the 40th are skipped."""

    def __init__(self) -> None:
        self._samples: dict[tuple[str, int], Reservoir] = {}

    def add(self, figures: RoundFigures) -> None:
        """Add a round of a debate."""
        trace = build_round_trace([figures])
        if trace is None or not 0 <= trace.rounds[0] <= _MOST_ROUNDS:
            return
        for series in trace.series:
            value = series.shown[0]
            if series.measure.panel is not None and value is not None:
                key = (series.key, trace.rounds[0])
                if key not in self._samples:
                    self._samples[key] = Reservoir(len(self._samples))
                self._samples[key].add(value)

    def bands(self) -> Iterator[tuple[Measure, list[RoundBand]]]:
        """Each measure with values, with its rounds."""
        for measure in MEASURES:
            rounds = sorted(number for key, number in self._samples if key == measure.key)
            found = [(number, self._samples[measure.key, number]) for number in rounds]
            if found:
                yield measure, [RoundBand(n, s.seen, *map(float, np.quantile(s.values, _SHARES))) for n, s in found]
