"""The cluster bootstrap: exactly the statistic of the drawn rows, the right spread, and intervals that cover."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from association_data import Floats, clustered, with_missing_values
from refusals import refuses

from moot.metrics import cluster_bootstrap, weighted_ranks
from moot.metrics.class_separation import auroc_matrix
from moot.metrics.cluster_bootstrap import (
    cluster_weights,
    interval_from,
    resampled_auroc,
    resampled_pearson,
    resampled_spearman,
    resampled_sums,
)
from moot.metrics.rank_correlation import spearman_matrix


def bootstrap_spearman(x: npt.ArrayLike, y: npt.ArrayLike, clusters: npt.ArrayLike, n: int, seed: int = 0) -> Floats:
    return resampled_spearman(x, y, cluster_weights(clusters, n, seed))


def bootstrap_auroc(x: npt.ArrayLike, y: npt.ArrayLike, clusters: npt.ArrayLike, n: int, seed: int = 0) -> Floats:
    return resampled_auroc(x, y, cluster_weights(clusters, n, seed))


@pytest.mark.parametrize("rows_at_once", [16, 512], ids=["ties longer than a part", "one part"])
def test_each_resample_is_the_statistic_of_the_drawn_rows(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_ranks, "_ROWS", rows_at_once)
    x, y, clusters = with_missing_values(1, n=90)
    flags = np.where(np.isnan(y), np.nan, y >= 3.0)
    weights = cluster_weights(clusters, 12, seed=3)
    rho, area = bootstrap_spearman(x, y, clusters, 12, seed=3), bootstrap_auroc(x, flags, clusters, 12, seed=3)
    for weight, rho_of_it, area_of_it in zip(weights, rho, area, strict=True):
        rows = np.repeat(np.arange(len(x)), weight)
        assert rho_of_it == pytest.approx(spearman_matrix(x[rows], y[rows]), abs=1e-12, nan_ok=True)
        assert area_of_it == pytest.approx(auroc_matrix(x[rows], flags[rows]), abs=1e-12, nan_ok=True)


def test_sums_by_cluster_are_those_of_the_drawn_rows() -> None:
    random = np.random.default_rng(4)
    values, clusters = random.normal(size=(60, 3)), np.repeat(np.array(["c", "a", "b"] * 5), 4)
    weights = cluster_weights(clusters, 9, seed=2)
    assert resampled_sums(values, clusters, 9, seed=2) == pytest.approx(weights @ values, abs=1e-12)
    refuses("at least one resample", resampled_sums, values, clusters, 0)
    refuses("no rows", resampled_sums, values[:0], clusters[:0], 3)


def test_a_target_may_have_many_levels_and_the_resamples_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    x, y = random.normal(size=(700, 2)), random.normal(size=(700, 1))
    whole = bootstrap_spearman(x, y, np.arange(700) // 3, 5)
    rows = np.repeat(np.arange(700), cluster_weights(np.arange(700) // 3, 5)[4])
    assert whole[4] == pytest.approx(spearman_matrix(x[rows], y[rows]), abs=1e-12)
    monkeypatch.setattr(cluster_bootstrap, "_BYTES", 700 * 8 * 2 * 2)
    assert bootstrap_spearman(x, y, np.arange(700) // 3, 5) == pytest.approx(whole, abs=1e-12)


def test_every_row_once_is_the_statistic_itself() -> None:
    x, y, _ = with_missing_values(4)
    assert resampled_spearman(x, y, np.ones((1, len(x)), np.int32))[0] == pytest.approx(
        spearman_matrix(x, y), abs=1e-12
    )


def test_weights_are_whole_clusters_as_many_as_there_are() -> None:
    clusters = np.array(["b", "a", "b", "c", "c", "c"])
    weights = cluster_weights(clusters, 400, seed=5)
    first_of_each = weights[:, [1, 0, 3]]
    assert (first_of_each.sum(axis=1) == 3).all()
    assert (weights == first_of_each[:, [1, 0, 1, 2, 2, 2]]).all()
    assert first_of_each.mean(axis=0) == pytest.approx(np.ones(3), abs=0.15)
    assert (weights == cluster_weights(clusters, 400, seed=5)).all()
    assert (weights != cluster_weights(clusters, 400, seed=6)).any()


def test_the_spread_is_that_of_other_samples_of_clusters() -> None:
    """Away from independence, where ranks that are kept have another spread; rows drawn alone would have half of it."""
    random = np.random.default_rng(6)
    observed, estimated, rows_alone = [], [], []
    for _ in range(60):
        columns, codes = clustered(random, 40, 6, 2, share=0.9)
        x, y = columns[:, 0], 0.7 * columns[:, 0] + 0.714 * columns[:, 1]
        observed.append(spearman_matrix(x, y).item())
        estimated.append(bootstrap_spearman(x, y, codes, 60).std())
        rows_alone.append(bootstrap_spearman(x, y, np.arange(len(x)), 60).std())
    assert np.mean(estimated) == pytest.approx(np.std(observed), rel=0.25)
    assert np.mean(rows_alone) < 0.6 * np.std(observed)


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_intervals_cover(rho: float) -> None:
    """Nominally 95 %: of 120 intervals fewer than 88 % or all of them would be a chance below one in a thousand."""
    random = np.random.default_rng(7)
    normal_rho = 6 / np.pi * np.arcsin(rho / 2)
    covered = covered_area = 0
    for _ in range(120):
        columns, codes = clustered(random, 60, 3, 2)
        x, y = columns[:, 0], rho * columns[:, 0] + np.sqrt(1 - rho**2) * columns[:, 1]
        low, high = interval_from(bootstrap_spearman(x, y, codes, 100), spearman_matrix(x, y))
        covered += bool((low <= normal_rho <= high).item())
        flags = y > 0
        low, high = interval_from(bootstrap_auroc(x, flags, codes, 100), auroc_matrix(x, flags), lowest=0.0)
        covered_area += bool((low <= _area(rho) <= high).item())
    assert 0.88 < covered / 120 < 1.0
    assert 0.88 < covered_area / 120 < 1.0


def _area(rho: float) -> float:
    """AUROC of x about y > 0 for normal x and y: `P(x1 > x2)` of one with y > 0 and one with y < 0."""
    return float(0.5 + 2 * np.arcsin(rho / np.sqrt(2)) / np.pi)


def test_intervals_stay_inside_the_bounds_and_know_when_there_is_nothing_to_go_by() -> None:
    low, high = interval_from([0.9, 0.99, 1.0], 0.97)
    assert -1.0 < low < 0.97 < high < 1.0
    low, high = interval_from([0.02, 0.1, 0.0], 0.04, lowest=0.0)
    assert 0.0 < low < 0.04 < high < 0.5
    assert np.isnan(interval_from([1.0, 1.0, 1.0], 1.0)).all()
    assert np.isnan(interval_from([0.1, np.nan, np.nan, 0.2, np.nan], 0.1)).all()
    assert np.isnan(interval_from([0.1, 0.2, 0.3], np.nan)).all()


def test_a_resample_without_a_statistic_has_none() -> None:
    found = bootstrap_auroc([1.0, 2.0], [0, 1], [0, 1], 60)
    drawn = cluster_weights([0, 1], 60)
    assert (np.isnan(found[:, 0, 0]) == (drawn == 0).any(axis=1)).all()
    assert np.isnan(bootstrap_spearman([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0], [0, 1, 2, 3], 5)).all()
    assert np.isnan(bootstrap_spearman([np.nan, np.nan], [1.0, 2.0], [0, 1], 5)).all()


def test_bad_input_is_refused() -> None:
    refuses("at least one resample", cluster_weights, [0], 0)
    refuses("no rows", cluster_weights, [], 3)
    refuses("weights of", resampled_spearman, [1.0, 2.0], [1.0, 2.0], np.ones((3, 3), np.int32))
    refuses("level", interval_from, [0.1, 0.2], 0.1, level=1.0)
    refuses("observed", interval_from, [0.1, 0.2], [0.1])


def test_each_pearson_s_is_that_of_the_drawn_rows() -> None:
    random = np.random.default_rng(5)
    x = random.normal(1000.0, 0.01, size=60)
    y = 0.5 * x + random.normal(0.0, 0.01, size=60)
    clusters = np.repeat(np.arange(20), 3)
    drawn = cluster_weights(clusters, 30, 2)
    for value, weights in zip(resampled_pearson(x, y, drawn), drawn, strict=True):
        rows = np.repeat(np.arange(60), weights.astype(int))
        assert value == pytest.approx(np.corrcoef(x[rows], y[rows])[0, 1], abs=1e-7)


def test_what_does_not_vary_has_none() -> None:
    assert np.isnan(resampled_pearson([1.0, 2.0, 3.0], [4.0, 4.0, 4.0], np.ones((5, 3), np.int32))).all()


def test_an_unknown_value_is_refused() -> None:
    refuses("known values", resampled_pearson, [1.0, np.nan], [1.0, 2.0], np.ones((1, 2), np.int32))
