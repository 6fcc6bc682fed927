"""Ranks of the true label: ties earn nothing, a label that is not listed counts as a miss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from refusals import refuses
from sklearn.metrics import label_ranking_average_precision_score, top_k_accuracy_score

from moot.metrics.ranking import accuracy_at_k, mean_reciprocal_rank, rank_of_truth

RANDOM = np.random.default_rng(31)


@pytest.mark.parametrize("decimals", [8, 1], ids=["no ties", "ties"])
def test_reciprocal_ranks_are_those_of_scikit_learn(decimals: int) -> None:
    """With one true label its average precision is the reciprocal rank, ties at their worst."""
    p = np.round(RANDOM.dirichlet(np.ones(6), size=200), decimals) + 0.01
    p /= p.sum(axis=1, keepdims=True)
    truth = RANDOM.integers(6, size=200)
    expected = label_ranking_average_precision_score(np.eye(6)[truth], p)
    assert mean_reciprocal_rank(rank_of_truth(p, truth)) == pytest.approx(expected)


def test_accuracy_is_that_of_scikit_learn() -> None:
    p = RANDOM.dirichlet(np.ones(6), size=200)
    truth = RANDOM.integers(6, size=200)
    for k in (1, 3, 5):
        expected = top_k_accuracy_score(truth, p, k=k, labels=np.arange(6))
        assert accuracy_at_k(rank_of_truth(p, truth), k) == pytest.approx(expected)


def test_what_is_not_listed_is_a_miss() -> None:
    ranks = rank_of_truth([[0.6, 0.4, 0.0]] * 4, [0, 1, 2, None])
    assert ranks.tolist() == [1.0, 2.0, math.inf, math.inf]
    assert accuracy_at_k(ranks, 3) == 0.5
    assert mean_reciprocal_rank(ranks) == pytest.approx(1.5 / 4)
    assert accuracy_at_k([None, math.nan, 1.0], 10**9) == pytest.approx(1 / 3)
    assert mean_reciprocal_rank([None, math.nan, 1.0]) == pytest.approx(1 / 3)


def test_no_answer_has_no_rank() -> None:
    assert math.isnan(rank_of_truth([0.5, 0.1], 0))
    assert math.isnan(accuracy_at_k([], 1))
    assert math.isnan(mean_reciprocal_rank([]))


def test_bad_input_is_refused() -> None:
    refuses("a rank must be at least 1", accuracy_at_k, [0.0], 1)
    refuses("k must be at least 1", accuracy_at_k, [1.0], 0)
    refuses("a vector of ranks", mean_reciprocal_rank, [[1.0]])
    refuses("from 0 to 1", rank_of_truth, [0.5, 0.5], 2)
