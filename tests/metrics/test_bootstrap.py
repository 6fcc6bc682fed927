"""Cluster bootstrap: its interval is that of independent clusters, not of single observations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from moot.metrics.bootstrap import cluster_bootstrap


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


def test_nine_in_ten_intervals_or_more_hold_the_truth() -> None:
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
    with pytest.raises(ValueError, match="no observations"):
        cluster_bootstrap(lambda drawn: 0.0, [])
    with pytest.raises(ValueError, match="between 0 and 1"):
        cluster_bootstrap(lambda drawn: 0.0, [1], level=1.0)
