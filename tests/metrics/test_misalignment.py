"""Stated against intrinsic confidence, and the printed sigma(log p)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from moot.metrics.disagreement import confidence_misalignment, sigmoid_of_log_probability

maybe = st.one_of(st.none(), st.just(math.nan), st.floats(0.0, 1.0))


def test_mean_over_the_known() -> None:
    assert confidence_misalignment([0.9, 0.6, 0.5], [0.8, 0.9, None]) == pytest.approx(0.2)
    assert confidence_misalignment([0.9, None, 0.5], [0.8, 0.9, math.nan]) == pytest.approx(0.1)


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1), st.lists(maybe))
def test_unknown_agents_change_nothing(pairs: list[tuple[float, float]], stated: list[float | None]) -> None:
    c = [pair[0] for pair in pairs]
    p = [pair[1] for pair in pairs]
    known = confidence_misalignment(c, p)
    assert 0.0 <= known <= 1.0
    assert known == pytest.approx(sum(abs(a - b) for a, b in pairs) / len(pairs))
    assert confidence_misalignment([*stated, *c], [*[None] * len(stated), *p]) == known
    assert confidence_misalignment([*[None] * len(stated), *p], [*stated, *c]) == known


def test_nobody_known_is_nan() -> None:
    assert math.isnan(confidence_misalignment([], []))
    assert math.isnan(confidence_misalignment([0.9, 0.1], [None, math.nan]))


def test_refuses_bad_input() -> None:
    with pytest.raises(ValueError, match="2 stated"):
        confidence_misalignment([0.1, 0.2], [0.1])
    with pytest.raises(ValueError, match="not in"):
        confidence_misalignment([90.0], [0.9])
    with pytest.raises(ValueError, match="not in"):
        confidence_misalignment([90.0], [None])
    with pytest.raises(ValueError, match="not in"):
        sigmoid_of_log_probability(-0.1)


@given(st.floats(1e-300, 1.0))
def test_sigma_of_log_p(p: float) -> None:
    assert sigmoid_of_log_probability(p) == pytest.approx(float(expit(math.log(p))), rel=1e-9)
    assert sigmoid_of_log_probability(p) <= 0.5


def test_sigma_at_the_ends() -> None:
    assert sigmoid_of_log_probability(0.0) == 0.0
    assert math.isnan(sigmoid_of_log_probability(math.nan))


def test_printed_confidence_makes_a_calibrated_agent_look_misaligned() -> None:
    printed = confidence_misalignment([0.95], [sigmoid_of_log_probability(0.95)])
    assert printed == pytest.approx(0.463, abs=5e-4)
    assert confidence_misalignment([0.95], [0.95]) == 0.0
