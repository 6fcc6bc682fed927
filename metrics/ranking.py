"""Ranking metrics: accuracy at k, mean reciprocal rank, and the rank of the true label. Ranks start at 1.

Functions raise ValueError for a rank or a k below 1, ranks that are no vector, shapes that do not fit, and a number
that is no label's.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats, Values, known_rows, values

Ranks = npt.ArrayLike | Sequence[float | None]


def accuracy_at_k(ranks: Ranks, k: int) -> float:
    """Accuracy at k: the share of cases whose true label is among the first k.

    Args:
        ranks: `(n,)`, the rank of the true label, from 1. NaN, None or infinite: the list does not hold it, which
            counts as a miss; a case that has no list at all (a failure) is to be left out before, and counted.
        k: at least 1.

    Returns:
        A share in [0, 1]; NaN for no case.

    >>> accuracy_at_k([1, 3, None, 2], 2)
    0.5
    """
    if k < 1:
        raise ValueError(f"k is at least 1, not {k}")
    known = _checked(ranks)
    return float((known <= k).mean()) if known.size else float("nan")


def mean_reciprocal_rank(ranks: Ranks) -> float:
    """Mean reciprocal rank (MRR): the mean of `1 / rank` of the true label.

    Args:
        ranks: `(n,)`, as for `accuracy_at_k`; a label that is not in the list counts 0.

    Returns:
        A number in [0, 1], 1 when every true label comes first; NaN for no case.

    Source: Voorhees, "The TREC-8 question answering track report", 1999.

    >>> mean_reciprocal_rank([1, 2, None, 4])
    0.4375
    """
    known = _checked(ranks)
    return float((1.0 / known).mean()) if known.size else float("nan")


def rank_of_truth(p: npt.ArrayLike, truth_index: npt.ArrayLike | Sequence[int | None]) -> Values:
    """Rank of the true label when labels are sorted by probability; ties take the worst rank.

    `rank = number of labels with p_j >= p_true`: equally probable labels are not ranked, so the uniform
    distribution ranks every label k-th.

    Args:
        p: `(..., k)`, distributions.
        truth_index: `(...)`, the number of the true label, 0 to k - 1. NaN (or None): the truth is none of the labels.

    Returns:
        `(...)`, from 1 to k; infinite when the list does not hold the truth (it has no mass, or is none of the labels).
        NaN where p is no distribution.

    >>> rank_of_truth([0.5, 0.25, 0.25, 0.0], [0, 1, 3]).tolist()
    [1.0, 3.0, inf]
    """
    rows = known_rows(p)
    truth = np.asarray(truth_index, dtype=np.float64)
    labels = np.arange(rows.shape[-1])
    if not np.isin(truth[~np.isnan(truth)], labels).all():
        raise ValueError(f"a true label is a whole number from 0 to {rows.shape[-1] - 1}, or unknown")
    mass = np.where(truth[..., None] == labels, rows, 0.0).sum(axis=-1)
    ahead = (rows >= mass[..., None]).sum(axis=-1)
    rank = np.where(mass > 0.0, ahead, np.inf)
    return values(np.where(np.isnan(rows).any(axis=-1), np.nan, rank))


def _checked(ranks: Ranks) -> Floats:
    """Ranks, infinite where the list does not contain the label."""
    known = np.asarray(ranks, dtype=np.float64)
    if known.ndim != 1:
        raise ValueError(f"a vector of ranks expected, not {known.shape}")
    if (known < 1.0).any():
        raise ValueError("a rank is at least 1")
    return np.where(np.isnan(known), np.inf, known)
