"""The three divergences: each reply as its definition says, and which replies are the confident and the unsure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from moot.metrics.signal_divergences import conditions, confidence_ends

NAN = float("nan")


@given(arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([NAN, -2.0, -0.5, -0.4, -1e-7, 0.0])))
def test_the_tails_contain_their_share_and_no_more(mu: np.ndarray) -> None:
    known = mu[~np.isnan(mu)]
    low, high = confidence_ends(mu)
    values, counts = np.unique(known, return_counts=True)
    assert confidence_ends(values, counts=counts) == pytest.approx((low, high), nan_ok=True)
    if np.isnan(low):
        # Then no value has both a quarter below and a quarter above it.
        assert all((known <= one).sum() * 4 < len(known) or (known > one).sum() * 4 < len(known) for one in known)
        return
    assert low < high
    for inside, beyond in ((known <= low, known < low), (known >= high, known > high)):
        assert inside.sum() * 4 >= len(known) > beyond.sum() * 4


@pytest.mark.parametrize("tokens", [[3, 7], [1, 10], [5]])
def test_replies_that_differ_by_rounding_are_alike(tokens: list[int]) -> None:
    mu = np.array([np.mean([-0.3] * n) for n in tokens * 4])
    assert np.isnan(confidence_ends(mu)).all()


def told(mu: float, quality: float, flagged: float, correct: float) -> list[bool | None]:
    """Whether each divergence holds for one reply among others; None where that is unknown."""
    found = conditions(np.array([mu]), np.array([quality]), np.array([flagged]), np.array([correct]), (-2.0, -1.0))
    return [bool(each.first[0] and each.second[0]) if each.known[0] else None for each in found]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ((-1.0, 5.0, 0.0, 1.0), [True, False, False]),
        ((-1.0, 9.0, 1.0, 1.0), [True, False, False]),
        ((-1.01, 5.0, 0.0, 1.0), [False, False, False]),
        ((-1.0, 8.0, 0.0, 0.0), [False, True, False]),
        ((-1.5, 8.0, 1.0, 0.0), [False, False, False]),
        ((-2.0, 7.0, 0.0, 1.0), [False, False, True]),
        ((-2.0, 7.0, 0.0, 0.0), [False, False, False]),
        ((NAN, 8.0, 0.0, 0.0), [None, True, None]),
        ((-1.0, NAN, NAN, 0.0), [None, None, False]),
        ((-1.0, 4.0, 0.0, NAN), [True, None, None]),
    ],
)
def test_each_reply_is_as_the_definition_says(
    reply: tuple[float, float, float, float], expected: list[bool | None]
) -> None:
    assert told(*reply) == expected


def test_without_ends_no_confidence_is_high_or_low() -> None:
    mu, rest = np.full(3, -0.3), np.ones(3)
    found = list(conditions(mu, rest, rest, rest, confidence_ends(mu)))
    assert [int(each.known.sum()) for each in found] == [0, 3, 0]
