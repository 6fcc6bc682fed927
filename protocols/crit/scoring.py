"""Gamma, the score of CRIT: the mean support by reasons and rivals, weighted by the credibility of their sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Literal

Rivals = Literal["printed", "capped"]
"""Weighting of rivals; see `gamma_of`."""

EQUAL_WEIGHTS = "equal-weights"
"""Note: every source had the credibility 0, so all reasons and rivals have the same weight."""

NO_REASONS = "no-reasons"
"""Note: the document has no reason, so it has no score."""


@dataclass(frozen=True, slots=True)
class WeightedReason:
    """Weights of a reason or a rival.

    Attributes:
        gamma: strength of its support for the claim (a rival: against it), in [0, 1].
        theta: credibility of its source, in [0, 1].
        rival: whether it speaks against the claim.
    """

    gamma: float
    theta: float
    rival: bool = False

    def __post_init__(self) -> None:
        if not (0.0 <= self.gamma <= 1.0 and 0.0 <= self.theta <= 1.0):
            raise ValueError(f"gamma and theta lie between 0 and 1, not {self.gamma!r} and {self.theta!r}")

    @property
    def s(self) -> float:
        """Support of the claim, in [0, 1]: gamma, or 1 - gamma of a rival."""
        return 1.0 - self.gamma if self.rival else self.gamma


@dataclass(frozen=True, slots=True)
class Gamma:
    """A score with its caveats.

    Attributes:
        score: in [0, 1]; None if unknown.
        note: `EQUAL_WEIGHTS`, `NO_REASONS`, or empty.
        capped: whether a rival was capped that would have raised the score.
    """

    score: float | None
    note: str = ""
    capped: bool = False


def gamma_of(weighed: Sequence[WeightedReason], rivals: Rivals = "printed") -> Gamma:
    """Gamma = sum(theta s) / sum(theta) over reasons and rivals, in [0, 1].

    If every theta is 0, the weights are equal, with the note `EQUAL_WEIGHTS`. Without any reason the score is None,
    with the note `NO_REASONS`, even if there are rivals: their weakness is no evidence for reasons that do not exist,
    and a bare assertion with a feeble rival would get a high score.

    Args:
        rivals: `printed` counts every rival as above, so that one with s above the score raises it. `capped` gives a
            rival s = min(1 - gamma, Gamma): the least Gamma over all choices of rivals. No rival then raises the score,
            and none supports the claim more strongly than the best reason.

    >>> gamma_of([WeightedReason(0.8, 0.9), WeightedReason(0.4, 0.3, rival=True)]).score
    0.75
    >>> feeble = [WeightedReason(0.5, 0.5), WeightedReason(0.2, 0.5, rival=True)]
    >>> gamma_of(feeble).score, gamma_of(feeble, "capped").score
    (0.65, 0.5)
    """
    if all(one.rival for one in weighed):
        return Gamma(None, NO_REASONS)
    if rivals == "printed":
        return _mean_of(weighed)
    reasons = [one for one in weighed if not one.rival]
    strongest_first = sorted((one for one in weighed if one.rival), key=lambda one: one.s)
    means = [_mean_of([*reasons, *strongest_first[:most]]) for most in range(len(strongest_first) + 1)]
    least = min(means, key=lambda mean: mean.score or 0.0)
    return replace(least, capped=means[-1].score != least.score)


def _mean_of(weighed: Sequence[WeightedReason]) -> Gamma:
    values = [one.s for one in weighed]
    heaviest = max(one.theta for one in weighed)
    # as shares of the heaviest: a product of two tiny numbers would be 0
    weights = [one.theta / heaviest if heaviest else 1.0 for one in weighed]
    score = fsum(w * s for w, s in zip(weights, values, strict=True)) / fsum(weights)
    return Gamma(min(max(values), max(min(values), score)), "" if heaviest else EQUAL_WEIGHTS)


def out_of_ten(score: float | None) -> str:
    """Displayed score, from 0 to 10 with one decimal.

    >>> out_of_ten(0.75), out_of_ten(None)
    ('7.5/10', 'unknown')
    """
    return "unknown" if score is None else f"{10.0 * score:.1f}/10"
