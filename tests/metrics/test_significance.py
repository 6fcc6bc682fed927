"""Intervals and paired tests: scipy's values, planted effects found, null effects not, zeros and unknowns counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from scipy.stats import binomtest, wilcoxon

from moot.metrics.significance import (
    PairedTest,
    benjamini_hochberg,
    cliffs_delta_per_case,
    wilcoxon_signed_rank,
    wilson_interval,
)

RANDOM = np.random.default_rng(41)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_s_interval_is_scipy_s(counts: tuple[int, int], level: float) -> None:
    successes, n = counts
    found = wilson_interval(successes, n, level)
    expected = binomtest(successes, n).proportion_ci(level, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0.0 <= found.low <= successes / n <= found.high <= 1.0


def test_wilson_s_ends_are_exact_and_nothing_observed_is_unknown() -> None:
    assert wilson_interval(0, 7).low == 0.0
    assert wilson_interval(7, 7).high == 1.0
    assert math.isnan(wilson_interval(0, 0).low)
    wrong = [(3, 2, 0.95), (-1, 2, 0.95), (0, -1, 0.95), (1, 2, 0.0), (1, 2, 95.0), (1, 2, math.nan)]
    for successes, n, level in wrong:
        refuses(r"successes|level", wilson_interval, successes, n, level)


def test_wilcoxon_is_scipys() -> None:
    for n in (6, 30, 300):
        a, b = RANDOM.normal(size=(2, n))
        found, expected = wilcoxon_signed_rank(a, b), wilcoxon(a, b, zero_method="wilcox")
        assert (found.statistic, found.p_value) == (expected.statistic, expected.pvalue)


def test_a_planted_effect_is_found_and_none_is_not() -> None:
    shared = RANDOM.normal(size=(100, 80))
    a, b = shared + 0.3 * RANDOM.normal(size=shared.shape), shared + 0.3 * RANDOM.normal(size=shared.shape)
    planted = [wilcoxon_signed_rank(x + 0.3, y).p_value < 0.05 for x, y in zip(a[:40], b[:40], strict=True)]
    null = [wilcoxon_signed_rank(x, y).p_value < 0.05 for x, y in zip(a, b, strict=True)]
    assert sum(planted) == 40
    assert 1 <= sum(null) <= 13  # 5 expected, standard deviation 2.2


def test_zeros_and_unknown_scores_are_counted() -> None:
    found = wilcoxon_signed_rank([1.0, 2.0, 3.0, 4.0, None, 5.0, math.nan], [1.0, 2.0, 1.0, 1.0, 7.0, None, 1.0])
    assert (found.n, found.n_zero, found.left_out) == (4, 2, 3)
    assert wilcoxon_signed_rank([1, 2], [1, 2]) == PairedTest(0.0, 1.0, 2, 2, 0)
    nothing = wilcoxon_signed_rank([None], [1.0])
    assert (nothing.n, nothing.left_out, math.isnan(nothing.p_value)) == (0, 1, True)
    refuses("1 scores of A but 2 of B", wilcoxon_signed_rank, [1], [1, 2])


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("scale", [1.0, -1e-9, 1e9])
def test_rounding_is_no_difference(scale: float, swapped: bool) -> None:
    pair = [np.array([0.1 + 0.2] * 20) * scale, np.array([0.3] * 20) * scale]
    a, b = pair[::-1] if swapped else pair
    assert (a != b).all()
    assert wilcoxon_signed_rank(a, b) == PairedTest(0.0, 1.0, 20, 20, 0)
    assert cliffs_delta_per_case(a, b) == 0.0


def test_what_is_above_rounding_is_a_difference_however_small() -> None:
    b = np.linspace(0.1, 1.0, 20)
    assert wilcoxon_signed_rank(b * (1.0 + 1e-9), b).p_value == pytest.approx(2.0**-19)
    assert cliffs_delta_per_case(b * (1.0 + 1e-9), b) == 1.0
    assert cliffs_delta_per_case([1e-300, 0.0], [0.0, 0.0]) == 0.5
    assert cliffs_delta_per_case([math.inf, 1.0], [5.0, 1.0]) == 0.5


def test_cliff_s_delta_of_right_and_wrong_is_the_difference_in_accuracy() -> None:
    a, b = RANDOM.random(200) < 0.7, RANDOM.random(200) < 0.5
    assert cliffs_delta_per_case(a, b) == pytest.approx(a.mean() - b.mean())
    assert cliffs_delta_per_case([1, None, 0], [0, 1, 1]) == 0.0
    assert math.isnan(cliffs_delta_per_case([None], [1]))


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
    found = benjamini_hochberg([0.01, None, 0.04, math.nan])
    assert found == pytest.approx([0.02, math.nan, 0.04, math.nan], nan_ok=True)
    assert benjamini_hochberg([]).tolist() == []
    for wrong in ([1.5], [[0.5]]):
        refuses(r"outside \[0, 1\]|a vector", benjamini_hochberg, wrong)
