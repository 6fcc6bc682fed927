"""The area under the ROC curve against scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from moot.metrics.detection import auroc

rows = st.lists(
    st.tuples(st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6)), st.booleans()), min_size=2
).filter(lambda pairs: len({positive for _, positive in pairs}) == 2)


@given(rows)
def test_equals_scikit_learn(pairs: list[tuple[float, bool]]) -> None:
    score, positive = zip(*pairs, strict=True)
    assert auroc(score, positive) == pytest.approx(float(roc_auc_score(positive, score)), abs=1e-12)
    assert auroc(-np.array(score), positive) == pytest.approx(1 - auroc(score, positive), abs=1e-12)


def test_direction_and_ties() -> None:
    assert auroc([0.1, 0.2, 0.9], [False, False, True]) == 1.0
    assert auroc([0.9, 0.8, 0.1], [False, False, True]) == 0.0
    assert auroc([0.5, 0.5, 0.5], [False, True, True]) == 0.5
    assert auroc([-math.inf, math.inf], [False, True]) == 1.0


def test_unknown_rows_are_left_out() -> None:
    assert auroc([0.1, math.nan, 0.9, 0.95], [False, False, True, None]) == 1.0
    assert auroc([None, 0.1, 0.9], [True, False, True]) == 1.0


@pytest.mark.parametrize(
    ("score", "positive"), [([], []), ([0.1, 0.2], [True, True]), ([0.1, math.nan], [True, False])]
)
def test_one_class_is_nan(score: list[float], positive: list[bool]) -> None:
    assert math.isnan(auroc(score, positive))


def test_refuses_bad_input() -> None:
    with pytest.raises(ValueError, match="length"):
        auroc([0.1, 0.2], [True])
    with pytest.raises(ValueError, match="is_positive"):
        auroc([0.1, 0.2], [0, 2])
