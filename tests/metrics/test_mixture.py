"""Weights from entropy, mixtures, and the gain of a round, on hand-worked numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from moot.metrics.divergence import information_gain, mixture, reliability_weights


def test_weights_are_one_less_the_share_of_the_largest_entropy() -> None:
    # H = 1 of 2 bit and 1.5 of 2 bit: reliabilities 1/2 and 1/4.
    rows = [[0.5, 0.5, 0.0, 0.0], [0.5, 0.25, 0.25, 0.0]]
    assert reliability_weights(rows) == pytest.approx([2 / 3, 1 / 3])
    assert reliability_weights([rows, rows[::-1]]) == pytest.approx(np.array([[2, 1], [1, 2]]) / 3)


@pytest.mark.parametrize("k", [2, 3, 5, 7, 10, 49])
def test_rows_that_say_nothing_weigh_the_same(k: int) -> None:
    assert reliability_weights(np.full((3, k), 1.0 / k)).tolist() == [1 / 3] * 3
    beside = np.vstack([np.full((2, k), 1.0 / k), np.eye(k)[:1]])
    assert reliability_weights(beside).tolist() == [0.0, 0.0, 1.0]


def test_one_class_is_no_choice() -> None:
    assert reliability_weights([[1.0], [1.0]]).tolist() == [0.5, 0.5]
    assert information_gain([1.0], [1.0]) == 0.0


def test_a_row_that_is_no_distribution_leaves_all_unknown() -> None:
    rows = [[0.9, 0.1], [0.9, 0.9]]
    assert np.isnan(reliability_weights(rows)).all()
    assert np.isnan(mixture(rows)).all()
    for shape_function in (reliability_weights, mixture):
        with pytest.raises(ValueError, match=r"\(\.\.\., m, k\)"):
            shape_function([0.5, 0.5])


def test_mixture() -> None:
    rows = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    assert mixture(rows) == pytest.approx([0.5, 0.5])
    assert mixture(rows, [7.0, 1.0, 0.0]) == pytest.approx([0.875, 0.125])
    both = mixture(np.stack([rows, rows]), [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    assert both == pytest.approx(np.array([[1.0, 0.0], [0.5, 0.5]]))
    assert np.isnan(mixture(rows, [0.0, 0.0, 0.0])).all()
    assert np.isnan(mixture(rows, [1.0, 1.0, math.nan])).all()


def test_gain_is_the_fall_in_entropy() -> None:
    before, after = [0.25] * 4, [0.5, 0.5, 0.0, 0.0]
    assert information_gain(before, after) == pytest.approx(math.log(2))
    assert information_gain(after, before) == pytest.approx(-math.log(2))
    assert information_gain([before, after], after) == pytest.approx([math.log(2), 0.0])
