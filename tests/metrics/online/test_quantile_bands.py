"""Quantile bands: counts add up, and a quantile is off by no more than it says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from moot.metrics.online.quantile_bands import BINS, QuantileBands

Floats = npt.NDArray[np.float64]

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


@given(arrays(np.float64, (9, 2), elements=st.floats(-90.0, 0.0)))
def test_a_quantile_is_off_by_half_a_bin_at_most(curves: Floats) -> None:
    found = QuantileBands.of(curves).quantiles(SHARES)
    exact = np.quantile(curves, SHARES, axis=0, method="inverted_cdf")
    assert (np.abs(found - exact) <= np.maximum(np.abs(exact) * BINS.width / 2, 2e-4) + 1e-12).all()


def test_what_is_unknown_counts_nowhere() -> None:
    bands = QuantileBands.of(np.array([[-1.0, np.nan], [-2.0, np.nan]]))
    assert bands.n().tolist() == [2, 0]
    assert np.isnan(bands.quantiles((0.5,))).tolist() == [[False, True]]


@given(st.floats(-1e12, 1.0), st.floats(-1e12, 1.0))
def test_bins_keep_the_order(one: float, other: float) -> None:
    low, high = BINS.index(np.array(sorted([one, other])))
    assert 0 <= low <= high < BINS.count
