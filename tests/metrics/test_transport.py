"""Optimal transport against scipy on a line, hand-worked matrices, and ways over a third label."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses
from scipy.optimize import linear_sum_assignment
from scipy.stats import wasserstein_distance

from moot.metrics.divergence import total_variation
from moot.metrics.transport import embedding_distance, wasserstein

RANDOM = np.random.default_rng(8)


@pytest.mark.parametrize("k", [2, 3, 10, 40])
def test_on_a_line_it_is_scipys(k: int) -> None:
    places = np.sort(RANDOM.normal(size=k)) * 100
    p, q = RANDOM.dirichlet(np.full(k, 0.3), size=(2, 30))
    found = wasserstein(p, q, np.abs(places[:, None] - places))
    expected = [wasserstein_distance(places, places, a, b) for a, b in zip(p, q, strict=True)]
    assert found == pytest.approx(np.array(expected), rel=1e-9)


def test_without_a_matrix_it_is_the_total_variation_and_so_it_is_with_ones() -> None:
    p, q = RANDOM.dirichlet(np.full(6, 0.4), size=(2, 50))
    assert wasserstein(p, q).tolist() == total_variation(p, q).tolist()
    assert wasserstein(p, q, 1.0 - np.eye(6)) == pytest.approx(total_variation(p, q))
    assert wasserstein(p, q, np.zeros((6, 6))).tolist() == [0.0] * 50


def test_equal_masses_are_an_assignment() -> None:
    """n labels of 1/n against n others: the cheapest transport is the cheapest matching (Birkhoff)."""
    n = 60
    ground = embedding_distance(RANDOM.normal(size=(2 * n, 5)))
    p, q = np.repeat([1.0, 0.0], n) / n, np.repeat([0.0, 1.0], n) / n
    cost = ground[:n, n:]
    expected = cost[linear_sum_assignment(cost)].sum() / n
    assert wasserstein(p, q, ground) == pytest.approx(expected, rel=1e-9)


def test_a_detour_is_taken_where_it_is_cheaper() -> None:
    """Labels 0 and 1 are 10 apart but each 1 from label 2, which both hold: 0 -> 2 and 2 -> 1 cost 2, not 10."""
    ground = np.array([[0.0, 10.0, 1.0], [10.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    assert wasserstein([0.5, 0.0, 0.5], [0.0, 0.5, 0.5], ground) == pytest.approx(0.5 * 2)
    assert wasserstein([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], ground) == pytest.approx(10.0)


def test_small_differences_are_not_rounded_away() -> None:
    p = np.full(4, 0.25)
    q = p + np.array([2e-10, 1e-10, -2e-10, -1e-10])
    places = np.arange(4.0)
    expected = wasserstein_distance(places, places, p, q)
    assert wasserstein(p, q, np.abs(places[:, None] - places)) == pytest.approx(expected, rel=1e-4)


def test_more_pairs_than_one_batch_and_leading_axes() -> None:
    p = RANDOM.dirichlet(np.ones(12), size=(7, 1))
    q = RANDOM.dirichlet(np.ones(12), size=(1, 25))
    q[0, 3] = np.nan
    ground = embedding_distance(RANDOM.normal(size=(12, 4)))
    found = wasserstein(p, q, ground)
    assert found.shape == (7, 25)
    assert np.isnan(found[:, 3]).all()
    assert found[6, 24] == pytest.approx(wasserstein(p[6, 0], q[0, 24], ground))
    assert int(np.isnan(found).sum()) == 7


@pytest.mark.parametrize(
    ("ground", "message"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\) for 3 labels"),
        (np.zeros((2, 2)), r"shape \(2, 2\) for 3 labels"),
        (np.eye(3) - 1.0, "negative"),
        (np.full((3, 3), np.nan), "NaN"),
        (np.ones((3, 3)), "of a label to itself"),
        (np.triu(np.ones((3, 3)), 1), "not symmetric"),
    ],
)
def test_a_matrix_that_is_no_distance_is_refused(ground: np.ndarray, message: str) -> None:
    refuses(message, wasserstein, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], ground)


def test_embedding_distance() -> None:
    vectors = RANDOM.normal(size=(8, 5)) * 10.0 ** RANDOM.integers(-200, 200, size=(8, 1))
    unit = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    found = embedding_distance(vectors)
    assert found == pytest.approx(np.sqrt(np.maximum(0.0, 2 * (1 - unit @ unit.T))), abs=1e-7)
    assert (found <= found[:, :, None] + found[None, :, :].transpose(0, 1, 2) + 1e-12).all()
    assert embedding_distance([[2.0, 1.0]]).tolist() == [[0.0]]
    refuses("vector 1 has no direction", embedding_distance, [[1.0, 0.0], [0.0, 0.0]])
    refuses("vector 0 has no direction", embedding_distance, [[np.nan, 0.0]])
    refuses(r"\(k, d\)", embedding_distance, [1.0, 0.0])
