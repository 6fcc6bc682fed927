"""Made-up features and scores with ties and holes, and clusters with an effect of their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


def with_missing_values(seed: int, n: int = 60, features: int = 6, targets: int = 3) -> tuple[Floats, Floats, Codes]:
    """Features (every second one rounded, so tied), scores of 1 to 3, and flags; each with NaN in places."""
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
    """The rows of two vectors that have both."""
    both = ~(np.isnan(a) | np.isnan(b))
    return a[both], b[both]


def clustered(
    random: np.random.Generator, clusters: int, size: int, columns: int, *, share: float = 0.5
) -> tuple[Floats, Codes]:
    """Normal columns, of whose variance the share lies between clusters of one size, and the clusters."""
    codes = np.repeat(np.arange(clusters), size)
    between = random.normal(size=(clusters, columns))[codes]
    within = random.normal(size=(clusters * size, columns))
    return np.sqrt(share) * between + np.sqrt(1.0 - share) * within, codes
