"""Judges in both orders: every combination of two verdicts counted by hand, simulated judges, and swapped texts."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.metrics.pairwise_order import order_counts, order_intervals

Floats = npt.NDArray[np.float64]

verdicts = st.sampled_from([0.0, 1.0, 2.0, math.nan])
some_pairs = st.lists(st.tuples(verdicts, verdicts, verdicts), min_size=1, max_size=30)


def test_each_pair_of_verdicts_by_hand() -> None:
    """Text 1 first: 1, 2, 0 or nothing won; text 2 first: the same; text 1 is right."""
    text1_first = [1, 1, 1, 2, 2, 2, 0, 0, 0, None, 1]
    text2_first = [1, 2, 0, 1, 2, 0, 1, 2, 0, 1, None]
    found = order_counts(text1_first, text2_first, [1] * 11)
    assert found.consistent == 2
    assert found.first_twice == 1  # 1, then 2: each shown first
    assert found.second_twice == 1  # 2, then 1: each shown second
    assert found.first_and_tie == 2  # 1 and a tie; a tie and 2
    assert found.second_and_tie == 2
    assert (found.tied_twice, found.missing) == (1, 2)
    assert (found.decided, found.pairs) == (4, 9)
    assert (found.right, found.judged, found.accuracy) == (1, 2, 0.5)
    assert found.inconsistency == 2 / 4
    assert found.first_shown_share == (2 + 2 + 2) / (8 + 4)


@given(some_pairs)
def test_every_pair_is_counted_once_and_swapping_the_texts_changes_nothing(
    pairs: list[tuple[float, float, float]],
) -> None:
    a, b, gold = (np.array(column) for column in zip(*pairs, strict=True))
    found = order_counts(a, b, gold)
    assert found.pairs + found.missing == len(pairs)
    other = {1.0: 2.0, 2.0: 1.0}
    named_otherwise = [np.array([other.get(value, value) for value in column]) for column in (b, a, gold)]
    assert order_counts(*named_otherwise) == found


@given(some_pairs)
def test_exchanging_first_and_second_mirrors_the_share(pairs: list[tuple[float, float, float]]) -> None:
    a, b, _ = (np.array(column) for column in zip(*pairs, strict=True))
    found, mirrored = order_counts(a, b), order_counts(b, a)  # what it said of one order, said of the other
    assert mirrored.first_shown_share == pytest.approx(1 - found.first_shown_share, nan_ok=True)
    assert mirrored.inconsistency == pytest.approx(found.inconsistency, nan_ok=True)
    assert mirrored.bias_p_value == found.bias_p_value


def judge(random: np.random.Generator, pairs: int, skill: float, bias: float) -> tuple[Floats, Floats, Floats]:
    """A judge that takes the first shown with probability `bias`, and else the right text with `skill`."""
    gold = random.integers(1, 3, size=pairs).astype(np.float64)
    said = []
    for first in (1.0, 2.0):
        right = random.random(pairs) < skill
        by_merit = np.where(right, gold, 3.0 - gold)
        said.append(np.where(random.random(pairs) < bias, first, by_merit))
    return said[0], said[1], gold


def test_a_judge_without_bias_has_one_half_and_one_with_it_has_more() -> None:
    random = np.random.default_rng(8)
    for bias, skill in ((0.0, 0.8), (0.3, 0.8), (0.6, 0.9)):
        found = order_counts(*judge(random, 200_000, skill, bias))
        merit = skill * skill + (1 - skill) * (1 - skill)
        assert found.first_shown_share == pytest.approx(bias + (1 - bias) / 2, abs=0.005)
        same = (1 - bias) ** 2 * merit + bias * (1 - bias)
        assert found.inconsistency == pytest.approx(1 - same, abs=0.005)
        right = (1 - bias) ** 2 * skill**2 + bias * (1 - bias) * skill
        assert found.accuracy == pytest.approx(right / same, abs=0.005)
        assert (found.bias_p_value < 1e-6) == (bias > 0)


def test_intervals_hold_the_judge_s_true_figures() -> None:
    random = np.random.default_rng(9)
    truth = order_counts(*judge(random, 400_000, 0.8, 0.3))
    held = np.zeros(5)
    for seed in range(200):
        said = judge(random, 100, 0.8, 0.3)
        counted, drawn = order_counts(*said), order_intervals(*said, resamples=400, seed=seed)
        held += [
            drawn.first_shown_share.low <= truth.first_shown_share <= drawn.first_shown_share.high,
            drawn.inconsistency.low <= truth.inconsistency <= drawn.inconsistency.high,
            drawn.accuracy.low <= truth.accuracy <= drawn.accuracy.high,
            counted.inconsistency_interval.low <= truth.inconsistency <= counted.inconsistency_interval.high,
            counted.accuracy_interval.low <= truth.accuracy <= counted.accuracy_interval.high,
        ]
    assert ((held >= 0.90 * 200) & (held <= 0.99 * 200)).all(), held


def test_the_p_value_is_one_in_twenty_below_a_twentieth_for_a_judge_without_bias() -> None:
    random = np.random.default_rng(10)
    found = [order_counts(*judge(random, 200, 0.7, 0.0)).bias_p_value for _ in range(400)]
    assert np.mean(np.array(found) < 0.05) <= 0.06


def test_clusters_of_pairs_are_drawn_whole() -> None:
    a, b, gold = judge(np.random.default_rng(11), 50, 0.7, 0.4)
    copied = [np.repeat(column, 8) for column in (a, b, gold)]
    alone = order_intervals(a, b, gold, resamples=2000)
    together = order_intervals(*copied, clusters=np.repeat(np.arange(50), 8), resamples=2000)
    for name in ("first_shown_share", "inconsistency", "accuracy"):
        one, other = getattr(alone, name), getattr(together, name)
        assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.15)


def test_without_a_decided_pair_nothing_is_known() -> None:
    for said in (([], []), ([0, 0], [0, 0]), ([None], [1])):
        found = order_counts(*said)
        assert math.isnan(found.first_shown_share)
        assert math.isnan(found.inconsistency)
        assert math.isnan(found.accuracy)
        assert math.isnan(found.inconsistency_interval.low)
        assert found.bias_p_value == 1.0
    drawn = order_intervals([0, 0], [0, 0], resamples=20)
    assert (math.isnan(drawn.inconsistency.low), drawn.inconsistency.resamples) == (True, 0)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="vectors of one length"):
        order_counts([1, 2], [1])
    with pytest.raises(ValueError, match="text 1 or 2"):
        order_counts([3], [1])
    with pytest.raises(ValueError, match="a vector"):
        order_counts([[1]], [[1]])
    with pytest.raises(ValueError, match="clusters of shape"):
        order_intervals([1, 2], [1, 2], clusters=[0])
