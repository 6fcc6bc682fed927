"""When distributions have come to rest; the printed rule beside ours, on the printed cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.metrics.divergence import jensen_shannon_divergence
from moot.protocols.convergence import convergence_status, distribution_shift, plateaued, printed_convergence

FIRST = np.array([[0.40, 0.30, 0.15, 0.10, 0.05, 0.0, 0.0], [0.25, 0.35, 0.0, 0.20, 0.0, 0.15, 0.05]])
SWAPPED = FIRST[::-1]


def test_the_printed_swap_is_named_and_is_no_rest() -> None:
    """Jaundice, rounds 1 and 2: the sides take each other's place, and every symmetric measure stands still."""
    moved = distribution_shift(FIRST, SWAPPED, 0.05)
    assert moved.swapped
    assert moved.moves == pytest.approx((0.35, 0.35))
    before, after = (float(jensen_shannon_divergence(*rows)) for rows in (FIRST, SWAPPED))
    assert convergence_status(moved.moves, after, epsilon=0.05, tau=0.05) is None
    assert printed_convergence([0.0, 0.0, after - before], 0.0, epsilon=0.01), (
        "the printed rule ends the debate on a swap"
    )


def test_sides_that_stay_have_not_swapped() -> None:
    assert not distribution_shift(FIRST, FIRST, 0.05).swapped
    same = np.array([[0.5, 0.5], [0.5, 0.5]])
    assert not distribution_shift(same, same, 0.05).swapped, "equal sides have nothing to swap"


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_one_side_that_takes_the_others_place_is_no_swap(order: list[int]) -> None:
    before = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    after = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    assert not distribution_shift(before[order], after[order], 0.05).swapped


def test_a_swap_among_three() -> None:
    before = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert distribution_shift(before, before[[0, 2, 1]], 0.05).swapped
    assert not distribution_shift(before, before[[1, 2, 0]], 0.05).swapped, "a rotation is no mutual swap"


@pytest.mark.parametrize(
    ("moves", "divergence", "expected"),
    [
        ([0.01, 0.01], 0.01, "converged"),
        ([0.01, 0.01], 0.05, "stalled"),
        ([0.01, 0.05], 0.01, None),
        ([0.0, 0.0], 0.0, "converged"),
        ([1.0, 0.0], 0.0, None),
        ([0.96 - 0.91, 0.0], 0.0, None),
    ],
)
def test_rest(moves: list[float], divergence: float, expected: str | None) -> None:
    assert convergence_status(moves, divergence, epsilon=0.05, tau=0.05) == expected


@pytest.mark.parametrize(
    ("changes", "crit", "expected"),
    [
        ([0.0, 0.0, 0.0], 0.0, True),
        ([0.0, 0.0, 0.0], -0.5, True),
        ([0.0, 0.0, 0.0], 0.02, False),
        ([-0.02, 0.0, 0.0], 0.0, False),
        ([0.0, None, 0.0], 0.0, False),
        ([0.0, 0.0, 0.0], None, False),
    ],
    ids=["still", "crit falls", "crit rises", "a fall is a change", "unknown", "crit unknown"],
)
def test_the_printed_rule(changes: list[float | None], crit: float | None, expected: bool) -> None:
    assert printed_convergence(changes, crit, epsilon=0.01) is expected


SCORES = st.lists(st.one_of(st.none(), st.floats(0.0, 1.0)), max_size=12)


def known_of(scores: list[float | None]) -> list[float]:
    return [score for score in scores if score is not None]


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
    assert plateaued(scores, patience, min_delta) == plateaued(known_of(scores), patience, min_delta)


@given(SCORES, st.integers(1, 4), st.floats(0.0, 1.0))
def test_a_new_best_by_more_than_the_least_rise_ends_a_plateau(
    scores: list[float | None], patience: int, min_delta: float
) -> None:
    best = max(known_of(scores), default=0.0) + min_delta + 0.001
    assert not plateaued([*scores, best], patience, min_delta)


@given(SCORES, st.integers(1, 4), st.floats(0.0, 0.5))
def test_standing_still_becomes_a_plateau(scores: list[float | None], patience: int, min_delta: float) -> None:
    known = known_of(scores)
    assert plateaued([*known, *[max(known, default=0.5)] * (patience + 1)], patience, min_delta)
