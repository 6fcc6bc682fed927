"""How often each interval that moot shows covers the true value, and how often each test finds what is not there.

    python tests/bench/coverage.py [--json FILE] [--worlds N] [--only WORDS]

Every row is a figure as reports, summaries or analyses show it, computed by the function that they call, in simulated
worlds whose true value is known. Columns are numbers of cases; `grouped` worlds have groups of one to seven dependent
cases, four on average. An interval's cell is its coverage (nominally .95), a test's is its share of p below .05 where
there is nothing to find (nominally .05); in brackets the share of worlds with one, where that is not all. `-`: none is
shown, because there are fewer than ten groups. A row is missed below .90 (.88 with ten independent cases), or above .08
for a test.

Not here: a plan's prediction intervals (`plan_check.py`), and bands that are no confidence intervals but quantiles of
what was seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from harness import ReportRows, finish, options, parsed
from scipy.special import ndtr, ndtri

from moot.deploy.results.figures.accuracy import share
from moot.deploy.results.figures.claims import VERDICT, Claim, claim_set, debater_errors, macro_f1_difference
from moot.deploy.results.figures.judges import _agreement
from moot.deploy.results.figures.token_confidence import AnalysisSettings, _counted, _pair
from moot.deploy.results.stats import (
    compare_paired,
    mean_estimate,
    mean_over_cases,
    measure_calibration,
    ratio_interval,
)
from moot.metrics.agreement import rater_interval
from moot.metrics.brier import brier_stated
from moot.metrics.class_separation import auroc_matrix
from moot.metrics.cluster_bootstrap import bootstrap_error, cluster_weights, resampled_auroc, resampled_spearman
from moot.metrics.jackknife import bounded_interval
from moot.metrics.nested_models import nested_comparison
from moot.metrics.rank_correlation import spearman_matrix
from moot.metrics.role_asymmetry import RoleResamples, association_difference
from moot.metrics.signal_divergences import ConditionPair
from moot.metrics.weighted_kappa import quadratic_weighted_kappa
from moot.protocols.claims import HALLUCINATED, SUPPORTED

Floats = npt.NDArray[np.float64]
Random = np.random.Generator
Ends = Sequence[float | None] | None

SIZES = (10, 20, 72, 300)
LEAST, LEAST_OF_TEN, MOST_FALSE = 0.90, 0.88, 0.08
SETTINGS = AnalysisSettings(too_few=3)


class Covered(NamedTuple):
    """Interval and the true value."""

    ends: Ends
    truth: float


Outcome = Covered | float | None
"""An interval with the truth, or a p-value."""


@dataclass(frozen=True)
class World:
    """A sample of n cases."""

    random: Random
    n: int
    grouped: bool

    @property
    def groups(self) -> list[str]:
        """Group of each case."""
        if not self.grouped:
            return [f"{i:05d}" for i in range(self.n)]
        sizes = np.random.default_rng(self.n).integers(1, 8, self.n)
        return [f"{i:05d}" for i in np.repeat(np.arange(self.n), sizes)[: self.n]]

    def normal(self) -> Floats:
        """Standard normal values; half of the variance is the group's."""
        own = self.random.normal(size=self.n)
        if not self.grouped:
            return own
        _, code = np.unique(self.groups, return_inverse=True)
        return np.asarray((own + self.random.normal(size=self.n)[code]) / np.sqrt(2.0))

    def happens(self, share: float) -> npt.NDArray[np.bool_]:
        """Events of this probability."""
        return np.asarray(self.normal() < ndtri(share))


def population() -> World:
    """So many cases that their figures are the truth."""
    return World(np.random.default_rng(1), 1_000_000, grouped=False)


def accuracy(world: World, right: float) -> Outcome:
    """Accuracy of a run."""
    outcomes = world.happens(right)
    groups = map(str, world.groups)
    return Covered(share(zip(groups, outcomes.tolist(), strict=True), str)[1], right)


def mean(world: World, shape: Callable[[Floats], Floats], truth: float) -> Outcome:
    """`--rounds`, `--dial`, charts of rounds, judges' differences, token F1."""
    cases, groups = [str(i) for i in range(world.n)], world.groups
    found = mean_over_cases(zip(cases, shape(world.normal()).tolist(), strict=True), lambda case: groups[int(case)])
    return Covered((found.low, found.high), truth)


def slope(world: World) -> Outcome:
    """Slope over kappa, of a measure that does not react."""
    _, code = np.unique(world.groups, return_inverse=True)
    kappa = world.random.uniform(-0.5, 0.5, world.n)
    products, squares = (np.bincount(code, each).astype(float) for each in (kappa * world.normal(), kappa**2))
    return Covered(ratio_interval(products, squares, 0.95), 0.0)


def confidences(world: World, over: float) -> tuple[Floats, Floats]:
    """Stated confidences, and whether each answer is right; `over` is the overconfidence."""
    stated = 0.5 + 0.5 * world.random.beta(2.0, 1.0, world.n)
    return stated, (ndtr(world.normal()) < stated - over).astype(float)


@cache
def true_brier() -> float:
    """Brier score of `confidences`."""
    return float(np.mean(brier_stated(*confidences(population(), 0.1))))


def brier(world: World) -> Outcome:
    """Brier score of reports, claims, cards and analyses."""
    scores = np.asarray(brier_stated(*confidences(world, 0.1)))
    return Covered(mean_estimate(scores, world.groups).interval, true_brier())


def null_band(world: World) -> Outcome:
    """Calibrated forecasts whose ECE is outside its null band, as a p-value."""
    stated, right = confidences(world, 0.0)
    measured = measure_calibration(stated, right, world.groups, 10)
    if measured.null is None:
        return None
    low, high = measured.null
    return 1.0 if low <= measured.error <= high else 0.0


def claims(world: World) -> list[Claim]:
    """Claims of which 40 % are hallucinated and 80 % judged rightly; the two debaters' errors share a cause."""
    hallucinated, wrong = world.happens(0.4), world.happens(0.2)
    errors = [np.where(world.happens(0.5), wrong, world.happens(0.2)) for _ in range(2)]
    labels = (SUPPORTED, HALLUCINATED)
    return [
        Claim(
            case_id=str(i),
            group=group,
            gold=labels[int(truth)],
            answer=labels[int(truth != wrong[i])],
            stances={
                name: "denies" if truth != error[i] else "supports"
                for name, error in zip(("first", "second"), errors, strict=True)
            },
        )
        for i, (group, truth) in enumerate(zip(world.groups, hallucinated, strict=True))
    ]


def detector(world: World, figure: str) -> Outcome:
    """Figures of claims and of a classifier's card; the truth is that of balanced errors."""
    found = claim_set(claims(world)).by(VERDICT)
    assert found is not None
    one = {"macro_f1": found.macro_f1, "f1": found.hallucinated.f1, "precision": found.hallucinated.precision}
    one["recall"] = found.hallucinated.recall
    precision = 0.32 / (0.32 + 0.12)
    f1, other = 2 * 0.32 / (0.44 + 0.4), 2 * 0.48 / (0.56 + 0.6)
    truth = {"macro_f1": (f1 + other) / 2, "f1": f1, "precision": precision, "recall": 0.8}
    return Covered(one[figure].interval, truth[figure])


def macro_f1_of_two(world: World) -> Outcome:
    """Difference of macro F1 of two systems that are equally good."""
    first = claims(world)
    again = world.happens(0.2)
    labels = (SUPPORTED, HALLUCINATED)
    second = [
        replace(each, answer=labels[int((each.gold == HALLUCINATED) != wrong)]) if redone else each
        for each, wrong, redone in zip(first, again, world.random.random(world.n) < 0.5, strict=True)
    ]
    pair = ({each.case_id: each for each in some} for some in (first, second))
    return Covered(macro_f1_difference(*pair).interval, 0.0)


def shared_errors(world: World) -> Outcome:
    """Correlation of two debaters' errors: both have the cause's with probability one half each."""
    found = debater_errors(claims(world))
    return Covered(found.rho.interval if found else None, 0.25)


def ratings(world: World, raters: int = 3) -> Floats:
    """Ratings of 1 to 3, right about three times in four; the truth of a group's units is alike."""
    truth = 1.0 + (world.normal()[np.newaxis] > np.array([[-1.28], [-0.25]])).sum(axis=0)
    missed = world.random.random((raters, world.n)) < 0.25
    return np.where(missed, world.random.choice([1.0, 2.0, 3.0], size=missed.shape), truth)


@cache
def true_agreement() -> dict[str, float]:
    """Coefficients of `ratings`."""
    table = ratings(population())
    found = _agreement("depth", table[:, :200_000], range(1, 4), np.arange(200_000))
    kappa = quadratic_weighted_kappa(table[0], table[1], 1, 3)
    return {name: getattr(found, name).value for name in ("alpha", "raw", "ac2")} | {"kappa": kappa}


def judges(world: World, name: str) -> Outcome:
    """Agreement of judges, and of `--ratings`."""
    found = _agreement("depth", ratings(world), range(1, 4), np.array(world.groups))
    return Covered(getattr(found, name).interval, true_agreement()[name])


def kappa(world: World) -> Outcome:
    """QWK of scores with raters, and kappas of `--ratings`."""
    ends = rater_interval(lambda two: quadratic_weighted_kappa(two[0], two[1], 1, 3), ratings(world, 2), world.groups)
    return Covered(ends, true_agreement()["kappa"])


def related(world: World, rho: float) -> tuple[Floats, Floats]:
    """Two normal columns with this correlation."""
    x = world.normal()
    return x, rho * x + np.sqrt(1.0 - rho**2) * world.normal()


def signals(world: World, key: str, rho: float, shape: Callable[[Floats], Floats] = lambda x: x) -> Outcome:
    """Pairs of signals of `moot analyze`: an interval, or a p-value."""
    x, y = related(world, rho)
    slots = np.full(world.n, "")
    codes = np.unique(world.groups, return_inverse=True)[1]
    row: dict[str, Any] = _pair(shape(x), shape(y), codes.astype(np.int64), slots, SETTINGS)
    if key in ("p", "pearson_p"):
        return None if row[key] is None else float(row[key])
    truth = rho if key == "pearson" else 6 / np.pi * np.arcsin(rho / 2)
    return Covered((row[f"{key}_low"], row[f"{key}_high"]), truth)


def sweep(world: World, rho: float, *, ranked: bool) -> Outcome:
    """Associations of the sweep, and early signals: Spearman's rho, or the AUROC of the upper half."""
    x, y = related(world, rho)
    groups, y = world.groups, y if ranked else (y > 0.0).astype(float)
    drawn = cluster_weights(groups, SETTINGS.resamples, int(world.random.integers(2**31)))
    value = (spearman_matrix if ranked else auroc_matrix)(x, y).item()
    error = bootstrap_error((resampled_spearman if ranked else resampled_auroc)(x, y, drawn)[:, 0, 0], len(set(groups)))
    ends = bounded_interval(value, error, len(set(groups)), lowest=-1.0 if ranked else 0.0)
    truth = 6 / np.pi * np.arcsin(rho / 2) if ranked else 0.5 + 2 * np.arcsin(rho / np.sqrt(2)) / np.pi
    return Covered([float(end) for end in ends], truth)


def roles(world: World, first: float, second: float) -> Outcome:
    """Difference of strength of one feature in two roles of the same cases."""
    drawn = cluster_weights(world.groups, SETTINGS.resamples, int(world.random.integers(2**31)))
    a, b = (related(world, rho) for rho in (first, second))
    one, other = (resampled_spearman(*pair, drawn) for pair in (a, b))
    clusters = len(set(world.groups))
    found = association_difference(RoleResamples(one, other, spearman_matrix(*a), spearman_matrix(*b), clusters))
    truth = 6 / np.pi * (np.arcsin(abs(first) / 2) - np.arcsin(abs(second) / 2))
    return Covered((found.low.item(), found.high.item()), truth)


def useless_block(world: World) -> Outcome:
    """Gain of predictors without information, as a p-value: an interval above 0 says that they help."""
    x, y = related(world, 0.0)
    if len(set(world.groups)) < 10:
        return None
    found = nested_comparison({"share": np.empty((world.n, 0)), "x": x}, (y > 0.0).astype(float), world.groups)[1]
    return None if np.isnan(found.gain_low) else float(found.gain_low <= 0.0)


def divergence(world: World, name: str) -> Outcome:
    """Prevalence of a divergence of two signals of correlation .5, and its excess over independence."""
    x, y = related(world, 0.5)
    codes = np.unique(world.groups, return_inverse=True)[1].astype(np.int64)
    row: dict[str, Any] = _counted(ConditionPair("", np.ones(world.n, bool), x > 0, y > 0), codes, SETTINGS)
    both = 0.25 + np.arcsin(0.5) / (2 * np.pi)
    return Covered((row[f"{name}_low"], row[f"{name}_high"]), both if name == "prevalence" else both - 0.25)


def paired(world: World, *, test: bool) -> Outcome:
    """Two runs of equal accuracy on the same cases."""
    common, again = world.happens(0.7), world.random.random((2, world.n)) < 0.3
    first, second = (np.where(redone, world.happens(0.7), common) for redone in again)
    found = compare_paired(first.tolist(), second.tolist(), [str(group) for group in world.groups])
    return found.p_value if test else Covered(found.interval, 0.0)


def skewed(x: Floats) -> Floats:
    """Exponential values."""
    return np.asarray(-np.log1p(-ndtr(x)))


def seldom(x: Floats) -> Floats:
    """Differences of -1, 0 and 1, of which one in six is not 0."""
    return np.where(x < -1.4, -1.0, np.where(x > 1.4, 1.0, 0.0))


ROWS: dict[str, Callable[[World], Outcome]] = {
    "accuracy .7": partial(accuracy, right=0.7),
    "accuracy .95": partial(accuracy, right=0.95),
    "mean of rounds, normal": partial(mean, shape=lambda x: x, truth=0.0),
    "mean of rounds, exponential": partial(mean, shape=skewed, truth=1.0),
    "mean of rounds, seldom not 0": partial(mean, shape=seldom, truth=0.0),
    "slope over kappa": slope,
    "Brier score": brier,
    "p: ECE outside its null band": null_band,
    "F1": partial(detector, figure="f1"),
    "macro F1": partial(detector, figure="macro_f1"),
    "precision": partial(detector, figure="precision"),
    "recall": partial(detector, figure="recall"),
    "difference of macro F1, 0": macro_f1_of_two,
    "correlation of debaters' errors": shared_errors,
    "alpha": partial(judges, name="alpha"),
    "raw agreement": partial(judges, name="raw"),
    "AC2": partial(judges, name="ac2"),
    "weighted kappa": kappa,
    "Pearson, 0": partial(signals, key="pearson", rho=0.0),
    "Pearson, .7": partial(signals, key="pearson", rho=0.7),
    "p: Pearson": partial(signals, key="pearson_p", rho=0.0),
    "p: Pearson, skewed": partial(signals, key="pearson_p", rho=0.0, shape=skewed),
    "Spearman, .7": partial(signals, key="spearman", rho=0.7),
    "p: Spearman, permuted": partial(signals, key="p", rho=0.0),
    "sweep: Spearman, 0": partial(sweep, rho=0.0, ranked=True),
    "sweep: Spearman, .5": partial(sweep, rho=0.5, ranked=True),
    "sweep: AUROC": partial(sweep, rho=0.5, ranked=False),
    "difference of roles, .6 and .3": partial(roles, first=-0.6, second=0.3),
    "difference of roles, both 0": partial(roles, first=0.0, second=0.0),
    "p: gain of a useless block": useless_block,
    "prevalence of a divergence": partial(divergence, name="prevalence"),
    "excess of a divergence": partial(divergence, name="excess"),
    "difference of accuracies, 0": partial(paired, test=False),
    "p: difference of accuracies": partial(paired, test=True),
}


def outcomes(row: Callable[[World], Outcome], n: int, worlds: int, *, grouped: bool) -> Iterator[bool | None]:
    """Whether each world's interval covers, or its test finds something; None where nothing is shown."""
    for seed in range(worlds):
        found = row(World(np.random.default_rng([seed, n]), n, grouped))
        if isinstance(found, Covered):
            low, high = found.ends or (None, None)
            unknown = low is None or high is None or np.isnan(low)
            yield None if unknown else bool(low <= found.truth <= high)  # type: ignore[operator]
        else:
            yield None if found is None or np.isnan(found) else found < 0.05


def cell(found: Sequence[bool | None]) -> tuple[str, float | None]:
    """Text of a cell, and its rate."""
    known = [each for each in found if each is not None]
    if len(known) < len(found) / 20:
        return "-", None
    rate = sum(known) / len(known)
    return f"{rate:.3f}" + ("" if len(known) == len(found) else f" ({len(known) / len(found):.2f})"), rate


def is_missed(name: str, n: int, rate: float | None, *, grouped: bool) -> bool:
    """Whether a rate is too far from its nominal value."""
    if rate is None:
        return False
    if name.startswith("p: "):
        return rate > MOST_FALSE
    return rate < (LEAST_OF_TEN if n == 10 and not grouped else LEAST)


def main() -> int:
    """Run the bench; 1 when a row is missed."""
    parser = options(__doc__)
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--only", default="", help="rows whose name has these words")
    given = parsed(parser)
    rows = ReportRows()
    for name, row in ROWS.items():
        if given.only not in name:
            continue
        line: dict[str, Any] = {"figure": name}
        ok = True
        for grouped in (False, True):
            for n in SIZES:
                text, rate = cell(list(outcomes(row, n, given.worlds, grouped=grouped)))
                line[f"{n}{' grouped' if grouped else ''}"] = text
                ok = ok and not is_missed(name, n, rate, grouped=grouped)
        rows.add(line | {"ok": ok})
    return finish(given, coverage=rows)


if __name__ == "__main__":
    sys.exit(main())
