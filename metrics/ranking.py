"""Ranking metrics: accuracy at k, mean reciprocal rank, and the rank of the true label. Ranks start at 1.

Functions raise ValueError for a rank or a k below 1, ranks that are not one-dimensional, incompatible shapes, and a
label index out of range.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats, Values, known_rows, values

Ranks = npt.ArrayLike | Sequence[float | None]


def accuracy_at_k(ranks: Ranks, k: int) -> float:
    """Accuracy at k: the proportion of cases whose true label is among the first k.

    Args:
        ranks: `(n,)`, rank of the true label, from 1. NaN, None or infinite: the list does not contain it, which is a
            miss. Leave out cases without a list (failures), and count them.
        k: at least 1.

    Returns:
        In [0, 1]; NaN without cases.

    >>> accuracy_at_k([1, 3, None, 2], 2)
    0.5
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    known = _checked(ranks)
    return float((known <= k).mean()) if known.size else float("nan")


def mean_reciprocal_rank(ranks: Ranks) -> float:
    """Mean reciprocal rank (MRR): the mean of `1 / rank` of the true label.

    Args:
        ranks: `(n,)`, as for `accuracy_at_k`; a label that is not in the list contributes 0.

    Returns:
        In [0, 1]; 1 if every true label has rank 1. NaN without cases.

    Source: Voorhees, "The TREC-8 question answering track report", 1999.

    >>> mean_reciprocal_rank([1, 2, None, 4])
    0.4375
    """
    known = _checked(ranks)
    return float((1.0 / known).mean()) if known.size else float("nan")


def rank_of_truth(p: npt.ArrayLike, truth_index: npt.ArrayLike | Sequence[int | None]) -> Values:
    """Rank of the true label among the labels sorted by probability; ties get the worst rank.

    `rank = number of labels with p_j >= p_true`, so that every label of the uniform distribution has rank k.

    Args:
        p: `(..., k)`, distributions.
        truth_index: `(...)`, index of the true label, 0 to k - 1. NaN (or None): the truth is not among the labels.

    Returns:
        `(...)`, from 1 to k; infinite if the truth has no mass or is not among the labels. NaN if p is not a
        distribution.

    >>> rank_of_truth([0.5, 0.25, 0.25, 0.0], [0, 1, 3]).tolist()
    [1.0, 3.0, inf]
    """
    rows = known_rows(p)
    truth = np.asarray(truth_index, dtype=np.float64)
    labels = np.arange(rows.shape[-1])
    if not np.isin(truth[~np.isnan(truth)], labels).all():
        raise ValueError(f"a true label must be a whole number from 0 to {rows.shape[-1] - 1}, or unknown")
    mass = np.where(truth[..., None] == labels, rows, 0.0).sum(axis=-1)
    ahead = (rows >= mass[..., None]).sum(axis=-1)
    rank = np.where(mass > 0.0, ahead, np.inf)
    return values(np.where(np.isnan(rows).any(axis=-1), np.nan, rank))


def _checked(ranks: Ranks) -> Floats:
    """Validated ranks; infinite if the list does not contain the label."""
    known = np.asarray(ranks, dtype=np.float64)
    if known.ndim != 1:
        raise ValueError(f"a vector of ranks expected, not {known.shape}")
    if (known < 1.0).any():
        raise ValueError("a rank must be at least 1")
    return np.where(np.isnan(known), np.inf, known)
