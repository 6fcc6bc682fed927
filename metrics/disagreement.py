"""Disagreement of a group: semantic distance of its replies, and misalignment of stated and intrinsic confidence.

Functions raise ValueError for invalid shapes, different lengths, and a probability outside [0, 1].
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def semantic_disagreement(embeddings: npt.ArrayLike) -> float:
    """Semantic disagreement: the mean cosine distance over all pairs of embeddings.

    `D = 2 / (n (n - 1)) * sum over i < j of (1 - cos(e_i, e_j))`, computed in O(n d) from the norm of the sum of the
    unit vectors. It depends neither on the lengths of the vectors nor on their order.

    Args:
        embeddings: `(n, d)`, one row per reply, finite numbers of any scale.

    Returns:
        Dimensionless, in [0, 2]: 0 if all rows have the same direction, 1 if they are orthogonal on average, 2 only for
        two opposite rows. NaN for fewer than two rows, or if an entry is NaN or infinite. A row of zeros has no
        direction; its cosine with every row, including another row of zeros, is taken as 0.

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
    # Divide by the largest entry first: squares of very large or small entries overflow or underflow.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(largest > 0.0, largest, 1.0)
    length = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    unit = rows / np.where(length > 0.0, length, 1.0)
    total = unit.sum(axis=0)
    mean_cosine = float(total @ total - (unit * unit).sum()) / (n * (n - 1))
    return min(2.0, max(0.0, 1.0 - mean_cosine))


def confidence_misalignment(stated: Sequence[float | None], intrinsic: Sequence[float | None]) -> float:
    """Confidence misalignment: the mean absolute difference between stated and intrinsic confidence.

    `M = mean of |c_i - p_i|` over the agents for which both are known.

    Args:
        stated: `(n,)`, confidence c_i that each agent stated, in [0, 1]; None or NaN if unknown.
        intrinsic: `(n,)`, probability p_i of each agent's answer under its own model, in [0, 1]; None or NaN if
            unknown.

    Returns:
        In [0, 1]; NaN if both are known for no agent (also for n = 0).

    Source: SELENE, eq. 3.

    >>> round(confidence_misalignment([0.9, 0.8, 0.7], [0.8, None, 0.9]), 3)
    0.15
    """
    if len(stated) != len(intrinsic):
        raise ValueError(f"{len(stated)} stated confidences but {len(intrinsic)} intrinsic ones")
    gaps = [
        abs(c - p)
        for c, p in zip(map(_probability, stated), map(_probability, intrinsic), strict=True)
        if not (math.isnan(c) or math.isnan(p))
    ]
    return math.fsum(gaps) / len(gaps) if gaps else math.nan


def sigmoid_of_log_probability(p: float) -> float:
    """Logistic function of log p: intrinsic confidence as printed in the paper.

    `sigma(log p) = 1 / (1 + exp(-log p)) = p / (1 + p)`. It is at most 0.5, even for p = 1. It only reproduces the
    printed formula; use `moot.metrics.answer_probability` instead.

    Args:
        p: probability in [0, 1] (not its logarithm).

    Returns:
        In [0, 0.5], increasing in p; NaN for NaN.

    Source: SELENE, sigma(l) with l the log-likelihood of the answer's tokens.

    >>> sigmoid_of_log_probability(1.0)
    0.5
    """
    p = _probability(p)
    return p / (1.0 + p)


def _probability(value: float | None) -> float:
    """Validated probability; NaN for None."""
    if value is None or math.isnan(value):
        return math.nan
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"a probability must be in [0, 1], not {value!r}")
    return float(value)
