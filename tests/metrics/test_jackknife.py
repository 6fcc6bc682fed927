"""The cluster jackknife: standard errors that are known, intervals beside scipy's, and how often they cover."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from refusals import refuses
from scipy import stats

from moot.metrics.detection import detection_figures, detection_outcomes
from moot.metrics.jackknife import (
    LEAST_CLUSTERS,
    MOST_BLOCKS,
    bounded_interval,
    coefficient_interval,
    jackknife_error,
    left_out_sums,
    left_out_weights,
    mean_interval,
    share_interval,
)
from moot.metrics.weighted_kappa import quadratic_weighted_kappa, resampled_weighted_kappa

Floats = npt.NDArray[np.float64]


def means(values: Floats, clusters: npt.ArrayLike | None = None) -> Floats:
    """Mean without each cluster."""
    labels = np.arange(len(values)) if clusters is None else clusters
    sums = left_out_sums(np.column_stack([values, np.ones(len(values))]), labels)
    return np.asarray(sums[:, 0] / sums[:, 1])


def test_what_is_left_out_is_one_cluster_at_a_time() -> None:
    values, clusters = np.random.default_rng(1).normal(size=(30, 2)), np.array([*"cab"] * 10)
    expected = np.stack([values[clusters != name].sum(axis=0) for name in "abc"])
    assert left_out_sums(values, clusters) == pytest.approx(expected)
    assert left_out_weights(clusters) @ values == pytest.approx(expected)
    assert left_out_sums(np.ones((3, 1)), [1, 2, 2])[:, 0].tolist() == [2.0, 1.0]
    for call in (lambda: left_out_sums(np.ones((0, 1)), []), lambda: left_out_weights([])):
        refuses("no rows", call)


def test_the_error_of_a_mean_is_the_standard_error_whatever_the_blocks() -> None:
    values = np.random.default_rng(2).normal(size=5_000)
    assert jackknife_error(means(values[:50])) == pytest.approx(stats.sem(values[:50]))
    kept = left_out_weights(np.arange(5_000))
    assert kept.shape == (MOST_BLOCKS, 5_000)
    assert jackknife_error(kept @ values / kept.sum(axis=1)) == pytest.approx(stats.sem(values), rel=0.15)


def test_intervals_beside_scipys() -> None:
    """Student's t of symmetric values, BCa of skewed ones, Fisher's z, and Wilson's."""
    random = np.random.default_rng(3)
    values = random.normal(size=40)
    values -= values.mean()
    symmetric = np.concatenate([values, -values])
    expected = stats.t.interval(0.95, 79, 0.0, stats.sem(symmetric))
    assert mean_interval(means(symmetric), 0.0) == pytest.approx(expected)
    skewed = random.exponential(size=400)
    bca = stats.bootstrap((skewed,), np.mean, rng=random).confidence_interval
    assert mean_interval(means(skewed), skewed.mean()) == pytest.approx((bca.low, bca.high), rel=0.02)
    assert bounded_interval(0.5, 0.75 / math.sqrt(997), 10**6) == pytest.approx(
        (0.4529, 0.5443), abs=1e-3
    )  # of 1,000 normal pairs
    wilson = stats.binomtest(300, 1_000).proportion_ci(method="wilson")
    found = share_interval(means(np.repeat([1.0, 0.0], [300, 700])), 0.3)
    assert found == pytest.approx((wilson.low, wilson.high), abs=2e-4)


def test_where_nothing_can_be_said_there_is_no_interval() -> None:
    few = np.arange(LEAST_CLUSTERS - 1.0)
    for nothing in (means(few), np.full(20, 0.4), [math.nan, *means(np.arange(20.0))]):
        low, high = coefficient_interval(nothing, 0.4)
        ends = [float(low), float(high), *mean_interval(nothing, 0.4), *share_interval(nothing, 0.4)]
        assert np.isnan(ends).all()
    assert np.isnan(coefficient_interval([0.9, 1.0] * 10, 1.0)).all()
    assert share_interval(np.ones(20), 1.0) == pytest.approx((0.839, 1.0), abs=1e-3)  # twenty groups, all right
    refuses("level", mean_interval, means(np.arange(20.0)), 9.5, level=1.0)
    refuses("level", share_interval, means(np.arange(20.0)), 0.5, level=0.0)


def test_bounded_intervals_stay_inside_the_bounds() -> None:
    low, high = coefficient_interval([0.95, 0.99] * 10, 0.97)
    assert -1.0 < low < 0.97 < high < 1.0
    low, high = coefficient_interval([0.02, 0.06] * 10, 0.04, lowest=0.0)
    assert 0.0 < low < 0.04 < high < 1.0


Random = np.random.Generator
Covered = tuple[float, float, float]
"""Ends of an interval, and the true value."""


def _skewed_mean(random: Random) -> Covered:
    values = random.exponential(size=10)
    return *mean_interval(means(values), float(values.mean())), 1.0


def _grouped_mean(random: Random) -> Covered:
    groups = np.repeat(np.arange(12), random.integers(1, 8, 12))
    values = random.normal(size=12)[groups] + random.normal(size=len(groups))
    return *mean_interval(means(values, groups), float(values.mean())), 0.0


def _grouped_share(random: Random) -> Covered:
    right = np.repeat(random.random(20) < 0.9, 3).astype(float)
    return *share_interval(means(right, np.repeat(np.arange(20), 3)), float(right.mean())), 0.9


def _kappa(random: Random) -> Covered:
    """Two raters of a scale from 0 to 2, who see the truth in two cases of three: kappa is 4/9."""
    truth = random.integers(0, 3, 20)
    seen = np.where(random.random((2, 20)) < 2 / 3, truth, random.integers(0, 3, (2, 20))).astype(float)
    left_out = resampled_weighted_kappa(seen[0], seen[1], left_out_weights(np.arange(20)), 0, 2)
    low, high = coefficient_interval(left_out, quadratic_weighted_kappa(seen[0], seen[1], 0, 2))
    return float(low), float(high), 4 / 9


def _difference_of_macro_f1(random: Random) -> Covered:
    """Two equally good systems, which agree in one claim of two."""
    truth, wrong = random.random(72) < 0.4, random.random((2, 72)) < 0.25
    wrong[1] = np.where(random.random(72) < 0.5, wrong[0], wrong[1])
    outcomes = [detection_outcomes(truth, truth != each) for each in wrong]
    left_out, observed = (
        figures[0].macro_f1 - figures[1].macro_f1
        for figures in (
            [detection_figures(left_out_sums(each, np.arange(72))) for each in outcomes],
            [detection_figures(each.sum(axis=0)) for each in outcomes],
        )
    )
    low, high = coefficient_interval(left_out, observed)
    return float(low), float(high), 0.0


@pytest.mark.parametrize("world", [_skewed_mean, _grouped_mean, _grouped_share, _kappa, _difference_of_macro_f1])
def test_intervals_cover(world: Callable[[Random], Covered]) -> None:
    """Nominally 95 % of 250; `tests/bench/coverage.py` has every figure that is shown."""
    random = np.random.default_rng(8)
    found = np.array([world(random) for _ in range(250)])
    low, high, truth = found[~np.isnan(found).any(axis=1)].T
    assert 0.91 <= ((low <= truth) & (truth <= high)).mean() <= 0.995
