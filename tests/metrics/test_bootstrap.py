"""Bootstrap intervals: of clusters, which count as one observation each, and BCa of independent cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from refusals import refuses
from scipy.stats import norm

from moot.metrics.bootstrap import bca_interval, cluster_bootstrap


def test_the_interval_of_a_mean_has_the_width_of_its_standard_error() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, 400)
    found = cluster_bootstrap(lambda drawn: float(values[drawn].mean()), np.arange(400), resamples=2000)
    expected = 2 * 1.96 * values.std() / math.sqrt(400)
    assert found.low < values.mean() < found.high
    assert found.high - found.low == pytest.approx(expected, rel=0.1)
    assert found.resamples == 2000


def test_copies_within_a_cluster_add_no_certainty() -> None:
    values = np.random.default_rng(2).normal(size=50)
    copied, clusters = np.repeat(values, 8), np.repeat([f"case {i}" for i in range(50)], 8)
    alone = cluster_bootstrap(lambda drawn: float(values[drawn].mean()), np.arange(50), resamples=2000)
    together = cluster_bootstrap(lambda drawn: float(copied[drawn].mean()), clusters, resamples=2000)
    assert together.high - together.low == pytest.approx(alone.high - alone.low, rel=0.1)


def test_nine_in_ten_intervals_or_more_cover_the_truth() -> None:
    random = np.random.default_rng(3)
    held = 0
    for seed in range(100):
        effects = np.repeat(random.normal(size=40), 3)
        values = effects + random.normal(size=120)
        found = cluster_bootstrap(
            lambda drawn, values=values: float(values[drawn].mean()),  # type: ignore[misc]
            np.repeat(np.arange(40), 3),
            resamples=300,
            seed=seed,
        )
        held += found.low <= 0.0 <= found.high
    assert held >= 88


def test_draws_without_a_value_are_left_out_and_the_same_seed_draws_the_same() -> None:
    nothing = cluster_bootstrap(lambda drawn: math.nan, np.arange(5), resamples=10)
    assert (math.isnan(nothing.low), nothing.resamples) == (True, 0)
    some = [cluster_bootstrap(lambda drawn: float(drawn.mean()), np.arange(9), resamples=50, seed=4) for _ in range(2)]
    assert some[0] == some[1]
    refuses("no observations", cluster_bootstrap, lambda drawn: 0.0, [])
    refuses("between 0 and 1", cluster_bootstrap, lambda drawn: 0.0, [1], level=1.0)


def test_bca_is_the_formula() -> None:
    """Efron's interval written out, on the same number of draws."""
    values = np.random.default_rng(6).exponential(size=60)
    found = bca_interval(values, resamples=20_000)
    draws = np.random.default_rng(7).choice(values, size=(20_000, 60)).mean(axis=1)
    bias = norm.ppf((draws < values.mean()).mean())
    jackknife = np.array([np.delete(values, i).mean() for i in range(60)])
    gaps = jackknife.mean() - jackknife
    acceleration = (gaps**3).sum() / (6 * (gaps**2).sum() ** 1.5)
    z = bias + norm.ppf([0.025, 0.975])
    ends = np.quantile(draws, norm.cdf(bias + z / (1 - acceleration * z)))
    assert (found.low, found.high) == pytest.approx(tuple(ends), abs=0.02)
    assert values.mean() - found.low < found.high - values.mean()  # a long tail to the right
    assert found == bca_interval(values, resamples=20_000)


def test_bca_covers_the_truth_at_the_nominal_rate() -> None:
    random = np.random.default_rng(9)
    intervals = [bca_interval(random.exponential(size=50), resamples=500, level=0.9) for _ in range(200)]
    assert 164 <= sum(found.low <= 1.0 <= found.high for found in intervals) <= 196


def test_bca_takes_any_statistic_and_leaves_unknown_values_out() -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert bca_interval([*values, None, math.nan]) == bca_interval(values)
    by_axis = bca_interval(values, np.median)
    by_vector = bca_interval(values, lambda drawn: float(np.median(drawn)))
    assert by_axis == by_vector


def test_bca_of_data_without_spread_is_unknown() -> None:
    for degenerate in ([], [1.0], [1.0] * 50, [None, 2.0]):
        found = bca_interval(degenerate)
        assert math.isnan(found.low)
        assert math.isnan(found.high)
        assert found.resamples == 0
    refuses("between 0 and 1", bca_interval, [1.0, 2.0], level=95)
    refuses("a vector", bca_interval, [[1.0]])
    refuses("at least one resample", bca_interval, [1.0, 2.0], resamples=0)
