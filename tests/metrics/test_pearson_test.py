"""Pearson's correlation over clusters: beside scipy's, its false positives, and an interval that agrees with its p."""

from __future__ import annotations

import math

import numpy as np
import pytest
from refusals import refuses
from scipy import stats

from moot.metrics.jackknife import LEAST_CLUSTERS
from moot.metrics.pearson_test import pearson_test


@pytest.mark.parametrize(("n", "rho", "tolerance"), [(72, -0.71, 3.0), (2_000, 0.1, 0.7), (300, 0.0, 0.1)])
def test_independent_normal_rows_are_as_scipys(n: int, rho: float, tolerance: float) -> None:
    """p is compared by its power of ten: 3e-12 for r = -.71 of 72 rows."""
    random = np.random.default_rng(2)
    x, z = random.normal(size=(2, n))
    y = 5.0 + rho * x + math.sqrt(1.0 - rho**2) * z
    found, expected = pearson_test(x, y, np.arange(n)), stats.pearsonr(x, y)
    ends = expected.confidence_interval()
    assert found.value == pytest.approx(expected.statistic)
    assert math.log10(found.p_value) == pytest.approx(math.log10(expected.pvalue), abs=tolerance)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high), abs=0.06 if n < 100 else 0.02)
    assert (found.n, found.clusters) == (n, n)


@pytest.mark.parametrize(("clusters", "size"), [(10, 1), (20, 1), (72, 1), (15, 5)])
@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_null_effects_are_rare_planted_ones_are_found_and_the_interval_agrees(
    clusters: int, size: int, rho: float
) -> None:
    """Half of the variance of both is the cluster's. Of 600 worlds; `scipy.stats.pearsonr` finds 15 % in the last."""
    random, worlds = np.random.default_rng(9), 600
    code = np.repeat(np.arange(clusters), size)
    found = []
    for _ in range(worlds):
        x, z = random.normal(size=(2, clusters))[:, code] + (size > 1) * random.normal(size=(2, len(code)))
        found.append(pearson_test(x, rho * x + math.sqrt(1.0 - rho**2) * z, code))
    significant = np.array([each.p_value < 0.05 for each in found])
    assert [each.low > 0.0 or each.high < 0.0 for each in found] == significant.tolist()
    assert 0.92 <= np.mean([each.low <= rho <= each.high for each in found]) <= 0.98
    if rho:
        assert significant.mean() > {10: 0.3, 20: 0.75, 72: 0.99, 15: 0.7}[clusters]
    else:
        assert 0.02 <= significant.mean() <= 0.075


def test_where_nothing_can_be_said_there_is_no_test() -> None:
    random = np.random.default_rng(3)
    x, y = random.normal(size=(2, 30))
    few = pearson_test(x, y, np.arange(30) % (LEAST_CLUSTERS - 1))
    alone = np.zeros(30)
    alone[0] = 1.0  # it varies in one cluster only
    for found in (few, pearson_test(x, 2.0 * x, np.arange(30)), pearson_test(alone, y, np.arange(30))):
        assert np.isnan([found.low, found.high, found.p_value]).all()
    assert few.value == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert math.isnan(pearson_test(x, np.full(30, 0.1), np.arange(30)).value)
    refuses("known values", pearson_test, [1.0, math.nan], [1.0, 2.0], [0, 1])
    refuses("no rows", pearson_test, [], [], [])
