"""QWK: that of scikit-learn on whole scores, its definition on others, and undefined where it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from sklearn.metrics import cohen_kappa_score

from moot.metrics.weighted_kappa import cohen_kappa, quadratic_weighted_kappa, resampled_weighted_kappa

SCORES = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=2, max_size=60)


@given(SCORES)
def test_whole_scores_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs).T
    found = quadratic_weighted_kappa(a, b, 1, 6)
    if len(set(a) | set(b)) == 1:
        assert math.isnan(found)
    else:
        expected = cohen_kappa_score(a, b, weights="quadratic", labels=range(1, 7))
        assert found == pytest.approx(expected, abs=1e-9)


@given(SCORES)
def test_the_nominal_one_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs).T
    if len(set(a) | set(b)) == 1:
        assert math.isnan(cohen_kappa(a, b))
    else:
        assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b), abs=1e-9)
    assert math.isnan(cohen_kappa([], []))
    assert cohen_kappa([*a, math.nan], [*b, 1]) == pytest.approx(cohen_kappa(a, b), nan_ok=True)


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3)), min_size=3, max_size=40))
def test_the_continuous_form_is_the_mean_over_all_pairs(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    apart = ((a[:, None] - b[None, :]) ** 2).mean()
    found = quadratic_weighted_kappa(a, b, 0, 3)
    if apart > 1e-6:
        assert found == pytest.approx(1 - ((a - b) ** 2).mean() / apart, abs=1e-6)
        assert found == pytest.approx(quadratic_weighted_kappa(b, a, 0, 3), abs=1e-6)


def test_what_is_undefined_is_nan() -> None:
    assert math.isnan(quadratic_weighted_kappa([], [], 0, 3))
    assert math.isnan(quadratic_weighted_kappa([math.nan], [1], 0, 3))
    assert quadratic_weighted_kappa([2, 2, math.nan], [1, 1, 3], 0, 3) == 0.0


def test_the_scale_far_from_zero_loses_no_digits() -> None:
    a, b = np.array([0, 1, 2, 3, 1]), np.array([0, 2, 2, 3, 0])
    near = quadratic_weighted_kappa(a, b, 0, 3)
    assert quadratic_weighted_kappa(a + 1e7, b + 1e7, 1e7, 1e7 + 3) == pytest.approx(near, abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [([1, 2], [1]), ([[1]], [[1]]), ([0, 4], [0, 3]), ([-1, 1], [1, 1])])
def test_what_does_not_fit_is_refused(a: list[int], b: list[int]) -> None:
    refuses("expected", quadratic_weighted_kappa, a, b, 0, 3)


def test_weights_equal_repeated_pairs() -> None:
    random = np.random.default_rng(5)
    a, b = random.integers(0, 4, (2, 30)).astype(float)
    b[3] = math.nan
    times = random.multinomial(30, np.full(30, 1 / 30), size=20)
    found = resampled_weighted_kappa(a, b, times, 0, 3)
    for row, value in zip(times, found, strict=True):
        drawn = np.repeat(np.arange(30), row)
        assert value == pytest.approx(quadratic_weighted_kappa(a[drawn], b[drawn], 0, 3))
    refuses(r"\(resamples, 30\)", resampled_weighted_kappa, a, b, times[:, 1:], 0, 3)
