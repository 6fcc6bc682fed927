"""Somers' D and the concordance index against scipy and counting; the ceiling that ties set to rho."""

from __future__ import annotations

import numpy as np
import pytest
from association_data import holed, known
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import somersd, spearmanr

from moot.metrics.class_separation import auroc_matrix
from moot.metrics.rank_correlation import somers_d, spearman_ceiling


def test_somers_d_is_scipys_with_the_score_as_the_independent_variable() -> None:
    x, y, _ = holed(1)
    found = somers_d(x, y)
    for feature, target in np.ndindex(found.shape):
        a, b = known(x[:, feature], y[:, target])
        assert found[feature, target] == pytest.approx(somersd(b, a).statistic, abs=1e-13)


def test_of_a_flag_it_is_twice_the_auroc_less_one() -> None:
    x, scores, _ = holed(2)
    flags = np.where(np.isnan(scores), np.nan, scores >= 3.0)
    assert somers_d(x, flags) == pytest.approx(2.0 * auroc_matrix(x, flags) - 1.0, abs=1e-13)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=20))
def test_it_counts_pairs_with_different_scores(rows: list[tuple[int, int]]) -> None:
    x, y = np.array(rows, dtype=np.float64).T
    first, second = np.triu_indices(len(x), 1)
    differing = y[first] != y[second]
    product = ((x[first] - x[second]) * (y[first] - y[second]))[differing]
    expected = np.sign(product).mean() if differing.any() else np.nan
    assert somers_d(x, y).item() == pytest.approx(expected, nan_ok=True)


def test_the_ceiling_is_the_rho_of_a_feature_in_the_scores_order() -> None:
    y = np.random.default_rng(3).integers(1, 4, 200).astype(float)
    feature = y + np.linspace(0.0, 0.5, 200)
    assert len(np.unique(feature)) == 200
    assert spearman_ceiling(y) == pytest.approx(spearmanr(feature, y).statistic)


def test_the_ceiling_of_the_papers_share_at_one_level() -> None:
    assert spearman_ceiling([3.0] * 930 + [2.0] * 70) == pytest.approx(0.44, abs=0.005)
    y = np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [np.nan, 1.0]])
    ceilings = spearman_ceiling(y)
    assert ceilings[0] == 1.0
    assert np.isnan(ceilings[1])


@given(st.permutations(range(12)), st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_no_feature_without_ties_passes_the_ceiling(feature: list[int], scores: list[int]) -> None:
    y = np.array(scores, dtype=float)
    if len(np.unique(y)) > 1:
        assert abs(spearmanr(feature, y).statistic) <= spearman_ceiling(y) + 1e-12


def test_somers_d_is_not_held_down_by_ties() -> None:
    y = np.array([3.0] * 93 + [2.0] * 7)
    x = y + np.linspace(0.0, 0.5, 100)
    assert somers_d(x, y).item() == 1.0
    assert np.isnan(somers_d(x, np.ones(100)))
