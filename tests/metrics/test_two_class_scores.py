"""Scores of two classes against scikit-learn, on the data and on resamples of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from moot.metrics.cluster_bootstrap import cluster_weights
from moot.metrics.two_class_scores import two_class_scores


def test_every_resample_has_scikit_learns_scores() -> None:
    random = np.random.default_rng(0)
    y, answer = random.integers(2, size=40), random.integers(2, size=40)
    weights = cluster_weights(np.arange(40) // 2, 5)
    found = two_class_scores(answer, y, weights)
    for number, weight in enumerate(weights):
        rows = np.repeat(np.arange(40), weight)
        assert found.accuracy[number] == pytest.approx(accuracy_score(y[rows], answer[rows]))
        assert found.f1_ones[number] == pytest.approx(f1_score(y[rows], answer[rows]))
        assert found.f1_zeros[number] == pytest.approx(f1_score(y[rows], answer[rows], pos_label=0))
        assert found.macro_f1[number] == pytest.approx(f1_score(y[rows], answer[rows], average="macro"))


def test_no_answer_is_wrong_and_what_does_not_occur_has_no_f1() -> None:
    found = two_class_scores([np.nan, 1.0], [1, 1], np.ones((1, 2)))
    assert found.accuracy.item() == 0.5
    assert found.f1_ones.item() == pytest.approx(2 / 3)
    assert np.isnan(found.f1_zeros.item())
    assert found.macro_f1.item() == pytest.approx(2 / 3)
    nothing = two_class_scores([1.0], [1], [[0]])
    assert np.isnan([nothing.accuracy.item(), nothing.f1_ones.item(), nothing.macro_f1.item()]).all()


def test_other_values_and_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        two_class_scores([1.0], [1, 0], [[1, 1]])
    for answer, y in (([2.0], [1]), ([1.0], [0.5])):
        with pytest.raises(ValueError, match="an outcome is 0 or 1"):
            two_class_scores(answer, y, [[1]])
