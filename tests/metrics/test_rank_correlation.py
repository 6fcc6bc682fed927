"""Rank correlations against scipy's, pair by pair, with ties and holes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from association_data import known, with_missing_values
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from scipy.stats import ConstantInputWarning, kendalltau, pearsonr, rankdata, somersd, spearmanr

from moot.metrics.class_separation import auroc_matrix
from moot.metrics.rank_correlation import (
    kendall_matrix,
    pairwise_n,
    partial_spearman,
    pearson_matrix,
    somers_d,
    spearman_ceiling,
    spearman_matrix,
    within_groups_spearman,
)

columns = st.lists(
    st.tuples(st.one_of(st.integers(-3, 3), st.just(np.nan)), st.one_of(st.integers(0, 2), st.just(np.nan))),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("seed", range(3))
def test_each_pair_is_scipys(seed: int) -> None:
    x, y, _ = with_missing_values(seed)
    rho, tau, n = spearman_matrix(x, y), kendall_matrix(x, y), pairwise_n(x, y)
    for feature, target in np.ndindex(rho.shape):
        a, b = known(x[:, feature], y[:, target])
        assert rho[feature, target] == pytest.approx(spearmanr(a, b).statistic, abs=1e-13)
        assert tau[feature, target] == pytest.approx(kendalltau(a, b).statistic, abs=1e-13)
        assert n[feature, target] == len(a)


@given(columns)
def test_a_pair_of_any_columns_is_scipys(rows: list[tuple[float, float]]) -> None:
    x, y = np.array(rows, dtype=np.float64).T
    a, b = known(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)
        rho = spearmanr(a, b).statistic if len(a) >= 3 else np.nan
        tau = kendalltau(a, b).statistic if len(a) >= 3 else np.nan
    assert spearman_matrix(x, y).item() == pytest.approx(rho, abs=1e-12, nan_ok=True)
    assert kendall_matrix(x, y).item() == pytest.approx(tau, abs=1e-12, nan_ok=True)


def test_tau_with_a_target_of_many_levels_is_scipys() -> None:
    random = np.random.default_rng(4)
    x = np.round(random.normal(size=(300, 2)), 1)
    y = np.round(x[:, :1] + random.normal(size=(300, 1)), 2)
    assert len(np.unique(y)) > 64
    expected = [[kendalltau(column, y[:, 0]).statistic] for column in x.T]
    assert kendall_matrix(x, y) == pytest.approx(np.array(expected), abs=1e-13)


def test_what_is_undefined_is_nan() -> None:
    for measure in (spearman_matrix, kendall_matrix):
        assert np.isnan(measure([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
        assert np.isnan(measure([1.0, 2.0], [1.0, 2.0]))
        assert np.isnan(measure([1.0, 2.0, np.nan], [1.0, 2.0, 3.0]))
        assert np.isnan(measure([np.nan, np.nan], [1.0, 2.0]))
        assert measure(np.empty((5, 0)), np.empty((5, 2))).shape == (0, 2)
    assert np.isnan(within_groups_spearman([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 1.0, 2.0], [0, 1, 2, 3]))


def test_partial_is_the_correlation_of_what_the_covariate_leaves() -> None:
    x, y, _ = with_missing_values(5)
    z = np.where(np.arange(len(x)) % 11, np.round(np.abs(x[:, 3]), 1), np.nan)
    found = partial_spearman(x, y, z)
    for feature, target in np.ndindex(found.shape):
        rows = ~np.isnan(x[:, feature] + y[:, target] + z)
        ranks = [rankdata(column[rows]) for column in (x[:, feature], y[:, target], z)]
        design = np.stack([np.ones(rows.sum()), ranks[2]], axis=1)
        left = [rank - design @ np.linalg.lstsq(design, rank, rcond=None)[0] for rank in ranks[:2]]
        assert found[feature, target] == pytest.approx(pearsonr(*left).statistic, abs=1e-10)


def test_groups_of_one_size_without_ties_give_the_mean_rho() -> None:
    random = np.random.default_rng(8)
    x, y, groups = random.normal(size=60), random.normal(size=60), np.arange(60) % 4
    each = [spearmanr(x[groups == group], y[groups == group]).statistic for group in range(4)]
    assert within_groups_spearman(x, y, groups).item() == pytest.approx(np.mean(each))


def test_differences_between_groups_do_not_count() -> None:
    random = np.random.default_rng(9)
    groups = np.repeat(["a", "b"], 400)
    shift = np.where(groups == "a", 0.0, 10.0)
    x, y = random.normal(size=800) + shift, random.normal(size=800) + shift
    assert spearman_matrix(x, y).item() > 0.7
    assert abs(within_groups_spearman(x, y, groups).item()) < 0.12
    assert within_groups_spearman(x + 0.0, y - 2 * shift, groups) == pytest.approx(within_groups_spearman(x, y, groups))


def test_bad_input_is_refused() -> None:
    refuses("2 rows of x but 3 of y", spearman_matrix, [1.0, 2.0], [1.0, 2.0, 3.0])
    refuses("rows and columns expected", spearman_matrix, np.zeros((2, 2, 2)), [1.0, 2.0])
    refuses("one group for each of 2 rows", within_groups_spearman, [1.0, 2.0], [1.0, 2.0], [0])
    refuses("one covariate", partial_spearman, [1.0, 2.0], [1.0, 2.0], np.zeros((2, 2)))


@pytest.mark.parametrize("seed", range(3))
def test_pearson_s_is_scipys(seed: int) -> None:
    x, y, _ = with_missing_values(seed)
    found = pearson_matrix(x, y)
    for feature, target in np.ndindex(found.shape):
        expected = pearsonr(*known(x[:, feature], y[:, target])).statistic
        assert found[feature, target] == pytest.approx(expected, abs=1e-13)


def test_a_constant_far_from_zero_does_not_vary() -> None:
    x = np.full(7, 0.1) * 3e7
    assert np.isnan(pearson_matrix(x, np.arange(7.0)))
    assert np.isnan(pearson_matrix([1.0, 2.0], [1.0, 2.0]))
    assert np.isnan(pearson_matrix([1.0, np.inf, 2.0], [1.0, 2.0, 3.0]))
    assert np.isnan(pearson_matrix([np.nan] * 4, [1.0, 2.0, 3.0, 4.0]))


def test_somers_d_is_scipys_with_the_score_as_the_independent_variable() -> None:
    x, y, _ = with_missing_values(1)
    found = somers_d(x, y)
    for feature, target in np.ndindex(found.shape):
        a, b = known(x[:, feature], y[:, target])
        assert found[feature, target] == pytest.approx(somersd(b, a).statistic, abs=1e-13)


def test_of_a_flag_it_is_twice_the_auroc_less_one() -> None:
    x, scores, _ = with_missing_values(2)
    flags = np.where(np.isnan(scores), np.nan, scores >= 3.0)
    assert somers_d(x, flags) == pytest.approx(2.0 * auroc_matrix(x, flags) - 1.0, abs=1e-13)


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
