"""The resampled correlations are those of the rows that were drawn."""

from __future__ import annotations

import numpy as np
import pytest

from moot.metrics.cluster_bootstrap import cluster_weights, resampled_pearson


def test_each_is_the_correlation_of_the_drawn_rows() -> None:
    random = np.random.default_rng(5)
    x = random.normal(1000.0, 0.01, size=60)
    y = 0.5 * x + random.normal(0.0, 0.01, size=60)
    clusters = np.repeat(np.arange(20), 3)
    drawn = cluster_weights(clusters, 30, 2)
    for value, weights in zip(resampled_pearson(x, y, drawn), drawn, strict=True):
        rows = np.repeat(np.arange(60), weights.astype(int))
        assert value == pytest.approx(np.corrcoef(x[rows], y[rows])[0, 1], abs=1e-7)


def test_what_does_not_vary_has_none() -> None:
    assert np.isnan(resampled_pearson([1.0, 2.0, 3.0], [4.0, 4.0, 4.0], np.ones((5, 3), np.int32))).all()


def test_an_unknown_value_is_refused() -> None:
    with pytest.raises(ValueError, match="known values"):
        resampled_pearson([1.0, np.nan], [1.0, 2.0], np.ones((1, 2), np.int32))
