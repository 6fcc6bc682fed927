"""Pearson's correlation of many features with many targets, each pair on the rows that have both."""

import numpy as np
import numpy.typing as npt

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
