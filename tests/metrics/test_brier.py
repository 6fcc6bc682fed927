"""Both Brier scores: scikit-learn's values, their ranges, and what is unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from moot.metrics.calibration_error import brier_multiclass, brier_stated, brier_top_label

RANDOM = np.random.default_rng(11)


def test_the_mean_is_that_of_scikit_learn() -> None:
    p = RANDOM.dirichlet(np.ones(5), size=300)
    truth = RANDOM.integers(5, size=300)
    expected = brier_score_loss(truth, p, labels=np.arange(5), scale_by_half=False)
    assert brier_multiclass(p, truth).mean() == pytest.approx(expected)
    correct = p.argmax(axis=1) == truth
    expected = brier_score_loss(correct, p.max(axis=1))
    assert brier_top_label(p, correct).mean() == pytest.approx(expected)


def test_a_stated_confidence_is_taken_as_it_is() -> None:
    confidence, correct = RANDOM.random(300), RANDOM.random(300) < 0.5
    assert brier_stated(confidence, correct).mean() == pytest.approx(brier_score_loss(correct, confidence))
    assert brier_stated(0.25, False) == 0.0625, "not that of 1 - c"
    assert np.isnan(brier_stated([0.5, math.nan], [None, True])).all()
    with pytest.raises(ValueError, match="between 0 and 1"):
        brier_stated(1.5, True)


def test_range_and_known_values() -> None:
    assert brier_multiclass([1.0, 0.0], [0, 1]).tolist() == [0.0, 2.0]
    assert brier_multiclass(np.full(10, 0.1), 3) == pytest.approx(1 - 1 / 10)
    assert brier_top_label([1.0, 0.0], [True, False]).tolist() == [0.0, 1.0]
    two = RANDOM.dirichlet(np.ones(2), size=50)
    assert brier_multiclass(two, two.argmax(axis=1)) == pytest.approx(2 * brier_top_label(two, np.ones(50)))


def test_the_truth_is_the_best_report() -> None:
    """Proper: stating anything but the true chances costs, in expectation."""
    chances = np.array([0.6, 0.3, 0.1])
    other = RANDOM.dirichlet(np.ones(3), size=100)
    expected = chances @ brier_multiclass(chances, np.arange(3))
    assert (brier_multiclass(other[:, None, :], np.arange(3)) @ chances > expected).all()


def test_unknown_is_unknown() -> None:
    assert np.isnan(brier_multiclass([[0.5, 0.5], [0.7, 0.7]], [None, 0])).all()
    assert np.isnan(brier_top_label([[0.5, 0.5], [0.7, 0.7]], [None, True])).all()
    assert math.isnan(brier_multiclass([0.5, 0.5], math.nan))
    for wrong in (2, -1, 0.5):
        with pytest.raises(ValueError, match="from 0 to 1"):
            brier_multiclass([0.5, 0.5], wrong)
    with pytest.raises(ValueError, match="true, false or unknown"):
        brier_top_label([0.5, 0.5], 0.5)
