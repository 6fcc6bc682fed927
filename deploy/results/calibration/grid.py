"""Grid search over the gate's thresholds, evaluated from the record without a call of a model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.calibration.cases import Bools, BothBranches
from moot.metrics.distribution import Floats

Threshold = float | None
"""Threshold of a test; None turns the test off."""

_STEPS = np.linspace(0.0, 1.0, 11)
_DIGITS = 4


class GridPoint(FrozenModel):
    """Figures of a setting of the gate on a set of cases.

    Attributes:
        tau_d, tau_m, tau_p: the thresholds; None turns a test off.
        skip_rate: share of the cases that are not debated.
        accuracy: accuracy over all cases.
        accuracy_skipped: accuracy over the skipped cases; None without any.
        n_skipped: number of skipped cases.
        cost_vs_debate: tokens relative to always debating; None when no case's usage is known.
        cost_vs_single: tokens relative to agent 0's openings.
    """

    tau_d: Threshold
    tau_m: Threshold
    tau_p: Threshold
    skip_rate: float
    accuracy: float
    accuracy_skipped: float | None
    n_skipped: int
    cost_vs_debate: float | None
    cost_vs_single: float | None


@dataclass(frozen=True, slots=True)
class ThresholdAxes:
    """Candidate thresholds of the grid, by test."""

    tau_d: list[Threshold]
    tau_m: list[Threshold]
    tau_p: list[Threshold]

    def __len__(self) -> int:
        return len(self.tau_d) * len(self.tau_m) * len(self.tau_p)


def threshold_axes(cases: BothBranches, among: Bools) -> ThresholdAxes:
    """Candidate thresholds at the deciles of the observed signals, to four digits.

    tau_d begins at 0, where every case is debated. tau_d and tau_m end just above the largest value and tau_p begins at
    0, where every case passes the test. The test of a signal that is never known is off; an unknown D passes none.
    """
    return ThresholdAxes(
        tau_d=_upper(cases.d[among]) or [0.0],
        tau_m=_upper(cases.m[among]) or [None],
        tau_p=_lower(cases.p[among]) or [None],
    )


def _quantiles(values: Floats) -> Floats:
    known = values[~np.isnan(values)]
    return np.quantile(known, _STEPS) if known.size else known


def _upper(values: Floats) -> list[Threshold]:
    cuts = _quantiles(values)
    if not cuts.size:
        return []
    above = math.floor(float(cuts[-1]) * 10**_DIGITS + 1.0) / 10**_DIGITS
    return list(np.unique(np.concatenate(([0.0], np.round(cuts[:-1], _DIGITS), [above]))).tolist())


def _lower(values: Floats) -> list[Threshold]:
    cuts = _quantiles(values)
    if not cuts.size:
        return []
    return list(np.unique(np.concatenate(([0.0], np.floor(cuts * 10**_DIGITS) / 10**_DIGITS))).tolist())


def skip_mask(cases: BothBranches, tau_d: Threshold, tau_m: Threshold, tau_p: Threshold) -> Bools:
    """Mask of the cases that the gate skips: `selene.gate.decide` on arrays. An unknown D fails."""
    low_d, unknown = _below(cases.d, tau_d, unknown=False), cases.skips_untested
    return cases.may_skip & low_d & _below(cases.m, tau_m, unknown=unknown) & _at_least(cases.p, tau_p, unknown=unknown)


def _below(values: Floats, tau: Threshold, *, unknown: bool) -> Bools:
    if tau is None:
        return np.ones(len(values), np.bool_)
    return np.where(np.isnan(values), unknown, values < tau)


def _at_least(values: Floats, tau: Threshold, *, unknown: bool) -> Bools:
    if tau is None:
        return np.ones(len(values), np.bool_)
    return np.where(np.isnan(values), unknown, values >= tau)


def sweep_grid(cases: BothBranches, among: Bools, axes: ThresholdAxes) -> list[GridPoint]:
    """Figures of every point of the grid on the cases `among`; tau_d varies slowest and tau_p fastest.

    For each tau_d, the sums over cases for all (tau_m, tau_p) are one matrix product per quantity.
    """
    weights = _Weights.of(cases, among)
    unknown = cases.skips_untested
    by_m = np.array([_below(cases.m[among], tau, unknown=unknown) for tau in axes.tau_m], np.float64)
    by_p = np.array([_at_least(cases.p[among], tau, unknown=unknown) for tau in axes.tau_p], np.float64).T
    points: list[GridPoint] = []
    for tau_d in axes.tau_d:
        low_d = cases.may_skip[among] & _below(cases.d[among], tau_d, unknown=False)
        sums = [((by_m * (low_d * weight)) @ by_p).ravel() for weight in weights.of_skipped]
        for (tau_m, tau_p), row in zip(
            itertools.product(axes.tau_m, axes.tau_p), np.transpose(sums).tolist(), strict=True
        ):
            points.append(weights.point((tau_d, tau_m, tau_p), row))
    return points


def evaluate_point(cases: BothBranches, among: Bools, taus: Sequence[Threshold]) -> GridPoint:
    """Figures of one setting on the cases `among`."""
    weights = _Weights.of(cases, among)
    skipped = skip_mask(cases, *taus)[among].astype(np.float64)
    return weights.point(taus, [float(skipped @ weight) for weight in weights.of_skipped])


@dataclass(frozen=True, slots=True)
class _Weights:
    """Weights of the cases, whose sums over the skipped cases give every figure, and sums over all cases.

    Attributes:
        of_skipped: 1; skip branch right; difference of right answers and of tokens between skip and debate branch.
        n: number of cases.
        debate_right: right answers of the debate branch.
        debate_tokens, single_tokens: tokens of always debating and of agent 0's openings, over cases with known usage.
    """

    of_skipped: tuple[Floats, Floats, Floats, Floats]
    n: int
    debate_right: int
    debate_tokens: float
    single_tokens: float

    @classmethod
    def of(cls, cases: BothBranches, among: Bools) -> _Weights:
        skip_right, debate_right = cases.skip_right[among].astype(float), cases.debate_right[among].astype(float)
        skip, debate, single = (
            values[among] for values in (cases.skip_tokens, cases.debate_tokens, cases.single_tokens)
        )
        known = ~np.isnan(skip + debate + single)
        return cls(
            (np.ones(len(skip)), skip_right, skip_right - debate_right, np.where(known, skip - debate, 0.0)),
            n=len(skip),
            debate_right=int(debate_right.sum()),
            debate_tokens=float(debate[known].sum()),
            single_tokens=float(single[known].sum()),
        )

    def point(self, taus: Sequence[Threshold], sums: Sequence[float]) -> GridPoint:
        skipped, right, gained, tokens = sums
        total = self.debate_tokens + tokens
        return GridPoint(
            tau_d=taus[0],
            tau_m=taus[1],
            tau_p=taus[2],
            skip_rate=skipped / self.n,
            accuracy=(self.debate_right + gained) / self.n,
            accuracy_skipped=right / skipped if skipped else None,
            n_skipped=round(skipped),
            cost_vs_debate=total / self.debate_tokens if self.debate_tokens else None,
            cost_vs_single=total / self.single_tokens if self.single_tokens else None,
        )


def cheapest_within(points: Sequence[GridPoint], accuracy: float, tolerance: float) -> GridPoint:
    """Cheapest point whose accuracy is at most `tolerance` below `accuracy`.

    If tokens are unknown, the highest skip rate counts as the cheapest. Of ties, the point with the higher accuracy is
    chosen, then that with the stricter thresholds: lower tau_d, lower tau_m, higher tau_p.
    """
    return min((point for point in points if point.accuracy >= accuracy - tolerance - 1e-9), key=_cheap_first)


def _cheap_first(point: GridPoint) -> tuple[float, float, float, float, float]:
    cost = -point.skip_rate if point.cost_vs_debate is None else round(point.cost_vs_debate, 9)
    return (cost, -point.accuracy, point.tau_d or 0.0, point.tau_m or 0.0, -(point.tau_p or 0.0))


def best_by_skip_rate(points: Sequence[GridPoint]) -> list[GridPoint]:
    """Most accurate point at each skip rate, by ascending skip rate; ties as in `cheapest_within`."""
    best: dict[int, GridPoint] = {}
    for point in sorted(points, key=lambda each: (-each.accuracy, _cheap_first(each))):
        best.setdefault(point.n_skipped, point)
    return [best[skipped] for skipped in sorted(best)]
