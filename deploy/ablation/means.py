"""Means over the cases of each cell, and each cell against the baseline, case by case."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Generic, TypeVar

from moot.deploy.reading.frozen import Frozen
from moot.deploy.reading.text import Interval
from moot.metrics.bootstrap import bca_interval
from moot.metrics.significance import benjamini_hochberg, cliffs_delta_per_case, wilcoxon_signed_rank

Scores = Mapping[str, float]
"""By case id, in order of the ids, so that nothing drawn over them depends on the record's order."""


class BrierAgainst(Frozen):
    """A cell's Brier scores (first) against the baseline's (second), on the cases that have both.

    Attributes:
        difference: of the means; negative is better.
        p_value: two-sided, of Wilcoxon's signed-rank test on the cases' scores; `p_adjusted` after Benjamini and
            Hochberg, over all cells that are compared.
        cliffs_delta: within cases, in [-1, 1]: share of them with a higher score than the baseline's minus share with
            a lower one.
        n: cases.
    """

    difference: float
    p_value: float | None
    p_adjusted: float | None = None
    cliffs_delta: float | None
    n: int


class MeanAgainst(Frozen):
    """A cell's means by case (first) against the baseline's (second), on the cases that have both.

    Attributes:
        interval: BCa bootstrap of the difference over the cases, 95 %.
        p_value: two-sided, of Wilcoxon's signed-rank test; `p_adjusted` after Benjamini and Hochberg, over all cells
            and measures that are compared.
        n: cases.
    """

    difference: float
    interval: Interval | None
    p_value: float | None
    p_adjusted: float | None = None
    n: int


C = TypeVar("C", BrierAgainst, MeanAgainst)


class CaseMean(Frozen, Generic[C]):
    """The mean of a measure over the cases of a cell.

    Attributes:
        interval: BCa bootstrap over the cases, 95 %.
        n: cases with a value.
        vs_baseline: None for the baseline itself, and without a common case.
    """

    mean: float
    interval: Interval | None
    n: int
    vs_baseline: C | None


def case_means(
    scores: Mapping[str, Mapping[str, Scores]],
    baseline: str,
    change: Callable[[Sequence[float], Sequence[float]], C],
) -> dict[str, dict[str, CaseMean[C]]]:
    """By cell and measure its mean, and the comparison with the baseline on the cases that both have.

    Args:
        scores: by cell and measure, those of its cases; a measure without any has no mean.
        baseline: a cell's name.
        change: from the baseline's scores (second) to a cell's (first): `brier_change` or `mean_change`.
    """
    base = scores.get(baseline, {})
    found = dict[tuple[str, str], C]()
    for cell, by_key in scores.items():
        for key, each in by_key.items():
            shared = sorted(each.keys() & base.get(key, {}).keys())
            if cell != baseline and shared:
                found[cell, key] = change([each[i] for i in shared], [base[key][i] for i in shared])
    p_values = adjusted([each.p_value for each in found.values()])
    against = {
        place: each.model_copy(update={"p_adjusted": p})
        for (place, each), p in zip(found.items(), p_values, strict=True)
    }
    return {
        cell: {
            key: CaseMean(
                mean=fmean(each.values()),
                interval=bca(list(each.values())),
                n=len(each),
                vs_baseline=against.get((cell, key)),
            )
            for key, each in by_key.items()
            if each
        }
        for cell, by_key in scores.items()
    }


def brier_change(own: Sequence[float], base: Sequence[float]) -> BrierAgainst:
    """The change of a Brier score, case by case."""
    return BrierAgainst(
        difference=fmean(own) - fmean(base),
        p_value=known(wilcoxon_signed_rank(own, base).p_value),
        cliffs_delta=known(cliffs_delta_per_case(own, base)),
        n=len(own),
    )


def mean_change(own: Sequence[float], base: Sequence[float]) -> MeanAgainst:
    """The change of a mean, case by case."""
    return MeanAgainst(
        difference=fmean(own) - fmean(base),
        interval=bca([one - other for one, other in zip(own, base, strict=True)]),
        p_value=known(wilcoxon_signed_rank(own, base).p_value),
        n=len(own),
    )


def adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """p-values after Benjamini and Hochberg, over those that are known."""
    return [known(p) for p in benjamini_hochberg(p_values).tolist()]


def bca(values: Sequence[float]) -> Interval | None:
    """The BCa bootstrap interval (95 %) of a mean over cases; None where it has none, as for one case."""
    found = bca_interval(values)
    return (found.low, found.high) if found.resamples else None


def known(value: float) -> float | None:
    """A figure of `moot.metrics`, where NaN is unknown."""
    return None if math.isnan(value) else value
