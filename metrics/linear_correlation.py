"""Pearson's correlation of many features with many targets, and in resamples of their rows."""

import numpy as np
import numpy.typing as npt

from moot.metrics.cluster_bootstrap import Weights
from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import as_pair, complete_blocks
from moot.metrics.rank_correlation import LEAST_ROWS


def pearson_matrix(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Pearson's correlation of each column of x with each of y.

    Args:
        x: `(n, F)`, NaN where unknown (a vector is one column).
        y: `(n, T)`, the same.

    Returns:
        `(F, T)`, in [-1, 1]; NaN where fewer than three rows have both, or one of the two does not vary on them or is
        infinite on one of them.

    Raises:
        ValueError: if they have different numbers of rows.

    >>> pearson_matrix([[1.0], [2.0], [4.0]], [[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]]).round(6).tolist()
    [[1.0, nan]]
    """
    features, targets = as_pair(x, y)
    found = np.full((features.shape[1], targets.shape[1]), np.nan)
    for block in complete_blocks(features, targets):
        if len(block.rows) >= LEAST_ROWS:
            found[np.ix_(block.features, block.targets)] = np.clip(_unit(block.x).T @ _unit(block.y), -1.0, 1.0)
    return found


def _unit(values: Floats) -> Floats:
    """Each column centred and of length 1; NaN where it does not vary or is not finite."""
    varies = np.isfinite(values).all(axis=0) & (values.max(axis=0) > values.min(axis=0))
    centred = np.where(varies, values, 0.0)
    centred = centred - centred.mean(axis=0)
    length = np.sqrt((centred * centred).sum(axis=0))
    unit: Floats = np.divide(centred, length, out=np.full(values.shape, np.nan), where=varies & (length > 0.0))
    return unit


def resampled_pearson(x: npt.ArrayLike, y: npt.ArrayLike, weights: Weights) -> Floats:
    """Pearson's correlation of two vectors whose rows count several times.

    Args:
        x, y: `(n,)`, without unknown values.
        weights: `(resamples, n)`, as `metrics.cluster_bootstrap.cluster_weights` gives them.

    Returns:
        `(resamples,)`, in [-1, 1]; NaN where one of the two does not vary in a resample.

    Raises:
        ValueError: for shapes that do not fit, or an unknown value.

    >>> drawn = np.array([[1, 1, 1], [0, 2, 1]], np.int32)
    >>> resampled_pearson([1.0, 2.0, 4.0], [2.0, 4.0, 8.0], drawn).round(9).tolist()
    [1.0, 1.0]
    """
    a, b = (np.asarray(values, dtype=np.float64) for values in (x, y))
    if a.ndim != 1 or a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError(f"two vectors of one length and of known values expected, not {a.shape} and {b.shape}")
    if weights.ndim != 2 or weights.shape[1] != len(a):
        raise ValueError(f"weights of (resamples, {len(a)}) expected, not {weights.shape}")
    share = weights / weights.sum(axis=1, keepdims=True)
    a, b = a - a.mean(), b - b.mean()  # as near to 0 as can be, so that little is lost in the differences below
    mean_a, mean_b, ab, aa, bb = (share @ np.column_stack([a, b, a * b, a * a, b * b])).T
    spread = (aa - mean_a**2) * (bb - mean_b**2)
    least = 1e-12 * (a * a).mean() * (b * b).mean()
    found: Floats = np.clip((ab - mean_a * mean_b) / np.sqrt(np.where(spread > least, spread, np.nan)), -1.0, 1.0)
    return found
