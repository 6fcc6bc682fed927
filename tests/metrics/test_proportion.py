"""Wilson's interval against scipy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from moot.metrics.significance import wilson_interval

counts_of_n = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts_of_n, st.floats(0.5, 0.999))
def test_equals_scipy(counts: tuple[int, int], level: float) -> None:
    successes, n = counts
    found = wilson_interval(successes, n, level)
    expected = binomtest(successes, n).proportion_ci(level, method="wilson")
    assert found.low == pytest.approx(expected.low, abs=1e-9)
    assert found.high == pytest.approx(expected.high, abs=1e-9)
    assert 0.0 <= found.low <= successes / n <= found.high <= 1.0


def test_ends_are_exact() -> None:
    none, all_ = wilson_interval(0, 7), wilson_interval(7, 7)
    assert none.low == 0.0
    assert all_.high == 1.0
    assert none.high == pytest.approx(1 - all_.low)
    assert none.high > 0.3


def test_nothing_observed_is_unknown() -> None:
    empty = wilson_interval(0, 0)
    assert math.isnan(empty.low)
    assert math.isnan(empty.high)


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2), (0, -1)])
def test_refuses_impossible_counts(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(successes, n)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, math.nan])
def test_refuses_level(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        wilson_interval(1, 2, level)
