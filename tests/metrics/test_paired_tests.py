"""Paired tests: scipy's values, planted effects found, null effects not, zeros and unknown scores counted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import permutation_test, wilcoxon

from moot.metrics.significance import (
    PairedTest,
    benjamini_hochberg,
    cliffs_delta,
    cliffs_delta_per_case,
    paired_permutation,
    wilcoxon_signed_rank,
)

RANDOM = np.random.default_rng(41)


def test_wilcoxon_is_scipys() -> None:
    for n in (6, 30, 300):
        a, b = RANDOM.normal(size=(2, n))
        found, expected = wilcoxon_signed_rank(a, b), wilcoxon(a, b, zero_method="wilcox")
        assert (found.statistic, found.p_value) == (expected.statistic, expected.pvalue)


def test_permutation_is_scipys() -> None:
    a, b = RANDOM.normal(size=(2, 12))
    exact = permutation_test((a - b, b - a), lambda x, _: x.mean(), permutation_type="samples", n_resamples=10_000)
    assert paired_permutation(a, b).p_value == pytest.approx(exact.pvalue)
    drawn = [paired_permutation(a, b, permutations=4000, seed=seed).p_value for seed in range(2)]
    assert drawn == pytest.approx([exact.pvalue] * 2, abs=0.03)
    assert drawn[0] != drawn[1]


def test_all_exchanges_by_hand() -> None:
    differences = [3.0, -1.0, 2.0, 2.0]
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=4)
    ]
    found = paired_permutation(differences, [0.0] * 4)
    assert found.p_value == sum(value >= 6.0 for value in sums) / 16
    assert found.statistic == 1.5


@pytest.mark.parametrize("test", [wilcoxon_signed_rank, paired_permutation])
def test_a_planted_effect_is_found_and_none_is_not(test: object) -> None:
    assert callable(test)
    shared = RANDOM.normal(size=(100, 80))
    a, b = shared + 0.3 * RANDOM.normal(size=shared.shape), shared + 0.3 * RANDOM.normal(size=shared.shape)
    planted = [test(x + 0.3, y).p_value < 0.05 for x, y in zip(a[:40], b[:40], strict=True)]
    null = [test(x, y).p_value < 0.05 for x, y in zip(a, b, strict=True)]
    assert sum(planted) == 40
    assert 1 <= sum(null) <= 13  # 5 expected, standard deviation 2.2


@pytest.mark.parametrize("test", [wilcoxon_signed_rank, paired_permutation])
def test_zeros_and_unknown_scores_are_counted(test: object) -> None:
    assert callable(test)
    a = [1.0, 2.0, 3.0, 4.0, None, 5.0, math.nan]
    b = [1.0, 2.0, 1.0, 1.0, 7.0, None, 1.0]
    found = test(a, b)
    assert (found.n, found.n_zero, found.left_out) == (4, 2, 3)
    assert test([1, 2], [1, 2]) == PairedTest(0.0, 1.0, 2, 2, 0)
    nothing = test([None], [1.0])
    assert (nothing.n, nothing.left_out) == (0, 1)
    assert math.isnan(nothing.p_value)
    with pytest.raises(ValueError, match="1 scores of A but 2 of B"):
        test([1], [1, 2])


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("scale", [1.0, -1e-9, 1e9])
def test_rounding_is_no_difference(scale: float, swapped: bool) -> None:
    pair = [np.array([0.1 + 0.2] * 20) * scale, np.array([0.3] * 20) * scale]
    a, b = pair[::-1] if swapped else pair
    assert (a != b).all()
    for test in (wilcoxon_signed_rank, paired_permutation):
        assert test(a, b) == PairedTest(0.0, 1.0, 20, 20, 0)
    assert cliffs_delta_per_case(a, b) == 0.0


def test_what_is_above_rounding_is_a_difference_however_small() -> None:
    b = np.linspace(0.1, 1.0, 20)
    a = b * (1.0 + 1e-9)
    assert wilcoxon_signed_rank(a, b).n_zero == paired_permutation(a, b).n_zero == 0
    assert wilcoxon_signed_rank(a, b).p_value == pytest.approx(2.0**-19)
    assert cliffs_delta_per_case(a, b) == 1.0
    assert cliffs_delta_per_case([1e-300, 0.0], [0.0, 0.0]) == 0.5
    assert cliffs_delta_per_case([math.inf, 1.0], [5.0, 1.0]) == 0.5


def test_more_draws_than_fit_at_once() -> None:
    a = RANDOM.normal(0.02, 1.0, 5000)
    found = paired_permutation(a, np.zeros(5000), permutations=2000)
    normal = math.erfc(abs(a.mean()) / a.std() * math.sqrt(5000 / 2))
    assert found.p_value == pytest.approx(normal, abs=0.04)
    assert paired_permutation(np.ones(100), np.zeros(100), permutations=999).p_value == 1 / 1000
    with pytest.raises(ValueError, match="at least one permutation"):
        paired_permutation([1], [0], permutations=0)


def test_cliffs_delta_counts_pairs() -> None:
    a, b = RANDOM.integers(0, 5, 30), RANDOM.integers(0, 6, 40)
    counted = np.sign(np.subtract.outer(a, b)).mean()
    assert cliffs_delta(a, b) == pytest.approx(counted)
    assert cliffs_delta(b, a) == pytest.approx(-counted)
    assert cliffs_delta([1, None], [0, 0]) == 1.0
    assert math.isnan(cliffs_delta([], [1]))
    with pytest.raises(ValueError, match="a vector of scores"):
        cliffs_delta([[1.0]], [1.0])


def test_of_right_and_wrong_both_are_the_difference_in_accuracy() -> None:
    a, b = RANDOM.random(200) < 0.7, RANDOM.random(200) < 0.5
    assert cliffs_delta(a, b) == pytest.approx(a.mean() - b.mean())
    assert cliffs_delta_per_case(a, b) == pytest.approx(a.mean() - b.mean())
    assert cliffs_delta_per_case([1, None, 0], [0, 1, 1]) == 0.0
    assert math.isnan(cliffs_delta_per_case([None], [1]))


def test_within_cases_a_small_steady_difference_is_seen() -> None:
    hard = RANDOM.normal(size=100) * 10
    assert cliffs_delta_per_case(hard + 0.1, hard) == 1.0
    assert abs(cliffs_delta(hard + 0.1, hard)) < 0.05


def test_benjamini_hochberg_is_the_step_up_procedure() -> None:
    p = RANDOM.random(40) ** 3
    adjusted = benjamini_hochberg(p)
    for q in (0.01, 0.05, 0.2, 0.5):
        ordered = np.sort(p)
        below = np.flatnonzero(ordered <= q * np.arange(1, 41) / 40)
        found = p <= ordered[below[-1]] if below.size else np.zeros(40, dtype=bool)
        assert ((adjusted <= q) == found).all()
    assert (adjusted >= p).all()


def test_tests_without_a_value_do_not_count() -> None:
    assert benjamini_hochberg([0.01, None, 0.04, math.nan]) == pytest.approx(
        [0.02, math.nan, 0.04, math.nan], nan_ok=True
    )
    assert np.isnan(benjamini_hochberg([None])).all()
    assert benjamini_hochberg([]).tolist() == []
    given = np.array([0.2, 0.01])
    benjamini_hochberg(given)
    assert given.tolist() == [0.2, 0.01]
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        benjamini_hochberg([1.5])
    with pytest.raises(ValueError, match="a vector"):
        benjamini_hochberg([[0.5]])
