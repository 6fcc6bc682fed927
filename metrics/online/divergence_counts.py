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
"""The bins of a reply's mean log-probability: a quantile of it is at most 0.5 % off. They extend far below the
1e-4 that short replies of a confident model may have: one bin for all of these would make them equal, and only cells
that occur take memory."""

QUALITY_STEPS = 12
"""Quality is rounded to a twelfth: exact for the mean of 1, 2, 3, 4, 6 or 12 whole numbers."""

_MU, _STATES = BINS.count + 1, 3


@dataclass(frozen=True, slots=True, eq=False)
class JointCounts:
    """Sparse contingency table of replies: mu bin x quality x flagged x correct, each of which may be unknown.

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
        """Counts of no reply."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of(cls, mu: Floats, quality: Floats, flag: Floats, correct: Floats) -> JointCounts:
        """Counts of replies, each argument `(R,)` with NaN where unknown.

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
        """Sum of both counts."""
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


@dataclass(frozen=True, slots=True)
class SignalDivergence:
    """Frequency of a divergence: how often two conditions that contradict each other occur together.

    Attributes:
        name: of the kind.
        count: replies in which both occur.
        n: replies of which both are known.
        prevalence: count / n in [0, 1]; NaN when n is 0.
        expected: what prevalence would be if both were independent, from their shares among the n; NaN when n is 0.
    """

    name: str
    count: int
    n: int
    prevalence: float
    expected: float


@dataclass(frozen=True, slots=True)
class SignalDivergences:
    """Frequencies of the three kinds of divergence among some replies.

    Attributes:
        mu_low: mean log-probability up to which a reply counts as unsure, at most 0.5 % off; NaN when unknown.
        mu_high: mean log-probability from which on a reply counts as confident; the same.
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
    """Divergences among the counted replies, as `moot.metrics.signal_divergences` defines them.

    Confidence is known to its bin, 1 % wide: replies that share one with an end of mu count on its side, and where both
    ends fall into one bin, no reply is confident or unsure.

    Args:
        joint: of replies that may be compared: of one domain, role, model and sampling.
        low_quality: quality up to this is low; so is that of a flagged reply.
        high_quality: quality from this on is high, unless the reply is flagged.
        mu_share: this share of the replies with the highest mu is confident, with the lowest unsure, in (0, 0.5).

    >>> mu, quality = np.array([-0.1, -0.2, -0.3, -0.4]), np.array([4.0, 9.0, 9.0, 9.0])
    >>> found = divergences(JointCounts.of(mu, quality, np.zeros(4), np.array([0.0, 0.0, 1.0, 1.0])))
    >>> found.confident_but_weak
    SignalDivergence(name='confident but weak', count=1, n=4, prevalence=0.25, expected=0.0625)
    """
    bins = joint.mu_bin()
    mu = np.where(bins >= 0, bins, np.nan)
    ends = confidence_ends(mu, mu_share, joint.counts)
    found = conditions(
        mu,
        joint.quality(),
        joint.flagged(),
        joint.correct(),
        ends,
        low_quality=low_quality,
        high_quality=high_quality,
    )
    low, high = (float("nan") if np.isnan(end) else float(BINS.centre(np.array(int(end)))) for end in ends)
    return SignalDivergences(low, high, *(_together(each, joint) for each in found))


def _together(each: ConditionPair, joint: JointCounts) -> SignalDivergence:
    counts = np.where(each.known, joint.counts, 0)
    n, both = int(counts.sum()), int(counts[each.first & each.second].sum())
    if not n:
        return SignalDivergence(each.name, both, n, float("nan"), float("nan"))
    expected = float(counts[each.first].sum() / n * counts[each.second].sum() / n)
    return SignalDivergence(each.name, both, n, both / n, expected)
