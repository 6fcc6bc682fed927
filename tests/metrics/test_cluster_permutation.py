"""Permutation tests: exact in small worlds, at their level in null worlds with clusters, and able to find an effect."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from association_data import Floats, clustered, with_missing_values
from refusals import refuses
from scipy.stats import binom, spearmanr

from moot.metrics.class_separation import auroc_matrix
from moot.metrics.cluster_permutation import Statistic, permutation_test
from moot.metrics.rank_correlation import spearman_matrix
from moot.metrics.significance import benjamini_hochberg


def _scores(columns: Floats) -> Floats:
    """Scores of 1 to 3, most of them 3."""
    return np.asarray(3.0 - (columns < -0.5) - (columns < -1.3), dtype=np.float64)


def test_the_statistic_is_that_of_the_data() -> None:
    x, y, clusters = with_missing_values(1)
    complete = ~np.isnan(x).any(axis=0)
    flags = np.where(np.isnan(y), np.nan, y >= 3.0)
    assert complete.sum() == 3
    rho = permutation_test(x, y, clusters, 3).statistic
    area = permutation_test(x, flags, clusters, 3, statistic="auroc").statistic
    assert rho[complete] == pytest.approx(spearman_matrix(x, y)[complete], abs=1e-6)
    assert rho == pytest.approx(spearman_matrix(x, y), abs=0.03)  # y keeps the ranks that it has without x's holes
    assert area == pytest.approx(auroc_matrix(x, flags) - 0.5, abs=1e-6)


def test_p_values_are_those_of_all_arrangements() -> None:
    """Five clusters of two rows: 120 arrangements, counted one by one."""
    random = np.random.default_rng(2)
    x, y = random.normal(size=10), np.round(random.normal(size=10), 1)
    blocks = np.arange(10).reshape(5, 2)
    sizes = [abs(spearmanr(x, y[blocks[list(order)].ravel()]).statistic) for order in permutations(range(5))]
    exact = np.mean(np.array(sizes) >= sizes[0] - 1e-9)
    found = permutation_test(x, y, np.arange(10) // 2, 4000)
    assert found.p_value.item() == pytest.approx(exact, abs=0.035)
    assert found.max_p_value.item() == pytest.approx(exact, abs=0.035)


def test_no_p_value_is_below_one_over_the_arrangements() -> None:
    x = np.arange(8.0)
    found = permutation_test(x, x, np.arange(8) // 2, 999)
    assert found.p_value.item() >= 1 / 24
    assert found.max_p_value.item() >= 1 / 24


def test_clusters_of_a_size_of_their_own_stay_where_they_are() -> None:
    x = np.arange(6.0)
    found = permutation_test(x, x, [0, 1, 1, 2, 2, 2], 50)
    assert found.movable.tolist() == [0.0]
    assert np.isnan([found.p_value.item(), found.max_p_value.item(), found.null_quantile.item()]).all()
    assert permutation_test(x, x, [0, 0, 1, 1, 2, 3], 50).movable.tolist() == [1.0]
    assert permutation_test(x, x, [0, 0, 1, 1, 1, 2], 50).movable.tolist() == [0.0]


def test_the_order_inside_a_block_is_kept() -> None:
    """Both columns distinguish first from second in each cluster, which no exchange of blocks can change."""
    turn = np.tile([0.0, 1.0], 30)
    found = permutation_test(turn, turn, np.arange(60) // 2, 99)
    assert found.statistic.item() == pytest.approx(1.0)
    assert found.p_value.item() == found.max_p_value.item() == 1.0


@pytest.mark.parametrize("statistic", ["spearman", "auroc"])
def test_the_level_is_kept_under_the_null_with_clusters_and_missing_values(statistic: Statistic) -> None:
    """200 worlds, 8 independent features each: p-values below .05 and .005 are as rare as they should be."""
    random = np.random.default_rng(3)
    p_values: list[float] = []
    adjusted: list[float] = []
    discoveries = plain = 0
    for world in range(200):
        x, codes = clustered(random, 40, 4, 8, share=0.8)
        y = _scores(clustered(random, 40, 4, 1, share=0.8)[0])
        x[random.random(len(x)) < 0.15, ::2] = np.nan
        keep = random.random(len(x)) < 0.85  # clusters of several sizes
        x, y, codes = x[keep], y[keep], codes[keep]
        if statistic == "auroc":
            found = permutation_test(x, y < 3.0, codes, 199, world, "auroc")
        else:
            found = permutation_test(x, y, codes, 199, world)
            plain += int((spearmanr(x[:, 1], y[:, 0]).pvalue) <= 0.05)
        p_values.extend(found.p_value.ravel().tolist())
        adjusted.append(float(found.max_p_value.min()))
        discoveries += bool((benjamini_hochberg(found.p_value.ravel()) <= 0.05).any())
    p = np.array(p_values)
    assert binom.ppf(1e-4, 1600, 0.05) <= (p <= 0.05).sum() <= binom.ppf(1 - 1e-4, 1600, 0.05)
    assert (p <= 0.005).sum() <= binom.ppf(1 - 1e-4, 1600, 0.005)
    assert (np.array(adjusted) <= 0.05).sum() <= binom.ppf(1 - 1e-4, 200, 0.05)
    assert discoveries <= binom.ppf(1 - 1e-4, 200, 0.05)
    if statistic == "spearman":  # what a test of independent rows would have said
        assert plain > binom.ppf(1 - 1e-4, 200, 0.05)


def test_the_normal_tail_agrees_with_many_more_permutations() -> None:
    random = np.random.default_rng(4)
    x, codes = clustered(random, 80, 3, 12)
    y = _scores(0.4 * x[:, [0]] + clustered(random, 80, 3, 1)[0])
    few, many = (permutation_test(x, y, codes, count, seed=5).p_value[0, 0] for count in (300, 30_000))
    assert 0.0002 < many < 0.01
    assert few == pytest.approx(many, rel=0.6)


def test_an_effect_is_found_and_the_sweep_costs_something() -> None:
    random = np.random.default_rng(6)
    x, codes = clustered(random, 100, 3, 30)
    y = _scores(0.6 * x[:, [7]] + clustered(random, 100, 3, 1)[0])
    found = permutation_test(x, y, codes, 200)
    assert found.p_value[7, 0] < 1e-4
    assert found.max_p_value[7, 0] == 1 / 201
    assert (found.max_p_value >= found.p_value - 1e-12).all()
    assert abs(found.statistic[7, 0]) > found.null_quantile[0]
    assert (benjamini_hochberg(found.p_value[:, 0]) <= 0.05).tolist().index(True) == 7


def test_what_is_undefined_is_nan_and_harms_nobody() -> None:
    x, y, clusters = with_missing_values(7)
    spoilt = np.column_stack([x, np.ones(len(x)), np.full(len(x), np.nan)])
    targets = np.column_stack([y, np.ones(len(x)), np.full(len(x), np.nan)])
    found, alone = permutation_test(spoilt, targets, clusters, 50), permutation_test(x, y, clusters, 50)
    for name in ("statistic", "p_value", "max_p_value"):
        values = getattr(found, name)
        assert np.isnan(values[6:]).all()
        assert np.isnan(values[:, 3:]).all()
        assert values[:6, :3] == pytest.approx(getattr(alone, name), abs=1e-6)


def test_bad_input_is_refused() -> None:
    refuses("at least one permutation", permutation_test, [1.0], [1.0], [0], 0)
    refuses("0, 1 or unknown", permutation_test, [1.0, 2.0], [1.0, 2.0], [0, 1], 9, statistic="auroc")


def test_targets_only_come_to_their_own_place() -> None:
    """Traits that are easy, and told with confidence, are no association of confidence with quality."""
    random = np.random.default_rng(3)
    rejected = {"placed": 0, "shuffled": 0}
    for _ in range(60):
        trait = np.stack([random.permutation(4) for _ in range(30)]).ravel()
        clusters = np.repeat(np.arange(30), 4)
        x, y = (trait + random.normal(size=120) for _ in range(2))
        placed = permutation_test(x, y, clusters, 99, statistic="spearman", slots=trait)
        rejected["placed"] += placed.p_value.item() <= 0.05
        rejected["shuffled"] += permutation_test(x, y, clusters, 99).p_value.item() <= 0.05
        assert placed.movable.item() == 1.0
    assert rejected["placed"] <= 9  # 3 expected; more than 9 once in 2,000 such tests
    assert rejected["shuffled"] > 20


def test_the_order_of_the_rows_does_not_matter() -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=(2, 60))
    clusters, slots = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
    first = permutation_test(x, y, clusters, 200, slots=slots)
    order = random.permutation(60)
    again = permutation_test(x[order], y[order], clusters[order], 200, slots=slots[order])
    assert first.p_value.item() == pytest.approx(again.p_value.item(), abs=1e-6)
