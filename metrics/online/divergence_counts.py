"""Joint counts of confidence, judged quality and correctness, and the divergences among them; mergeable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats
from moot.metrics.online.quantile_bands import LogprobBins
from moot.metrics.signal_divergences import (
    FLAGGED,
    HIGH_QUALITY,
    LOW_QUALITY,
    TAIL,
    ConditionPair,
    conditions,
    confidence_ends,
)

Ints = npt.NDArray[np.int64]

BINS = LogprobBins(0.01, 1e-12)
"""Bins of a reply's mean log-probability; the error of a quantile is at most 0.5 %. They resolve values far below the
1e-4 of confident short replies, which would otherwise be equal; only cells that occur take memory."""

QUALITY_STEPS = 12
"""Steps of quality per unit: exact for the mean of 1, 2, 3, 4, 6 or 12 whole numbers."""

_MU, _STATES = BINS.count + 1, 3


@dataclass(frozen=True, slots=True, eq=False)
class JointCounts:
    """Sparse contingency table of replies: mu bin x quality x flagged x correct, each of which may be unknown.

    Attributes:
        cells: `(C,)`, indices of the cells, ascending.
        counts: `(C,)`, number of replies in each.

    >>> some = JointCounts.of(np.array([-0.5, np.nan]), np.array([9.0, 4.5]), np.array([0.0, 0.5]), np.ones(2))
    >>> twice = some.merge(some)
    >>> twice.quality().tolist(), twice.flagged().tolist(), twice.counts.tolist()
    ([4.5, 9.0], [1.0, 0.0], [2, 2])
    """

    cells: Ints
    counts: Ints

    @classmethod
    def empty(cls) -> JointCounts:
        """Counts of no reply."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of(cls, mu: Floats, quality: Floats, flag: Floats, correct: Floats) -> JointCounts:
        """Counts of replies; each argument is `(R,)`, NaN where unknown.

        Args:
            mu: mean log-probability, nats.
            quality: judged quality, at least 0.
            flag: proportion of judgments that flag the reply.
            correct: 1 or 0.
        """
        cells = np.where(np.isnan(quality), 0, 1 + np.rint(np.nan_to_num(quality) * QUALITY_STEPS)).astype(np.int64)
        cells = cells * _MU + np.where(np.isnan(mu), 0, 1 + BINS.index(np.nan_to_num(mu)))
        for state, known in ((flag >= FLAGGED, ~np.isnan(flag)), (correct > 0, ~np.isnan(correct))):
            cells = cells * _STATES + np.where(known, 1 + state, 0)
        result, counts = np.unique(cells, return_counts=True)
        return cls(result, counts.astype(np.int64))

    def merge(self, other: JointCounts) -> JointCounts:
        """Sum of both counts."""
        result, inverse = np.unique(np.concatenate((self.cells, other.cells)), return_inverse=True)
        counts = np.zeros(len(result), np.int64)
        np.add.at(counts, inverse, np.concatenate((self.counts, other.counts)))
        return JointCounts(result, counts)

    def correct(self) -> Floats:
        """Correctness of each cell, `(C,)`: 1, 0, or NaN if unknown."""
        return _state(self.cells)

    def flagged(self) -> Floats:
        """Flag of each cell, `(C,)`: 1 for a proportion of at least `FLAGGED`, else 0, or NaN if unknown."""
        return _state(self.cells // _STATES)

    def mu_bin(self) -> Ints:
        """Bin in `BINS` of the mean log-probability of each cell, `(C,)`; -1 if unknown."""
        return self.cells // _STATES**2 % _MU - 1

    def quality(self) -> Floats:
        """Quality of each cell, `(C,)`, in multiples of 1 / `QUALITY_STEPS`; NaN if unknown."""
        level = self.cells // (_STATES**2 * _MU)
        return np.where(level > 0, (level - 1) / QUALITY_STEPS, np.nan)


def _state(cells: Ints) -> Floats:
    digit = cells % _STATES
    return np.where(digit > 0, digit - 1.0, np.nan)


@dataclass(frozen=True, slots=True)
class SignalDivergence:
    """Frequency of a divergence: how often two contradictory conditions occur together.

    Attributes:
        name: name of the divergence.
        count: number of replies in which both conditions occur.
        n: number of replies in which both are known.
        prevalence: count / n, in [0, 1]; NaN for n = 0.
        expected: prevalence under independence, from the marginal proportions among the n; NaN for n = 0.
    """

    name: str
    count: int
    n: int
    prevalence: float
    expected: float


@dataclass(frozen=True, slots=True)
class SignalDivergences:
    """Frequencies of the three divergences.

    Attributes:
        mu_low: highest mean log-probability of unsure replies, with an error of at most 0.5 %; NaN if unknown.
        mu_high: lowest mean log-probability of confident replies; likewise.
        confident_but_weak: mu is high, and quality is low or the reply flagged.
        good_but_wrong: quality is high, the reply not flagged, and the answer wrong.
        unsure_but_right: mu is low, and the answer right.
    """

    mu_low: float
    mu_high: float
    confident_but_weak: SignalDivergence
    good_but_wrong: SignalDivergence
    unsure_but_right: SignalDivergence

    def __iter__(self) -> Iterator[SignalDivergence]:
        return iter((self.confident_but_weak, self.good_but_wrong, self.unsure_but_right))


def divergences(
    joint: JointCounts,
    *,
    low_quality: float = LOW_QUALITY,
    high_quality: float = HIGH_QUALITY,
    mu_share: float = TAIL,
) -> SignalDivergences:
    """Divergences among the counted replies, as defined in `moot.metrics.signal_divergences`.

    Confidence is known up to its bin, of width 1 %: all replies in the bin of a threshold are beyond it. If both
    thresholds are in one bin, no reply is confident or unsure.

    Args:
        joint: counts of comparable replies: of one domain, role, model and decoding.
        low_quality: upper bound of low quality; the quality of a flagged reply is low, too.
        high_quality: lower bound of high quality, of replies that are not flagged.
        mu_share: minimum proportion of replies that are confident (highest mu), and unsure (lowest), in (0, 0.5).

    >>> mu, quality = np.array([-0.1, -0.2, -0.3, -0.4]), np.array([4.0, 9.0, 9.0, 9.0])
    >>> result = divergences(JointCounts.of(mu, quality, np.zeros(4), np.array([0.0, 0.0, 1.0, 1.0])))
    >>> result.confident_but_weak
    SignalDivergence(name='confident but weak', count=1, n=4, prevalence=0.25, expected=0.0625)
    """
    bins = joint.mu_bin()
    mu = np.where(bins >= 0, bins, np.nan)
    ends = confidence_ends(mu, mu_share, joint.counts)
    result = conditions(
        mu,
        joint.quality(),
        joint.flagged(),
        joint.correct(),
        ends,
        low_quality=low_quality,
        high_quality=high_quality,
    )
    low, high = (float("nan") if np.isnan(end) else float(BINS.centre(np.array(int(end)))) for end in ends)
    return SignalDivergences(low, high, *(_co_occurrence(each, joint) for each in result))


def _co_occurrence(each: ConditionPair, joint: JointCounts) -> SignalDivergence:
    counts = np.where(each.known, joint.counts, 0)
    n, both = int(counts.sum()), int(counts[each.first & each.second].sum())
    if not n:
        return SignalDivergence(each.name, both, n, float("nan"), float("nan"))
    expected = float(counts[each.first].sum() / n * counts[each.second].sum() / n)
    return SignalDivergence(each.name, both, n, both / n, expected)
