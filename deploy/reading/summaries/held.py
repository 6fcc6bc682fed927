"""A verdict's distribution held against its case's true label: the one place that says whether and how it is scored."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from typing import Literal, NamedTuple

from moot.deploy.reading.distributions import Distribution
from moot.metrics.calibration_error import brier_multiclass
from moot.protocols.distribution import OTHER

Unheld = Literal["no distribution", "no gold label", "gold outside the labels", "no distribution over the labels"]
"""Why a distribution has no score, in the order in which they are looked for."""


class Held(NamedTuple):
    """A distribution with a known truth.

    Attributes:
        row: probability of each of the case's labels, in their order, then of what is outside (`OTHER`); sums to 1.
        truth: the true label's place in it.
        brier: multi-class, 0 to 2.
    """

    row: list[float]
    truth: int
    brier: float


def hold_against(distribution: Distribution | None, labels: Sequence[str], gold: str | None) -> Held | Unheld:
    """Score a distribution, or say why that cannot be done.

    A label that it does not name has the probability 0 in it. A case without a closed set has no label that could be
    true in it; a distribution with an unknown share, or with mass on something that is neither a label nor `OTHER`, is
    none over the labels.

    Args:
        distribution: as the verdict has it; None or empty for none.
        labels: the case's closed set; empty for none.
        gold: what the task calls right; None without it.

    >>> hold_against({"other": 0.5, "(other)": 0.5}, ("yes", "other"), "other").brier
    0.5
    >>> hold_against({"yes": 1.0}, ("yes", "no"), "maybe")
    'gold outside the labels'
    """
    if not distribution:
        return "no distribution"
    if gold is None:
        return "no gold label"
    if gold not in labels:
        return "gold outside the labels"
    shares = [distribution.get(label, 0.0) for label in (*labels, OTHER)]
    row = [nan if share is None else share for share in shares]
    truth = list(labels).index(gold)
    brier = float(brier_multiclass(row, truth))
    return "no distribution over the labels" if isnan(brier) else Held(row, truth, brier)
