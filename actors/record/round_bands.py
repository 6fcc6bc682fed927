"""Round measures over debates: mergeable histograms by measure and round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from moot.metrics.online.value_histogram import ValueHistogram
from moot.protocols.round_values import RoundValues

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
K = TypeVar("K")

LAST_ROUND = 100
"""Last round that is counted: a user's protocol may number without bound, and memory must not grow with it."""

_SHARES = (0.10, 0.25, 0.50, 0.75, 0.90)


class RoundKey(NamedTuple):
    """Key of a histogram."""

    measure: str
    round: int


@dataclass(frozen=True, slots=True, eq=False)
class RoundBands:
    """A measure by round, over debates.

    Attributes:
        round: `(R,)`, in the protocol's count, ascending.
        n: `(R,)`, number of known values.
        unknown: `(R,)`, number of unknown ones, which are in none of the following.
        mean: `(R,)`, NaN where n is 0, as are all the following.
        low_10, low_25, median, high_75, high_90: `(R,)`, quantiles, with the error of `ValueHistogram`.
    """

    round: Ints
    n: Ints
    unknown: Ints
    mean: Floats
    low_10: Floats
    low_25: Floats
    median: Floats
    high_75: Floats
    high_90: Floats

    def known(self) -> RoundBands:
        """The rounds with a known value."""
        return RoundBands(*(getattr(self, name)[self.n > 0] for name in self.__slots__))

    @classmethod
    def of(cls, by_round: Mapping[int, ValueHistogram]) -> RoundBands:
        """Bands of histograms by round."""
        rounds = sorted(by_round)
        found = [by_round[number] for number in rounds]
        quantiles = np.array([each.quantiles(_SHARES) for each in found]).reshape(len(found), len(_SHARES))
        return cls(
            np.array(rounds, np.int64),
            np.array([each.n for each in found], np.int64),
            np.array([each.unknown for each in found], np.int64),
            np.array([each.mean for each in found], np.float64),
            *quantiles.T,
        )


@dataclass(frozen=True, slots=True, eq=False)
class RoundSums:
    """Histograms of debates' values by measure and round.

    Attributes:
        kept: histograms by key.
        left_out: number of events of rounds that are not in 0 to `LAST_ROUND`.
    """

    kept: Mapping[RoundKey, ValueHistogram] = field(default_factory=dict)
    left_out: int = 0

    @classmethod
    def of(cls, rounds: Iterable[RoundValues]) -> RoundSums:
        """Histograms of some rounds of debates."""
        values: dict[RoundKey, list[float]] = {}
        left_out = 0
        for each in rounds:
            if not 0 <= each.round <= LAST_ROUND:
                left_out += 1
                continue
            for measure, value in each.values.items():
                values.setdefault(RoundKey(measure, each.round), []).append(np.nan if value is None else value)
        return cls({key: ValueHistogram.of(np.array(found, np.float64)) for key, found in values.items()}, left_out)

    def merge(self, other: RoundSums) -> RoundSums:
        """Sum of both."""
        return RoundSums(merged_histograms(self.kept, other.kept), self.left_out + other.left_out)

    def without(self, other: RoundSums) -> RoundSums:
        """Difference, after rounds that were counted before are taken out."""
        taken = {key: ValueHistogram.empty().without(histogram) for key, histogram in other.kept.items()}
        return RoundSums(merged_histograms(self.kept, taken), self.left_out - other.left_out)

    def measures(self) -> list[str]:
        """Names of the measures, sorted."""
        return sorted({key.measure for key in self.kept})

    def bands(self, measure: str) -> RoundBands:
        """Bands of a measure; without rounds if it has none."""
        return RoundBands.of({key.round: each for key, each in self.kept.items() if key.measure == measure})


def merged_histograms(some: Mapping[K, ValueHistogram], others: Mapping[K, ValueHistogram]) -> dict[K, ValueHistogram]:
    """Sums of the histograms by key, without empty ones."""
    merged = dict(some)
    for key, histogram in others.items():
        merged[key] = merged[key].merge(histogram) if key in merged else histogram
    return {key: histogram for key, histogram in merged.items() if not histogram.is_empty}
