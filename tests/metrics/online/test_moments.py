"""Moments: numpy's figures, whatever the parts and their order."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from moot.metrics.online.moments import Moments

VALUES = st.one_of(st.just(float("nan")), st.floats(-1e3, 1e3))
ROWS = st.integers(0, 6).flatmap(lambda rows: arrays(np.float64, (rows, 3), elements=VALUES))


def assert_close(one: Moments, other: Moments) -> None:
    """Equal but for rounding."""
    np.testing.assert_array_equal(one.n, other.n)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.m2, other.m2, rtol=1e-9, atol=1e-6)


@given(ROWS, ROWS, ROWS)
def test_any_order_of_merging_gives_the_moments_of_all(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], c: npt.NDArray[np.float64]
) -> None:
    one, two, three = Moments.of(a), Moments.of(b), Moments.of(c)
    assert_close(one.merge(two).merge(three), one.merge(two.merge(three)))
    assert_close(one.merge(two), two.merge(one))
    assert_close(one.merge(Moments.empty(3)), one)
    assert_close(Moments.empty(3).merge(one), one)
    whole = np.concatenate((a, b, c))
    merged = one.merge(two).merge(three)
    assert_close(merged, Moments.of(whole))
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
