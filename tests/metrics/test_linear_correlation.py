"""Pearson's correlation against scipy's, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from association_data import holed, known
from scipy.stats import pearsonr

from moot.metrics.rank_correlation import pearson_matrix


@pytest.mark.parametrize("seed", range(3))
def test_each_pair_is_scipys(seed: int) -> None:
    x, y, _ = holed(seed)
    found = pearson_matrix(x, y)
    for feature, target in np.ndindex(found.shape):
        expected = pearsonr(*known(x[:, feature], y[:, target])).statistic
        assert found[feature, target] == pytest.approx(expected, abs=1e-13)


def test_a_constant_far_from_zero_does_not_vary() -> None:
    x = np.full(7, 0.1) * 3e7
    assert np.isnan(pearson_matrix(x, np.arange(7.0)))
    assert np.isnan(pearson_matrix([1.0, 2.0], [1.0, 2.0]))
    assert np.isnan(pearson_matrix([1.0, np.inf, 2.0], [1.0, 2.0, 3.0]))
    assert np.isnan(pearson_matrix([np.nan] * 4, [1.0, 2.0, 3.0, 4.0]))
