"""How often confidence, judged quality and correctness occur together, mergeable.

Counts below a quantile do not add up, for each part has its own quantile; counts of fixed cells do.

Source: the divergence study of "The Confident Liar", for which the thresholds are chosen afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.online.logprob_bins import LogprobBins
from moot.metrics.signal_divergences import FLAGGED

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BINS = LogprobBins(0.01, 1e-12)
"""The bins of a reply's mean log-probability: a quantile of it is at most 0.5 % off. They go on far below the 1e-4 that
short replies of a sure model may have: one bin for all of these would make them alike, and only cells that occur take
room."""

QUALITY_STEPS = 12
"""Quality is held to a twelfth: exact for the mean of 1, 2, 3, 4, 6 or 12 whole numbers."""

_MU, _STATES = BINS.count + 1, 3


@dataclass(frozen=True, slots=True, eq=False)
class JointCounts:
    """Replies per cell of mu bin x quality x flagged x correct, each of which may be unknown; only cells that occur.

    Attributes:
        cells: `(C,)`, rising: the cells' numbers.
        counts: `(C,)`, replies in each.

    >>> some = JointCounts.of(np.array([-0.5, np.nan]), np.array([9.0, 4.5]), np.array([0.0, 0.5]), np.ones(2))
    >>> twice = some.merge(some)
    >>> twice.quality().tolist(), twice.flagged().tolist(), twice.counts.tolist()
    ([4.5, 9.0], [1.0, 0.0], [2, 2])
    """

    cells: Ints
    counts: Ints

    @classmethod
    def empty(cls) -> JointCounts:
        """Of no reply."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of(cls, mu: Floats, quality: Floats, flag: Floats, correct: Floats) -> JointCounts:
        """Of replies, each argument `(R,)` with NaN where unknown.

        Args:
            mu: mean log-probability.
            quality: judged quality, 0 and up.
            flag: share of judgments that flag the reply.
            correct: 1 or 0.
        """
        cells = np.where(np.isnan(quality), 0, 1 + np.rint(np.nan_to_num(quality) * QUALITY_STEPS)).astype(np.int64)
        cells = cells * _MU + np.where(np.isnan(mu), 0, 1 + BINS.index(np.nan_to_num(mu)))
        for state, known in ((flag >= FLAGGED, ~np.isnan(flag)), (correct > 0, ~np.isnan(correct))):
            cells = cells * _STATES + np.where(known, 1 + state, 0)
        found, counts = np.unique(cells, return_counts=True)
        return cls(found, counts.astype(np.int64))

    def merge(self, other: JointCounts) -> JointCounts:
        """Of both together."""
        found, place = np.unique(np.concatenate((self.cells, other.cells)), return_inverse=True)
        counts = np.zeros(len(found), np.int64)
        np.add.at(counts, place, np.concatenate((self.counts, other.counts)))
        return JointCounts(found, counts)

    def correct(self) -> Floats:
        """`(C,)`: 1, 0, or NaN where unknown."""
        return _state(self.cells)

    def flagged(self) -> Floats:
        """`(C,)`: 1 from a share of `FLAGGED` on, 0, or NaN where unknown."""
        return _state(self.cells // _STATES)

    def mu_bin(self) -> Ints:
        """`(C,)`: the bin of the mean log-probability in `BINS`, -1 where unknown."""
        return self.cells // _STATES**2 % _MU - 1

    def quality(self) -> Floats:
        """`(C,)`: quality to a `QUALITY_STEPS`-th, NaN where unknown."""
        level = self.cells // (_STATES**2 * _MU)
        return np.where(level > 0, (level - 1) / QUALITY_STEPS, np.nan)


def _state(cells: Ints) -> Floats:
    digit = cells % _STATES
    return np.where(digit > 0, digit - 1.0, np.nan)
