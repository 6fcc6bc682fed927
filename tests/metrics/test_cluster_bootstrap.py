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
    bootstrap_error,
    cluster_weights,
    resampled_auroc,
    resampled_spearman,
)
from moot.metrics.jackknife import bounded_interval
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
        error = bootstrap_error(bootstrap_spearman(x, y, codes, 100), 60)
        low, high = bounded_interval(spearman_matrix(x, y), error, 60)
        covered += bool((low <= normal_rho <= high).item())
        flags = y > 0
        error = bootstrap_error(bootstrap_auroc(x, flags, codes, 100), 60)
        low, high = bounded_interval(auroc_matrix(x, flags), error, 60, lowest=0.0)
        covered_area += bool((low <= _area(rho) <= high).item())
    assert 0.88 < covered / 120 < 1.0
    assert 0.88 < covered_area / 120 < 1.0


def _area(rho: float) -> float:
    """AUROC of x about y > 0 for normal x and y: `P(x1 > x2)` of one with y > 0 and one with y < 0."""
    return float(0.5 + 2 * np.arcsin(rho / np.sqrt(2)) / np.pi)


def test_there_is_no_error_where_most_resamples_have_no_value_or_none_varies() -> None:
    assert np.isnan(bootstrap_error([1.0, 1.0, 1.0], 20))
    assert np.isnan(bootstrap_error([0.1, np.nan, np.nan, 0.2, np.nan], 20))
    assert bootstrap_error([[0.1, 0.3], [0.3, np.nan], [0.2, 0.1]], 11) == pytest.approx(
        [0.1 * np.sqrt(1.1), np.sqrt(0.02 * 1.1)]
    )


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
