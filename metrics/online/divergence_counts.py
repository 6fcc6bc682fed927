"""Where confidence, judged quality and correctness part, counted in joint counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from moot.metrics.online.histogram import BINS, JointCounts
from moot.metrics.signal_divergences import (
    HIGH_QUALITY,
    LOW_QUALITY,
    TAIL,
    Conditions,
    conditions,
    confidence_ends,
)


@dataclass(frozen=True, slots=True)
class Divergence:
    """How often two things that do not go together occur together.

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
class Divergences:
    """The three kinds of divergence among some replies.

    Attributes:
        mu_low: mean log-probability up to which a reply counts as unsure, at most 0.5 % off; NaN when unknown.
        mu_high: mean log-probability from which on a reply counts as confident; the same.
        confident_but_weak: mu is high, and quality is low or the reply flagged.
        good_but_wrong: quality is high, the reply not flagged, and the answer wrong.
        unsure_but_right: mu is low, and the answer right.
    """

    mu_low: float
    mu_high: float
    confident_but_weak: Divergence
    good_but_wrong: Divergence
    unsure_but_right: Divergence

    def __iter__(self) -> Iterator[Divergence]:
        return iter((self.confident_but_weak, self.good_but_wrong, self.unsure_but_right))


def divergences(
    joint: JointCounts,
    *,
    low_quality: float = LOW_QUALITY,
    high_quality: float = HIGH_QUALITY,
    mu_share: float = TAIL,
) -> Divergences:
    """The divergences among the counted replies, as `moot.metrics.signal_divergences` defines them.

    Confidence is known to its bin, 1 % wide: replies that share one with an end of mu count on its side, and where both
    ends fall into one bin, nobody is confident or unsure.

    Args:
        joint: of replies that may be compared: of one domain, role, model and sampling.
        low_quality: quality up to this is low; so is that of a flagged reply.
        high_quality: quality from this on is high, unless the reply is flagged.
        mu_share: this share of the replies with the highest mu is confident, with the lowest unsure, in (0, 0.5).

    >>> mu, quality = np.array([-0.1, -0.2, -0.3, -0.4]), np.array([4.0, 9.0, 9.0, 9.0])
    >>> found = divergences(JointCounts.of(mu, quality, np.zeros(4), np.array([0.0, 0.0, 1.0, 1.0])))
    >>> found.confident_but_weak
    Divergence(name='confident but weak', count=1, n=4, prevalence=0.25, expected=0.0625)
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
    return Divergences(low, high, *(_together(each, joint) for each in found))


def _together(each: Conditions, joint: JointCounts) -> Divergence:
    counts = np.where(each.known, joint.counts, 0)
    n, both = int(counts.sum()), int(counts[each.first & each.second].sum())
    if not n:
        return Divergence(each.name, both, n, float("nan"), float("nan"))
    expected = float(counts[each.first].sum() / n * counts[each.second].sum() / n)
    return Divergence(each.name, both, n, both / n, expected)
