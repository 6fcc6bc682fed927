"""Statistics of a window against numpy and scipy, and what is unknown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

from moot.metrics.confidence_features import STATISTICS, window_statistic

logprobs = st.lists(st.floats(-30.0, 0.0), min_size=2, max_size=60)


@given(logprobs)
def test_each_statistic_is_numpys_or_scipys(values: list[float]) -> None:
    expected = {
        "mean": np.mean(values),
        "median": np.median(values),
        "min": min(values),
        "max": max(values),
        "range": max(values) - min(values),
        "variance": np.var(values),
        "std": np.std(values),
        "slope": linregress(range(len(values)), values).slope,
    }
    assert set(expected) == set(STATISTICS)
    for name in STATISTICS:
        assert float(window_statistic(values, name)) == pytest.approx(expected[name], abs=1e-9), name


@given(st.lists(logprobs.map(lambda values: values[:2]), min_size=1, max_size=5))
def test_many_windows_at_once_are_each_alone(windows: list[list[float]]) -> None:
    for name in STATISTICS:
        together = window_statistic(windows, name)
        assert together.tolist() == [float(window_statistic(window, name)) for window in windows]


@pytest.mark.parametrize("unknown", [float("nan"), float("-inf")])
def test_a_window_with_an_unknown_value_is_unknown_and_leaves_the_others_alone(unknown: float) -> None:
    for name in STATISTICS:
        found = window_statistic([[-1.0, unknown, -2.0], [-1.0, -3.0, -2.0]], name)
        assert np.isnan(found).tolist() == [True, False], name


def test_one_token_has_no_slope_and_no_token_no_statistic() -> None:
    assert np.isnan(window_statistic([-1.0], "slope"))
    assert float(window_statistic([-1.0], "std")) == 0.0
    with pytest.raises(ValueError, match="at least one token"):
        window_statistic([], "mean")
