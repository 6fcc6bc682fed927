"""Where confidence, judged quality and correctness part, counted in joint counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.online.histogram import BINS, JointCounts

Bools = npt.NDArray[np.bool_]

LOW_QUALITY, HIGH_QUALITY, MU_SHARE = 5.0, 8.0, 0.25


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
        mu_high: mean log-probability from which on a reply counts as confident.
        confident_but_weak: mu is high, and quality is low or the reply flagged.
        good_but_wrong: quality is high, and the answer wrong.
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
    mu_share: float = MU_SHARE,
) -> Divergences:
    """The divergences among the counted replies.

    Args:
        joint: of one domain and role: confidence is compared within these only.
        low_quality: quality up to this is low; so is that of a flagged reply.
        high_quality: quality from this on is high.
        mu_share: this share of the replies with the highest mu is confident, with the lowest unsure, in (0, 0.5). A bin
            in which the share ends belongs to it as a whole. Where one bin would be both, neither is known.

    >>> mu, quality = np.array([-0.1, -0.2, -0.3, -0.4]), np.array([4.0, 9.0, 9.0, 9.0])
    >>> found = divergences(JointCounts.of(mu, quality, np.zeros(4), np.array([0.0, 0.0, 1.0, 1.0])))
    >>> found.confident_but_weak
    Divergence(name='confident but weak', count=1, n=4, prevalence=0.25, expected=0.0625)
    """
    low, high = _ends(joint, mu_share)
    mu, quality, correct = joint.mu_bin(), joint.quality(), joint.correct()
    mu_known = (mu >= 0) & (low < high)
    judged, answered = ~np.isnan(quality), ~np.isnan(correct)
    weak = (quality <= low_quality) | (joint.flagged() == 1.0)
    edges = BINS.centre(np.array([low, high])) if low < high else np.full(2, np.nan)
    return Divergences(
        float(edges[0]),
        float(edges[1]),
        _together("confident but weak", joint, mu_known & judged, mu >= high, weak),
        _together("good reasoning, wrong answer", joint, judged & answered, quality >= high_quality, correct == 0.0),
        _together("unsure but right", joint, mu_known & answered, mu <= low, correct == 1.0),
    )


def _ends(joint: JointCounts, share: float) -> tuple[int, int]:
    """The last bin of low mu and the first of high; the low one is not below the high one when that says nothing."""
    mu = joint.mu_bin()
    known = mu >= 0
    per_bin = np.bincount(mu[known], weights=joint.counts[known], minlength=BINS.count)
    enough = share * per_bin.sum() - 1e-9
    if enough <= 0:
        return 0, 0
    low = int(np.argmax(np.cumsum(per_bin) >= enough))
    high = BINS.count - 1 - int(np.argmax(np.cumsum(per_bin[::-1]) >= enough))
    return low, high


def _together(name: str, joint: JointCounts, known: Bools, one: Bools, other: Bools) -> Divergence:
    counts = np.where(known, joint.counts, 0)
    n, both = int(counts.sum()), int(counts[one & other].sum())
    if not n:
        return Divergence(name, both, n, float("nan"), float("nan"))
    return Divergence(name, both, n, both / n, float(counts[one].sum() / n * counts[other].sum() / n))
