"""Calibration of the gate's thresholds: chosen by grid search on a validation split, evaluated on held-out cases."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moot.actors.record.store.mirror import record_path
from moot.actors.record.tables import read_table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.run_info import RunInfo, read_run_info
from moot.deploy.results.stats import PairedComparison
from moot.deploy.results.text import Interval, finite_or_none
from moot.deploy.studies.calibration.branches import Bools, BothBranches, read_both_branches
from moot.deploy.studies.calibration.epsilon import EpsilonChoice, choose_epsilon, read_debate_rounds
from moot.metrics.detection import auroc
from moot.metrics.distribution import Floats
from moot.protocols.errors import ConfigError

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


SMALL = 100
"""Held-out cases below which a warning is given."""


class AccuracyEstimate(FrozenModel):
    """Accuracy with its 95 % interval over groups of cases, see `share_over_cases`."""

    value: float
    interval: Interval | None


class Predictor(FrozenModel):
    """AUROC of a signal as a predictor of wrong answers of the skip branch.

    Attributes:
        name: `d`, `m`, `p` or `c`.
        direction: whether a higher or a lower value predicts errors.
        auroc: 0.5 is chance, 1 is perfect, below 0.5 is the opposite direction; None when all or none are wrong.
        n: cases with a known signal.
        errors: cases among them with a wrong answer.
    """

    name: str
    direction: str
    auroc: float | None
    n: int
    errors: int


class HeldOutPoint(FrozenModel):
    """Setting of the gate, evaluated on the held-out cases, with 95 % intervals.

    Attributes:
        point: the setting and its figures.
        accuracy_interval, accuracy_skipped_interval: None where the accuracy is None, or several cases are of one
            group.
        vs_debate: the gate (first) against always debating (second), on the same cases.
    """

    point: GridPoint
    accuracy_interval: Interval | None
    accuracy_skipped_interval: Interval | None
    vs_debate: PairedComparison


class GateCalibration(FrozenModel):
    """Result of `calibrate`. "Always debating" is the debate branch of the same run.

    Attributes:
        encoder: the encoder of D; the thresholds are valid for it only.
        n_validation, n_held_out: cases of the validation split, and held-out cases.
        left_out: excluded cases by reason.
        debate_accuracy_validation, skip_accuracy_validation: accuracy of always and never debating on the validation
            cases.
        debate_accuracy, skip_accuracy: the same on the held-out cases, with intervals.
        grid: every setting on the validation cases.
        chosen: the cheapest setting whose accuracy is at most `tolerance` below that of always debating.
        held_out: the chosen setting on the held-out cases.
        as_run: the run's own thresholds on the held-out cases; None when its gate used none.
        predictors: the signals over all usable cases; nothing is fitted.
        stopping: the choice of `debate.epsilon`; None where the record has no rounds in one of the two splits.
        warnings: caveats.
        set_line: the thresholds as command-line options. It does not contain `stopping.chosen`, which is chosen
            separately, over all debates and by the agents' vote; `held_out` does not evaluate that choice.
    """

    schema_version: int
    run: str
    task: str | None
    protocol: str | None
    models: dict[str, list[str]]
    simulated: bool
    encoder: str
    seed: int
    holdout: float
    tolerance: float
    n_validation: int
    n_held_out: int
    left_out: dict[str, int]
    debate_accuracy_validation: float
    skip_accuracy_validation: float
    debate_accuracy: AccuracyEstimate
    skip_accuracy: AccuracyEstimate
    grid: list[GridPoint]
    chosen: GridPoint
    held_out: HeldOutPoint
    as_run: HeldOutPoint | None
    predictors: list[Predictor]
    stopping: EpsilonChoice | None
    warnings: list[str]
    set_line: str


def calibrate(
    folder: str | Path,
    *,
    holdout: float = 0.5,
    seed: int = 0,
    tolerance: float = 0.01,
    keep_truncated: bool = False,
) -> GateCalibration:
    """Chooses the gate's thresholds from a run with `both_branches`.

    The cases are split by a seeded hash of their groups, or ids. On the validation split, every point of a grid over
    (tau_d, tau_m, tau_p), at the deciles of the observed signals, is evaluated from the record. The cheapest point
    whose accuracy is at most `tolerance` below that of always debating is chosen and evaluated on the held-out cases.
    `debate.epsilon` is chosen in the same way among the run's value and larger ones. No model is called.

    Args:
        folder: the run's folder.
        holdout: share of the cases that is held out, in (0, 1).
        seed: random seed of the split.
        tolerance: the largest loss of accuracy for fewer tokens, in [0, 1].
        keep_truncated: whether to include cases with a reply that was truncated at its token limit.

    Raises:
        ConfigError: the run has no case with both branches, or an argument is out of range.
        RecordError: the folder has no run or cannot be read.
    """
    if not 0.0 < holdout < 1.0:
        raise ConfigError(f"holdout is the share of cases held out, between 0 and 1, not {holdout:g}")
    if not 0.0 <= tolerance <= 1.0:
        raise ConfigError(f"tolerance is a difference of accuracies in [0, 1], not {tolerance:g}")
    folder = record_path(folder)
    facts = read_run_info(folder)
    if not facts.models:
        facts = read_run_info(folder)
    cases = read_both_branches(folder, f"{facts.name}-both", keep_truncated=keep_truncated)
    held_out = cases.held_out(holdout, seed)
    if held_out.all() or not held_out.any():
        raise ConfigError(
            f"{folder}: {len(cases)} usable cases cannot be split with holdout={holdout:g}; use more cases"
        )
    encoder = _encoder(folder, facts)
    grid = sweep_grid(cases, ~held_out, threshold_axes(cases, ~held_out))
    debate_validation = float(cases.debate_right[~held_out].mean())
    chosen = cheapest_within(grid, debate_validation, tolerance)
    stopping = choose_epsilon(read_debate_rounds(folder, cases.case_ids), cases, held_out, tolerance)
    return GateCalibration(
        **{name: getattr(facts, name) for name in ("schema_version", "task", "protocol", "models", "simulated")},
        run=facts.name,
        encoder=encoder,
        seed=seed,
        holdout=holdout,
        tolerance=tolerance,
        n_validation=int((~held_out).sum()),
        n_held_out=int(held_out.sum()),
        left_out=cases.left_out,
        debate_accuracy_validation=debate_validation,
        skip_accuracy_validation=float(cases.skip_right[~held_out].mean()),
        debate_accuracy=_share(cases, cases.debate_right, held_out),
        skip_accuracy=_share(cases, cases.skip_right, held_out),
        grid=grid,
        chosen=chosen,
        held_out=_held_out(cases, held_out, (chosen.tau_d, chosen.tau_m, chosen.tau_p)),
        as_run=None if cases.taus is None else _held_out(cases, held_out, cases.taus),
        predictors=list(_predictors(cases)),
        stopping=stopping,
        warnings=_warnings(cases, facts, int(held_out.sum()), chosen),
        set_line=set_line(chosen, encoder),
    )


def _share(cases: BothBranches, right: Bools, among: Bools) -> AccuracyEstimate:
    value, interval = cases.share_right(right, among)
    return AccuracyEstimate.model_validate({"value": value, "interval": interval})


def _encoder(folder: str | Path, facts: RunInfo) -> str:
    """Encoder of the embeddings of D: that of the recorded embeddings, else that of run.yaml.

    Raises:
        ConfigError: the embeddings are of several encoders.
    """
    used = read_table(folder, "embeddings", ["encoder"])["encoder"].unique().to_pylist()
    if len(used) > 1:
        names = ", ".join(sorted(used))
        raise ConfigError(f"{folder}: embeddings of several encoders ({names}): tau_d is valid for one of them only")
    return str(used[0]) if used else facts.encoder or "unknown"


def _held_out(cases: BothBranches, held_out: Bools, taus: Sequence[Threshold]) -> HeldOutPoint:
    skipped = skip_mask(cases, *taus)
    right = np.where(skipped, cases.skip_right, cases.debate_right)
    return HeldOutPoint(
        point=evaluate_point(cases, held_out, taus),
        accuracy_interval=cases.share_right(right, held_out)[1],
        accuracy_skipped_interval=cases.share_right(right, held_out & skipped)[1],
        vs_debate=cases.compared(right, cases.debate_right, held_out),
    )


def _predictors(cases: BothBranches) -> Iterator[Predictor]:
    signals = {"d": "higher D", "m": "higher M", "p": "lower mean p", "c": "lower mean c"}
    for name, predictor in signals.items():
        values = getattr(cases, name) * (1.0 if predictor.startswith("higher") else -1.0)
        known = ~np.isnan(values)
        wrong = ~cases.skip_right[known]
        area = finite_or_none(auroc(values[known], wrong))
        direction = f"{predictor}, more errors"
        yield Predictor(name=name, direction=direction, auroc=area, n=int(known.sum()), errors=int(wrong.sum()))


def _warnings(cases: BothBranches, facts: RunInfo, n_held_out: int, chosen: GridPoint) -> list[str]:
    found = []
    if facts.simulated:
        found.append("simulated models: these thresholds say nothing about any real model")
    if n_held_out < SMALL:
        found.append(
            f"only {n_held_out} held-out cases: the figures are imprecise, see their intervals; use {SMALL} or more"
        )
    if chosen.n_skipped == 0:
        found.append(
            "no setting that skips a debate keeps the accuracy on the validation cases: the chosen one always debates"
        )
    if chosen.cost_vs_debate is None:
        found.append("no token usage was recorded: the highest skip rate counts as the cheapest")
    return [*found, *cases.notes]


def set_line(point: GridPoint, encoder: str) -> str:
    """Command-line options for a point's thresholds and their encoder.

    >>> line = set_line(GridPoint(tau_d=0.2, tau_m=None, tau_p=0.6, skip_rate=0.5, accuracy=1.0, accuracy_skipped=1.0,
    ...     n_skipped=1, cost_vs_debate=None, cost_vs_single=None), "hashed-ngrams-512-v1")
    >>> print(line)
    --set gate.tau_d=0.2 --set gate.tau_m=none --set gate.tau_p=0.6 --set gate.tau_d_encoder=hashed-ngrams-512-v1
    """
    taus = {"tau_d": point.tau_d, "tau_m": point.tau_m, "tau_p": point.tau_p}
    words = [f"--set gate.{name}={'none' if tau is None else f'{tau:g}'}" for name, tau in taus.items()]
    of_encoder = [] if encoder == "unknown" else [f"--set {shlex.quote(f'gate.tau_d_encoder={encoder}')}"]
    return " ".join([*words, *of_encoder])
