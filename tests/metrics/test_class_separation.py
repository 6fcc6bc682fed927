"""Separation of a flag's classes against scikit-learn and scipy, with ties and holes."""

from __future__ import annotations

import numpy as np
import pytest
from association_data import Floats, known, with_missing_values
from refusals import refuses
from scipy.stats import pointbiserialr
from sklearn.metrics import roc_auc_score

from moot.metrics.class_separation import auroc_matrix, folded_auroc, point_biserial_matrix, within_groups_auroc


def _flagged(seed: int) -> tuple[Floats, Floats]:
    x, scores, _ = with_missing_values(seed)
    return x, np.where(np.isnan(scores), np.nan, scores <= 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_each_pair_is_scikit_learns_and_scipys(seed: int) -> None:
    x, flags = _flagged(seed)
    area, biserial = auroc_matrix(x, flags), point_biserial_matrix(x, flags)
    for feature, target in np.ndindex(area.shape):
        values, flag = known(x[:, feature], flags[:, target])
        assert area[feature, target] == pytest.approx(roc_auc_score(flag, values), abs=1e-13)
        assert biserial[feature, target] == pytest.approx(pointbiserialr(flag, values).statistic, abs=1e-13)


def test_direction_and_fold() -> None:
    x, flags = np.array([[1.0], [2.0], [3.0], [4.0]]), [0, 0, 1, 1]
    assert auroc_matrix(x, flags).item() == 1.0
    assert auroc_matrix(-x, flags).item() == 0.0
    assert folded_auroc(auroc_matrix(-x, flags)).item() == 1.0
    assert point_biserial_matrix(-x, flags).item() < 0.0


def test_within_groups_counts_pairs_of_one_group() -> None:
    x, flags = _flagged(3)
    groups = with_missing_values(3)[2]
    found = within_groups_auroc(x, flags, groups)
    for feature, target in np.ndindex(found.shape):
        wins = pairs = 0.0
        for group in np.unique(groups):
            values, flag = known(x[groups == group, feature], flags[groups == group, target])
            high, low = values[flag == 1][:, None], values[flag == 0]
            wins += (high > low).sum() + 0.5 * (high == low).sum()
            pairs += high.size * low.size
        assert found[feature, target] == pytest.approx(wins / pairs, abs=1e-13)
    assert within_groups_auroc(x, flags, np.zeros(len(x))) == pytest.approx(auroc_matrix(x, flags), abs=1e-13)


def test_a_difference_between_groups_is_no_separation_within_them() -> None:
    random = np.random.default_rng(1)
    groups = np.repeat([0, 1], 300)
    flags = (random.random(600) < np.where(groups, 0.8, 0.2)).astype(float)
    x = 3.0 * groups + random.normal(size=600)
    assert auroc_matrix(x, flags).item() > 0.7
    assert abs(within_groups_auroc(x, flags, groups).item() - 0.5) < 0.08


def test_what_is_undefined_is_nan() -> None:
    assert np.isnan(auroc_matrix([1.0, 2.0, 3.0], [1, 1, 1]))
    assert np.isnan(auroc_matrix([1.0, np.nan], [1, 0]))
    assert np.isnan(within_groups_auroc([1.0, 2.0], [1, 0], ["a", "b"]))
    assert np.isnan(point_biserial_matrix([2.0, 2.0, 2.0], [1, 0, 1]))
    assert np.isnan(point_biserial_matrix([-np.inf, 2.0, 1.0], [1, 0, 1]))
    assert auroc_matrix([-np.inf, 2.0, 1.0], [0, 1, 1]).item() == 1.0


def test_a_flag_is_a_flag() -> None:
    refuses("0, 1 or unknown", auroc_matrix, [1.0, 2.0], [1, 2])
