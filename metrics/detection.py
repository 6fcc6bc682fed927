"""How well a score tells one class from the other."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def auroc(score: npt.ArrayLike | Sequence[float | None], is_positive: npt.ArrayLike | Sequence[bool | None]) -> float:
    """Area under the receiver operating characteristic: does a HIGH score mean positive?

    The probability that a random positive scores higher than a random negative, ties counting one
    half: `(sum of the positives' ranks - P (P + 1) / 2) / (P N)`, ranks averaged over ties. To ask
    whether a low score (say a confidence) points to positives (say errors), negate the score.

    Args:
        score: `(n,)`, any unit, infinities allowed; rows with NaN (or None) are left out.
        is_positive: `(n,)`, True or False (1 or 0); rows with NaN (or None) are left out.

    Returns:
        A number in [0, 1]: 1 when every positive scores above every negative, 0.5 when the score
        says nothing, below 0.5 when it points the other way. NaN when either class is empty.

    Raises:
        ValueError: if the inputs are not two vectors of one length, or `is_positive` holds anything
            but true, false and unknown.

    Source: Hanley and McNeil, Radiology 1982 (the Mann-Whitney statistic).

    >>> auroc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.75
    """
    scores = np.asarray(score, dtype=np.float64)
    classes = np.asarray(is_positive, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != classes.shape:
        raise ValueError(f"two vectors of one length expected, not {scores.shape} and {classes.shape}")
    known = ~(np.isnan(scores) | np.isnan(classes))
    scores, classes = scores[known], classes[known]
    if not np.isin(classes, (0.0, 1.0)).all():
        raise ValueError("is_positive must be true, false or unknown")
    positive = classes.astype(np.bool_)
    n_positive = int(positive.sum())
    n_negative = len(scores) - n_positive
    if n_positive == 0 or n_negative == 0:
        return math.nan
    from scipy.stats import rankdata

    rank_sum = float(rankdata(scores, method="average")[positive].sum())
    return (rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)
