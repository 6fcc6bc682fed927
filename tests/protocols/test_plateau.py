"""A plateau is a rise that did not come: noise, a first score and unknown scores are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.convergence import plateaued

SCORES = st.lists(st.one_of(st.none(), st.floats(0.0, 1.0)), max_size=12)


@pytest.mark.parametrize(
    ("scores", "patience", "expected"),
    [
        ([], 1, False),
        ([0.5], 1, False),
        ([0.5, 0.5], 1, True),
        ([0.5, 0.505], 1, True),
        ([0.5, 0.52], 1, False),
        ([0.5, 0.4, 0.6], 2, False),  # the printed rule stops at this dip
        ([0.5, 0.4, 0.4], 2, True),
        ([0.5, 0.6, 0.6, 0.6], 3, False),
        ([None, 0.5, None, 0.5], 2, False),
        ([None, None, None], 1, False),
    ],
)
def test_what_is_a_plateau(scores: list[float | None], patience: int, expected: bool) -> None:
    assert plateaued(scores, patience, 0.01) is expected


@given(SCORES, st.integers(1, 4), st.floats(0.0, 1.0))
def test_unknown_scores_change_nothing(scores: list[float | None], patience: int, min_delta: float) -> None:
    known = [score for score in scores if score is not None]
    assert plateaued(scores, patience, min_delta) == plateaued(known, patience, min_delta)


@given(SCORES, st.integers(1, 4), st.floats(0.0, 1.0))
def test_a_new_best_by_more_than_the_least_rise_ends_a_plateau(
    scores: list[float | None], patience: int, min_delta: float
) -> None:
    known = [score for score in scores if score is not None]
    best = max(known, default=0.0) + min_delta + 0.001
    assert not plateaued([*scores, best], patience, min_delta)


@given(SCORES, st.integers(1, 4), st.floats(0.0, 0.5))
def test_standing_still_becomes_a_plateau(scores: list[float | None], patience: int, min_delta: float) -> None:
    known = [score for score in scores if score is not None]
    assert plateaued([*known, *[max(known, default=0.5)] * (patience + 1)], patience, min_delta)
