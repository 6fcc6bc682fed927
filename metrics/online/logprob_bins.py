"""Bins for log-probabilities: geometric, so that sure and unsure tokens are told apart equally well."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LEAST_SURE = 100.0


@dataclass(frozen=True, slots=True)
class LogprobBins:
    """Bins over [-100, 0], numbered from the least to the most probable; each is `width` times as wide as it is far
    from 0. The last one reaches up to 0; what lies outside counts in the nearest bin.

    Attributes:
        width: of a bin, relative to the log-probabilities in it, such as 0.05.
        surest: what lies nearer to 0 than this counts in the last bin, such as 1e-4.

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
        """How many bins there are."""
        return math.ceil(math.log(_LEAST_SURE / self.surest) / self._log_ratio)

    def index(self, logprobs: npt.ArrayLike) -> Ints:
        """The bin of each log-probability, in its shape; none may be NaN."""
        size = np.clip(-np.asarray(logprobs, np.float64), self.surest, _LEAST_SURE)
        from_top = (np.log(size / self.surest) / self._log_ratio).astype(np.int64)
        return self.count - 1 - np.minimum(from_top, self.count - 1)

    def centre(self, index: Ints) -> Floats:
        """The geometric centre of each bin: relative to a log-probability in it, at most half a `width` off, or
        twice `surest` next to 0."""
        found: Floats = -self.surest * np.exp(self._log_ratio * (self.count - 0.5 - index))
        return found
