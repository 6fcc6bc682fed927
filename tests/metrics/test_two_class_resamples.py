"""Detection figures of resamples of claims against scikit-learn's of the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from moot.metrics.cluster_bootstrap import cluster_weights
from moot.metrics.two_class_detection import detection_figures, detection_outcomes


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
