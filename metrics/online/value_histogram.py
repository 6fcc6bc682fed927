"""Online distribution of one quantity: a sparse histogram over all real numbers, with its sum; mergeable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats
from moot.metrics.online.quantile_bands import LogprobBins

Ints = npt.NDArray[np.int64]

BINS = LogprobBins(0.005, 1e-4)
"""Bins of a value's distance from 0; the error of a quantile is at most 0.25 % for a distance in [0.0001, 100]."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueHistogram:
    """Counts of values by bin.

    Attributes:
        bins: `(C,)`, ascending: 0 for values closer to 0 than 0.0001, else the number of the bin of the value's
            distance from 0, negative for a negative value.
        counts: `(C,)`, number of values in each.
        total: sum of the known values.
        unknown: number of unknown values, which are in no bin.

    >>> some = ValueHistogram.of(np.array([0.2, 0.0, np.nan])).merge(ValueHistogram.of(np.array([-0.4])))
    >>> some.n, some.unknown, round(some.mean, 3), some.quantiles((0.0, 0.5, 1.0)).round(2).tolist()
    (3, 1, -0.067, [-0.4, 0.0, 0.2])
    >>> some.without(ValueHistogram.of(np.array([-0.4, np.nan]))).counts.tolist()
    [1, 1]
    """

    bins: Ints
    counts: Ints
    total: float
    unknown: int

    @classmethod
    def empty(cls) -> ValueHistogram:
        """Histogram of no value."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), 0.0, 0)

    @classmethod
    def of(cls, values: Floats) -> ValueHistogram:
        """Histogram of values `(N,)`; NaN is unknown."""
        known = values[~np.isnan(values)]
        distance = np.abs(known)
        number = np.where(distance < BINS.surest, 0, BINS.count - BINS.index(-distance))
        bins, counts = np.unique(np.sign(known).astype(np.int64) * number, return_counts=True)
        return cls(bins, counts.astype(np.int64), float(known.sum()), len(values) - len(known))

    def merge(self, other: ValueHistogram) -> ValueHistogram:
        """Histogram of the values of both."""
        return self._combined(other, 1)

    def without(self, other: ValueHistogram) -> ValueHistogram:
        """Histogram after values that were counted before are taken out."""
        return self._combined(other, -1)

    def _combined(self, other: ValueHistogram, times: int) -> ValueHistogram:
        bins, inverse = np.unique(np.concatenate((self.bins, other.bins)), return_inverse=True)
        counts = np.zeros(len(bins), np.int64)
        np.add.at(counts, inverse, np.concatenate((self.counts, times * other.counts)))
        kept = counts != 0
        total = self.total + times * other.total
        return ValueHistogram(bins[kept], counts[kept], total, self.unknown + times * other.unknown)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is counted: a difference may count values of some bins less often than those of others."""
        return not len(self.bins) and not self.unknown

    @property
    def n(self) -> int:
        """Number of known values."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean of the known values; NaN without any."""
        return self.total / self.n if self.n else float("nan")

    def quantiles(self, shares: tuple[float, ...]) -> Floats:
        """Quantiles `(len(shares),)`: the centre of the bin of the smallest value that at least the given share does
        not exceed; NaN without a known value."""
        if not self.n:
            return np.full(len(shares), np.nan)
        ranks = np.maximum(np.ceil(np.asarray(shares) * self.n - 1e-9), 1.0)
        number = self.bins[np.searchsorted(np.cumsum(self.counts), ranks)]
        distance = -BINS.centre(BINS.count - np.abs(number))
        return np.where(number == 0, 0.0, np.sign(number) * distance)
