"""Rank correlations against scipy's, pair by pair, with ties and holes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from association_data import Floats, holed, known
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ConstantInputWarning, kendalltau, pearsonr, rankdata, spearmanr

from moot.metrics.rank_correlation import (
    concordance,
    kendall_matrix,
    pairwise_n,
    partial_spearman,
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
    x, y, _ = holed(seed)
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


@given(columns)
def test_the_counts_are_those_of_all_pairs(rows: list[tuple[float, float]]) -> None:
    a, b = known(*np.array(rows, dtype=np.float64).T)
    first, second = np.triu_indices(len(a), 1)
    signs_a, signs_b = np.sign(a[first] - a[second]), np.sign(b[first] - b[second])
    found = concordance(a, b)
    expected = (signs_a * signs_b).sum(), len(first), (signs_a == 0).sum(), (signs_b == 0).sum()
    assert (found.balance.item(), found.pairs.item(), found.tied_x.item(), found.tied_y.item()) == expected


def test_infinities_have_a_rank() -> None:
    x, y = [-np.inf, 0.0, 1.0, np.inf], [1.0, 2.0, 3.0, 3.0]
    assert spearman_matrix(x, y).item() == pytest.approx(spearmanr([0, 1, 2, 3], y).statistic)


def test_what_is_undefined_is_nan() -> None:
    for measure in (spearman_matrix, kendall_matrix):
        assert np.isnan(measure([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
        assert np.isnan(measure([1.0, 2.0], [1.0, 2.0]))
        assert np.isnan(measure([1.0, 2.0, np.nan], [1.0, 2.0, 3.0]))
        assert np.isnan(measure([np.nan, np.nan], [1.0, 2.0]))
        assert measure(np.empty((5, 0)), np.empty((5, 2))).shape == (0, 2)
    assert np.isnan(within_groups_spearman([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 1.0, 2.0], [0, 1, 2, 3]))


def test_partial_is_the_correlation_of_what_the_covariate_leaves() -> None:
    x, y, _ = holed(5)
    z = np.where(np.arange(len(x)) % 11, np.round(np.abs(x[:, 3]), 1), np.nan)
    found = partial_spearman(x, y, z)
    for feature, target in np.ndindex(found.shape):
        rows = ~np.isnan(x[:, feature] + y[:, target] + z)
        ranks = [rankdata(column[rows]) for column in (x[:, feature], y[:, target], z)]
        design = np.stack([np.ones(rows.sum()), ranks[2]], axis=1)
        left = [rank - design @ np.linalg.lstsq(design, rank, rcond=None)[0] for rank in ranks[:2]]
        assert found[feature, target] == pytest.approx(pearsonr(*left).statistic, abs=1e-10)


def test_partial_knows_a_covariate_that_explains_all() -> None:
    random = np.random.default_rng(6)
    length = random.normal(size=500)
    x, y = length + 0.3 * random.normal(size=500), length + 0.3 * random.normal(size=500)
    assert spearman_matrix(x, y).item() > 0.8
    assert abs(partial_spearman(x, y, length).item()) < 0.15
    assert partial_spearman(x, y, np.exp(length)) == pytest.approx(partial_spearman(x, y, length))
    assert np.isnan(partial_spearman(length, y, length))


def test_one_group_is_plain_spearman() -> None:
    x, y, _ = holed(7)
    assert within_groups_spearman(x, y, np.zeros(len(x))) == pytest.approx(spearman_matrix(x, y), abs=1e-12)


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


def test_a_group_in_which_nothing_varies_says_nothing() -> None:
    x, y, groups = [1.0, 2.0, 3.0, 4.0, 9.0, 8.0], [1.0, 2.0, 3.0, 7.0, 7.0, 7.0], [0, 0, 0, 1, 1, 1]
    assert within_groups_spearman(x, y, groups).item() == pytest.approx(1.0)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="2 rows of x but 3 of y"):
        spearman_matrix([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="rows and columns expected"):
        spearman_matrix(np.zeros((2, 2, 2)), [1.0, 2.0])
    with pytest.raises(ValueError, match="one group for each of 2 rows"):
        within_groups_spearman([1.0, 2.0], [1.0, 2.0], [0])
    with pytest.raises(ValueError, match="one covariate"):
        partial_spearman([1.0, 2.0], [1.0, 2.0], np.zeros((2, 2)))


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=30), st.sampled_from([np.exp, np.arctan]))
def test_ranks_do_not_feel_a_rising_transformation(values: list[float], rising: np.ufunc) -> None:
    x: Floats = np.round(np.array(values), 1)
    y = np.arange(len(x)) % 3
    assert spearman_matrix(rising(x), y) == pytest.approx(spearman_matrix(x, y), nan_ok=True)
    assert kendall_matrix(-x, y) == pytest.approx(-kendall_matrix(x, y), nan_ok=True)
