"""McNemar's exact test against the binomial tail, and pairing with unknown outcomes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from moot.metrics.significance import mcnemar_exact, paired_difference


@given(st.integers(0, 300), st.integers(0, 300))
def test_equals_the_binomial_tail(b: int, c: int) -> None:
    found = mcnemar_exact(b, c)
    tail = float(binom.cdf(min(b, c), b + c, 0.5)) if b + c else 1.0
    assert found.p_value == pytest.approx(min(1.0, 2 * tail), rel=1e-9, abs=1e-300)
    assert found.p_value == pytest.approx(mcnemar_exact(c, b).p_value)
    assert (found.statistic, found.n_discordant) == (min(b, c), b + c)


def test_known_value() -> None:
    assert mcnemar_exact(0, 6).p_value == pytest.approx(2 / 64)
    assert mcnemar_exact(0, 0).p_value == 1.0
    with pytest.raises(ValueError, match="negative"):
        mcnemar_exact(-1, 2)


def test_paired_difference() -> None:
    a = [True] * 6 + [False, True, None, False, math.nan]
    b = [False] * 6 + [True, True, True, False, True]
    found = paired_difference(a, b)
    assert (found.b, found.c, found.n) == (6, 1, 9)
    assert found.difference == pytest.approx(7 / 9 - 2 / 9)
    assert found.p_value == mcnemar_exact(6, 1).p_value
    assert paired_difference(b, a).difference == -found.difference


def test_no_pair_is_unknown() -> None:
    found = paired_difference([None, True], [True, None])
    assert (found.b, found.c, found.n) == (0, 0, 0)
    assert math.isnan(found.difference)
    assert math.isnan(found.p_value)


def test_refuses_bad_input() -> None:
    with pytest.raises(ValueError, match="2 outcomes of A"):
        paired_difference([True, False], [True])
    with pytest.raises(ValueError, match=r"0\.5"):
        paired_difference([0.5], [True])
