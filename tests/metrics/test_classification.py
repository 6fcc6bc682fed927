"""Macro-F1 against scikit-learn; abstentions are wrong answers; absent labels have no F1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import f1_score

from moot.metrics.detection import macro_f1

LABELS = ["flu", "cold", "dengue", "measles"]


@pytest.mark.parametrize("seed", range(5))
def test_is_that_of_scikit_learn(seed: int) -> None:
    random = np.random.default_rng(seed)
    truth = [LABELS[i] for i in random.choice(4, size=80, p=[0.6, 0.3, 0.1, 0.0])]
    predicted = [*(LABELS[i] for i in random.integers(3, size=70)), *["none of these"] * 10]
    expected = f1_score(truth, predicted, labels=LABELS, average="macro", zero_division=math.nan)
    assert macro_f1(truth, predicted, LABELS) == pytest.approx(expected)
    assert macro_f1(truth, [*predicted[:70], *[None] * 10], LABELS) == pytest.approx(expected)


def test_rare_labels_count_as_much_as_common_ones() -> None:
    truth = ["flu"] * 98 + ["cold", "dengue"]
    assert macro_f1(truth, ["flu"] * 100, LABELS[:3]) == pytest.approx(2 * 98 / (98 + 100) / 3)


def test_abstaining_never_pays() -> None:
    truth = ["flu", "flu", "cold", "cold"]
    answered = macro_f1(truth, ["flu", "flu", "cold", "cold"], LABELS)
    abstained = macro_f1(truth, ["flu", None, "cold", None], LABELS)
    assert answered == 1.0
    assert abstained == pytest.approx(2 / 3)
    assert macro_f1(truth, [None] * 4, LABELS) == 0.0


def test_unknown_truth_is_left_out() -> None:
    assert macro_f1([None, "flu"], ["cold", "flu"], LABELS) == 1.0
    assert math.isnan(macro_f1([None], ["cold"], LABELS))
    assert math.isnan(macro_f1([], [], LABELS))


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="1 true labels but 2 answers"):
        macro_f1(["flu"], ["flu", "flu"], LABELS)
    with pytest.raises(ValueError, match="twice"):
        macro_f1(["flu"], ["flu"], ["flu", "flu"])
    with pytest.raises(ValueError, match="'gout' is none of the labels"):
        macro_f1(["gout"], ["flu"], LABELS)
