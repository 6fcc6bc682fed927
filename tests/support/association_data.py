"""Synthetic features and scores with ties and missing values, and clustered data with an effect of the cluster."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


def with_missing_values(seed: int, n: int = 60, features: int = 6, targets: int = 3) -> tuple[Floats, Floats, Codes]:
    """Features (every second one rounded, so that it has ties), scores of 1 to 3, and cluster codes, with some NaN."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, features))
    x[:, ::2] = np.round(x[:, ::2])
    scores = np.clip(np.round(2.0 + 0.6 * x[:, [1]] + random.normal(size=(n, targets))), 1.0, 3.0)
    x[random.random(n) < 0.1, 1:3] = np.nan  # columns of one window
    x[random.random(n) < 0.1, 4] = np.nan
    scores[random.random(n) < 0.1] = np.nan  # a judge that failed
    scores[random.random(n) < 0.1, 0] = np.nan
    return x, scores, random.integers(0, 5, n)


def known(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Pairwise complete observations of two vectors."""
    both = ~(np.isnan(a) | np.isnan(b))
    return a[both], b[both]


def clustered(
    random: np.random.Generator, clusters: int, size: int, columns: int, *, share: float = 0.5
) -> tuple[Floats, Codes]:
    """Normal columns with the share `share` of their variance between clusters of equal size, and the clusters."""
    codes = np.repeat(np.arange(clusters), size)
    between = random.normal(size=(clusters, columns))[codes]
    within = random.normal(size=(clusters * size, columns))
    return np.sqrt(share) * between + np.sqrt(1.0 - share) * within, codes
