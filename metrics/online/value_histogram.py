"""Online distribution of one quantity: a sparse histogram over all real numbers, with sums by bin; mergeable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats
from moot.metrics.online.quantile_bands import LogprobBins

Ints = npt.NDArray[np.int64]

BINS = LogprobBins(0.005, 1e-4)
"""Bins of a value's distance from 0, up to `_MOST`; further out there is one for each power of 2."""

_MOST, _LAST_NARROW = 100.0, 6
"""End of the narrow bins, and the exponent of 2 before it."""

_UNIT = 2.0**64
"""Unit of the sums: those of the largest numbers do not overflow."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueHistogram:
    """Counts of values by bin.

    The error of a quantile is at most 0.25 % for a distance from 0 in [0.0001, 100], 0.0001 below, and a factor of 1.42
    above. Values of a bin are of one size: those that are taken out leave no error of their size in the mean.

    Attributes:
        bins: `(C,)`, ascending: 0 for values closer to 0 than 0.0001, else the number of the bin of the value's
            distance from 0, negative for a negative value.
        counts: `(C,)`, number of values in each.
        sums: `(C,)`, sum of the values in each, in units of 2^64.
        unknown: number of unknown values, which are in no bin.

    >>> some = ValueHistogram.of(np.array([0.2, 0.0, np.nan])).merge(ValueHistogram.of(np.array([-0.4])))
    >>> some.n, some.unknown, round(some.mean, 3), some.quantiles((0.0, 0.5, 1.0)).round(2).tolist()
    (3, 1, -0.067, [-0.4, 0.0, 0.2])
    >>> some.without(ValueHistogram.of(np.array([-0.4, np.nan]))).counts.tolist()
    [1, 1]
    """

    bins: Ints
    counts: Ints
    sums: Floats
    unknown: int

    @classmethod
    def empty(cls) -> ValueHistogram:
        """Histogram of no value."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), 0)

    @classmethod
    def of(cls, values: Floats) -> ValueHistogram:
        """Histogram of values `(N,)`; what is not finite is unknown."""
        known = values[np.isfinite(values)]
        bins, inverse, counts = np.unique(_bins(known), return_inverse=True, return_counts=True)
        sums = np.bincount(inverse, known / _UNIT, len(bins)).astype(np.float64)
        return cls(bins, counts.astype(np.int64), sums, len(values) - len(known))

    def merge(self, other: ValueHistogram) -> ValueHistogram:
        """Histogram of the values of both."""
        return self._combined(other, 1)

    def without(self, other: ValueHistogram) -> ValueHistogram:
        """Histogram after values that were counted before are taken out."""
        return self._combined(other, -1)

    def _combined(self, other: ValueHistogram, times: int) -> ValueHistogram:
        bins, inverse = np.unique(np.concatenate((self.bins, other.bins)), return_inverse=True)
        counts, sums = np.zeros(len(bins), np.int64), np.zeros(len(bins))
        np.add.at(counts, inverse, np.concatenate((self.counts, times * other.counts)))
        np.add.at(sums, inverse, np.concatenate((self.sums, times * other.sums)))
        kept = counts != 0
        return ValueHistogram(bins[kept], counts[kept], sums[kept], self.unknown + times * other.unknown)

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
        return float(self.sums.sum() / self.n * _UNIT) if self.n else float("nan")

    def quantiles(self, shares: tuple[float, ...]) -> Floats:
        """Quantiles `(len(shares),)`: the centre of the bin of the smallest value that at least the given share does
        not exceed; NaN without a known value."""
        if not self.n:
            return np.full(len(shares), np.nan)
        ranks = np.maximum(np.ceil(np.asarray(shares) * self.n - 1e-9), 1.0)
        number = self.bins[np.searchsorted(np.cumsum(self.counts), ranks)]
        return np.sign(number) * _centres(np.abs(number))


def _bins(values: Floats) -> Ints:
    """Number of the bin of each finite value."""
    distance = np.abs(values)
    narrow = np.where(distance < BINS.surest, 0, BINS.count - BINS.index(-distance))
    exponent = np.frexp(distance)[1].astype(np.int64)
    number = np.where(distance <= _MOST, narrow, BINS.count + exponent - _LAST_NARROW)
    return np.sign(values).astype(np.int64) * number


def _centres(number: Ints) -> Floats:
    """Distance from 0 of the centre of each bin."""
    narrow = -BINS.centre(BINS.count - np.minimum(number, BINS.count))
    wide = np.maximum(_MOST, np.exp2(np.maximum(number - BINS.count, 1) + _LAST_NARROW - 0.5))
    return np.where(number == 0, 0.0, np.where(number <= BINS.count, narrow, wide))
