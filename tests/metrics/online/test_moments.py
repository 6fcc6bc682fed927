"""Moments and co-moments: numpy's and scipy's figures of the rows that are known, in whatever parts and order."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import pearsonr

from moot.metrics.online.moments import CoMoments, Moments

Floats = npt.NDArray[np.float64]


@pytest.mark.parametrize("parts", [1, 2, 40])
def test_the_correlation_is_scipys_over_the_complete_pairs(parts: int) -> None:
    draw = np.random.default_rng(3)
    x = draw.normal(size=(120, 4)) + 1e4
    y = np.stack([x[:, 0] + draw.normal(size=120), draw.integers(0, 2, 120).astype(float)], axis=1)
    x[draw.random(x.shape) < 0.2] = np.nan
    y[draw.random(y.shape) < 0.2] = np.nan
    merged = CoMoments.empty(4, 2)
    for rows in np.array_split(np.arange(120), parts):
        merged = merged.merge(CoMoments.of(x[rows], y[rows]))
    found = merged.correlation()
    for feature in range(4):
        for target in range(2):
            both = ~np.isnan(x[:, feature]) & ~np.isnan(y[:, target])
            assert merged.n[feature, target] == both.sum()
            expected = pearsonr(x[both, feature], y[both, target]).statistic
            assert found[feature, target] == pytest.approx(expected, abs=1e-9)


@given(st.floats(-1e6, 1e6), st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_what_does_not_vary_correlates_with_nothing(value: float, sizes: list[int]) -> None:
    draw = np.random.default_rng(0)
    merged = CoMoments.empty(1, 1)
    for size in sizes:
        merged = merged.merge(CoMoments.of(np.full((size, 1), value), draw.normal(size=(size, 1))))
    assert np.isnan(merged.correlation()).all()


def test_two_replies_say_nothing() -> None:
    two = CoMoments.of(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]))
    assert np.isnan(two.correlation()).all()


NUMBERS = st.one_of(st.just(float("nan")), st.floats(-1e3, 1e3))
COLUMNS = st.integers(0, 6).flatmap(lambda rows: arrays(np.float64, (rows, 3), elements=NUMBERS))


@given(COLUMNS, COLUMNS)
def test_moments_are_numpys(a: Floats, b: Floats) -> None:
    whole = np.concatenate((a, b))
    merged = Moments.of(a).merge(Moments.of(b))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's on columns without a value
        np.testing.assert_allclose(merged.known_mean(), np.nanmean(whole, axis=0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(merged.variance(), np.nanvar(whole, axis=0), rtol=1e-9, atol=1e-6)


def test_a_small_spread_far_from_zero_is_not_lost() -> None:
    values = 1e9 + np.random.default_rng(0).normal(size=(1000, 1))
    merged = Moments.empty(1)
    for part in np.array_split(values, 37):
        merged = merged.merge(Moments.of(part))
    np.testing.assert_allclose(merged.variance(), values.var(axis=0), rtol=1e-6)
