"""Trajectories against numpy's interpolation and quantiles, and what is cut off."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.metrics.ragged import RaggedArray
from moot.metrics.trajectory import GRID, MeanProbability, bands, mean_probability, percent_grid, phases

some_replies = st.lists(st.lists(st.floats(-30.0, 0.0), max_size=30), max_size=8)


def curve(mean: list[float]) -> MeanProbability:
    """A trajectory of these means, each of 64 replies."""
    return MeanProbability(np.array(mean), np.full(len(mean), 64), len(mean))


def test_the_mean_at_each_position_is_that_of_the_replies_that_reach_it() -> None:
    random = np.random.default_rng(4)
    replies = [-random.exponential(size=size) for size in random.integers(0, 60, size=200)]
    found = mean_probability(RaggedArray.from_lists(replies))
    assert found.reached == max(map(len, replies))
    for position in range(len(found.mean)):
        there = [math.exp(reply[position]) for reply in replies if len(reply) > position]
        assert found.n[position] == len(there)
        assert found.mean[position] == pytest.approx(np.mean(there))


def test_the_curve_ends_before_fewer_than_thirty_replies() -> None:
    replies = [[-0.1] * 4] * 29 + [[-0.1] * 3] + [[-0.1] * 2] * 5
    found = mean_probability(RaggedArray.from_lists(replies))
    assert found.n.tolist() == [35, 35, 30]
    assert found.reached == 4
    assert mean_probability(RaggedArray.from_lists(replies[:29])).mean.tolist() == []


def test_the_curve_ends_before_less_than_a_quarter_of_the_replies() -> None:
    replies = [[-0.1] * 3] * 49 + [[-0.1] * 2] + [[-0.1]] * 150
    assert mean_probability(RaggedArray.from_lists(replies)).n.tolist() == [200, 50]
    with_empty = RaggedArray.from_lists([*replies, *[[]] * 1000])
    assert mean_probability(with_empty).n.tolist() == [200, 50]  # a reply of nothing says nothing about length


@pytest.mark.parametrize("unknown", [math.nan, -math.inf, -9999.0])
def test_an_unknown_value_is_excluded_at_its_position(unknown: float) -> None:
    replies = [[math.log(0.5), math.log(0.8)]] * 40 + [[unknown, math.log(0.2)]] * 40
    found = mean_probability(RaggedArray.from_lists(replies))
    assert found.mean == pytest.approx([0.5, 0.5])
    assert found.n.tolist() == [40, 80]


def test_no_replies_have_no_curve_and_empty_phases() -> None:
    for rows in (0, 1):
        found = mean_probability(RaggedArray.from_lists([[]] * rows))
        assert (len(found.mean), found.reached) == (0, 0)
        assert [(phase.n, math.isnan(phase.mean)) for phase in phases(found)] == [(0, True)] * 4


def test_the_four_phases_of_a_long_curve() -> None:
    decline = np.linspace(0.9, 0.5, 26)  # positions 5 to 30
    rise = np.minimum(0.5 + 0.016 * np.arange(1, 70), 0.7)
    mean = np.concatenate([np.full(5, 0.95), decline, rise, np.full(300, 0.7), np.full(150, 0.72), np.full(50, 0.6)])
    n = np.linspace(200, 60, 600).astype(np.int64)
    opening, down, plateau, late = phases(MeanProbability(mean, n, 650))
    assert (opening.start, opening.stop, opening.n) == (0, 5, n[4])
    assert opening.mean == pytest.approx(0.95)
    assert (down.start, down.stop, down.n) == (5, 31, n[30])
    assert down.mean == pytest.approx(decline.mean())
    assert (plateau.start, plateau.stop, plateau.n) == (100, 400, n[399])
    assert plateau.mean == pytest.approx(0.7)
    assert (late.start, late.stop, late.n) == (550, 600, n[599])  # the longest reply has 650: the rest was cut off
    assert late.mean == pytest.approx(0.6)


def test_the_smoothing_looks_as_far_ahead_as_back() -> None:
    mean = [0.9] * 20 + [0.5] * 4 + [0.3] + [0.9] * 40
    assert phases(curve(mean))[1].stop - 1 == 22
    mean = [0.9] * 20 + [0.3] + [0.5] * 4 + [0.9] * 40
    assert phases(curve(mean))[1].stop - 1 == 22


@given(some_replies)
def test_the_grid_is_numpys_interpolation(replies: list[list[float]]) -> None:
    found = percent_grid(RaggedArray.from_lists(replies))
    assert found.shape == (len(replies), GRID)
    for row, reply in zip(found, replies, strict=True):
        if reply:
            places = np.arange(GRID) * (len(reply) - 1) / 100
            np.testing.assert_allclose(row, np.interp(places, np.arange(len(reply)), reply), rtol=1e-9, atol=1e-9)
            assert (row[0], row[-1]) == (reply[0], reply[-1])
        else:
            assert np.isnan(row).all()


def test_an_unknown_token_touches_only_the_points_beside_it() -> None:
    (row,) = percent_grid(RaggedArray.from_lists([[-1.0, -2.0, -9999.0, -2.0, -1.0]]))
    assert np.flatnonzero(np.isnan(row)).tolist() == list(range(26, 75))
    assert row[25] == row[75] == -2.0


@given(st.integers(1, 40), st.integers(0, 10))
def test_bands_are_numpys_quantiles(count: int, empty: int) -> None:
    random = np.random.default_rng(count)
    replies: list[list[float]] = [(-random.exponential(size=size)).tolist() for size in random.integers(1, 50, count)]
    grid = percent_grid(RaggedArray.from_lists([*replies, *[[]] * empty]))
    grid[0, 7] = math.nan
    found = bands(grid)
    expected = np.delete(grid, 7, axis=1)
    for name, level in (("low_10", 10), ("low_25", 25), ("high_75", 75), ("high_90", 90)):
        quantile = np.delete(getattr(found, name), 7)
        np.testing.assert_allclose(quantile, np.nanpercentile(expected, level, axis=0), atol=1e-12)
    np.testing.assert_allclose(np.delete(found.mean, 7), np.nanmean(expected, axis=0), atol=1e-12)
    assert found.n[7] == count - 1
    assert set(np.delete(found.n, 7)) == {count}
    assert math.isnan(found.mean[7]) == math.isnan(found.low_10[7]) == (count == 1)
