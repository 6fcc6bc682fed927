"""How far apart a group's replies are in an embedding space."""

import math

import numpy as np
import numpy.typing as npt


def semantic_disagreement(embeddings: npt.ArrayLike) -> float:
    """Mean cosine distance over all pairs of embeddings.

    `D = 2 / (n (n - 1)) * sum over i < j of (1 - cos(e_i, e_j))`, computed in O(n d) from the norm
    of the sum of the unit vectors. The lengths of the vectors do not matter, nor does their order.

    Args:
        embeddings: `(n, d)`, one row per reply, finite numbers of any scale.

    Returns:
        A number without unit in [0, 2]: 0 when all rows point the same way, 1 when they are
        orthogonal on average, 2 only for two opposite rows. NaN for fewer than two rows, and when
        any entry is NaN or infinite (that reply's place is unknown). A row of zeros has no
        direction; its cosine with every row, another row of zeros included, is taken as 0, so each
        of its pairs adds a distance of 1.

    Raises:
        ValueError: if `embeddings` is not two-dimensional (no replies at all is the shape `(0, d)`).

    Source: SELENE, eq. 2.

    >>> semantic_disagreement([[1.0, 0.0], [0.0, 3.0]])
    1.0
    >>> semantic_disagreement([[1.0, 0.0], [-2.0, 0.0]])
    2.0
    """
    rows = np.asarray(embeddings, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"embeddings must have the shape (n, d), not {rows.shape}")
    n = len(rows)
    if n < 2 or not np.isfinite(rows).all():
        return math.nan
    # Divide by the largest entry first: squares of very large or very small entries leave the range.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(largest > 0.0, largest, 1.0)
    length = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    unit = rows / np.where(length > 0.0, length, 1.0)
    total = unit.sum(axis=0)
    mean_cosine = float(total @ total - (unit * unit).sum()) / (n * (n - 1))
    return min(2.0, max(0.0, 1.0 - mean_cosine))
