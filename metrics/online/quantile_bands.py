"""Online quantiles of log-probabilities by position: a histogram per position; mergeable."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats

Ints = npt.NDArray[np.int64]

_LEAST_SURE = 100.0


@dataclass(frozen=True, slots=True)
class LogprobBins:
    """Bins of log-probabilities in [-100, 0], from the least to the most probable.

    The width of a bin is proportional to its distance from 0; the last bin extends to 0. Values outside count in the
    nearest bin.

    Attributes:
        width: relative width of a bin, such as 0.05.
        surest: values closer to 0 than this are in the last bin, such as 1e-4.

    >>> bins = LogprobBins(0.05, 1e-4)
    >>> bins.count, bins.index(np.array([-1e9, -100.0, -1e-5, 0.0])).tolist()
    (284, [0, 0, 283, 283])
    >>> bool(abs(bins.centre(bins.index(np.array([-0.7])))[0] + 0.7) < 0.7 * 0.05 / 2)
    True
    """

    width: float
    surest: float

    @property
    def _log_ratio(self) -> float:
        return math.log1p(self.width)

    @property
    def count(self) -> int:
        """Number of bins."""
        return math.ceil(math.log(_LEAST_SURE / self.surest) / self._log_ratio)

    def index(self, logprobs: npt.ArrayLike) -> Ints:
        """Bin of each log-probability, in the same shape; NaN is not allowed."""
        size = np.clip(-np.asarray(logprobs, np.float64), self.surest, _LEAST_SURE)
        from_top = (np.log(size / self.surest) / self._log_ratio).astype(np.int64)
        return self.count - 1 - np.minimum(from_top, self.count - 1)

    def centre(self, index: Ints) -> Floats:
        """Geometric centre of each bin.

        Its error, relative to a log-probability in the bin, is at most half a `width`, or twice `surest` in the last
        bin.
        """
        result: Floats = -self.surest * np.exp(self._log_ratio * (self.count - 0.5 - index))
        return result


BINS = LogprobBins(0.05, 1e-4)
"""Bins of each position; the error of a quantile is at most 2.5 %, or 0.0002 next to 0."""


@dataclass(frozen=True, slots=True, eq=False)
class QuantileBands:
    """Histograms of log-probability at P positions.

    Attributes:
        counts: `(P, BINS.count)`, number of replies per position and bin.

    >>> bands = QuantileBands.of(np.array([[-1.0, -2.0], [-3.0, np.nan]])).merge(QuantileBands.empty(2))
    >>> bands.n().tolist(), bands.quantiles((0.5, 1.0)).round(1).tolist()
    ([2, 1], [[-3.0, -2.0], [-1.0, -2.0]])
    """

    counts: npt.NDArray[np.uint32]

    @classmethod
    def empty(cls, places: int) -> QuantileBands:
        """Histograms of no reply."""
        return cls(np.zeros((places, BINS.count), np.uint32))

    @classmethod
    def of(cls, curves: Floats) -> QuantileBands:
        """Histograms of the log-probabilities of replies, `(R, P)`; NaN is unknown."""
        positions = curves.shape[1]
        known = ~np.isnan(curves)
        cells = BINS.index(curves[known]) + np.nonzero(known)[1] * BINS.count
        counts = np.bincount(cells, minlength=positions * BINS.count).astype(np.uint32)
        return cls(counts.reshape(positions, BINS.count))

    def merge(self, other: QuantileBands) -> QuantileBands:
        """Sum of both histograms."""
        return QuantileBands(self.counts + other.counts)

    def n(self) -> npt.NDArray[np.int64]:
        """Number of replies with a known log-probability at each position, `(P,)`."""
        result: npt.NDArray[np.int64] = self.counts.sum(axis=1, dtype=np.int64)
        return result

    def quantiles(self, shares: tuple[float, ...]) -> Floats:
        """Quantiles at each position, `(len(shares), P)`.

        The centre of the bin of the smallest log-probability that at least the given share of the replies does not
        exceed; NaN if there is none.
        """
        below = np.cumsum(self.counts, axis=1, dtype=np.int64)
        n = below[:, -1]
        ranks = np.maximum(np.ceil(np.multiply.outer(np.asarray(shares), n) - 1e-9), 1.0)
        bins = (below[np.newaxis] < ranks[..., np.newaxis]).sum(axis=-1)
        return np.where(n > 0, BINS.centre(np.minimum(bins, BINS.count - 1)), np.nan)
