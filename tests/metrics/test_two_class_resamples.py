"""Detection figures of resamples of claims against scikit-learn's of the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from moot.metrics.cluster_bootstrap import cluster_weights
from moot.metrics.detection import detection_figures, detection_outcomes, resampled_figures


def test_every_resample_has_scikit_learns_scores() -> None:
    random = np.random.default_rng(0)
    y, answer = random.integers(2, size=40), random.integers(2, size=40)
    weights = cluster_weights(np.arange(40) // 2, 5)
    found = detection_figures(weights @ detection_outcomes(y, answer))
    for number, weight in enumerate(weights):
        rows = np.repeat(np.arange(40), weight)
        assert found.accuracy[number] == pytest.approx(accuracy_score(y[rows], answer[rows]))
        assert found.f1[number, 1] == pytest.approx(f1_score(y[rows], answer[rows]))
        assert found.f1[number, 0] == pytest.approx(f1_score(y[rows], answer[rows], pos_label=0))
        assert found.macro_f1[number] == pytest.approx(f1_score(y[rows], answer[rows], average="macro"))


def test_a_resample_without_one_of_the_classes_has_no_macro_f1() -> None:
    """One case in six is of class 1 and missed: the macro F1 of any such data lies below one half."""
    y = [1, 0, 0, 0, 0, 0]
    outcomes = detection_outcomes(y, [0] * 6)
    weights = cluster_weights(np.arange(6), 400)
    counts, drawn = outcomes.sum(axis=0), weights @ outcomes
    found = resampled_figures(counts, drawn)
    without = weights[:, 0] == 0
    assert 50 < without.sum() < 250
    np.testing.assert_array_equal(np.isnan(found.macro_f1), without)
    assert np.nanmax(found.macro_f1) <= 0.5
    one_class = outcomes[1:].sum(axis=0)
    np.testing.assert_array_equal(resampled_figures(one_class, [one_class]).macro_f1, [1.0])
    both = np.stack([outcomes, detection_outcomes(y, y)])
    several = resampled_figures(both.sum(axis=1), np.einsum("rn,dnk->rdk", weights, both))
    np.testing.assert_array_equal(several.macro_f1[:, 0], found.macro_f1)
    np.testing.assert_array_equal(several.macro_f1[:, 1], np.where(without, np.nan, 1.0))
