"""Accuracy and F1 of both classes, of the rows as they are and of resamples of them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats


@dataclass(frozen=True, slots=True)
class TwoClassScores:
    """Scores in [0, 1], each `(R,)`.

    Attributes:
        accuracy: share of right answers.
        f1_ones, f1_zeros: `2 hits / (2 hits + false alarms + misses)` of either class; NaN where it is neither true nor
            answered anywhere.
        macro_f1: the mean of those that are known; NaN when none is.
    """

    accuracy: Floats
    f1_ones: Floats
    f1_zeros: Floats
    macro_f1: Floats


def two_class_scores(answer: npt.ArrayLike, outcome: npt.ArrayLike, weights: npt.ArrayLike) -> TwoClassScores:
    """Scores of answers when each row counts as often as a resample holds it.

    Args:
        answer: `(n,)`, 0, 1 or NaN; NaN (no answer) is wrong: a miss of the true class, and a false alarm of none.
        outcome: `(n,)`, of 0 and 1.
        weights: `(R, n)`, how often each row is in each resample; a row of ones is the data as they are.

    Raises:
        ValueError: for shapes that do not fit, or values other than these.

    Source: van Rijsbergen, Information Retrieval, 1979.

    >>> scores = two_class_scores([1, 1, 0, np.nan], [1, 0, 0, 0], [[1, 1, 1, 1]])
    >>> scores.accuracy.tolist(), scores.f1_ones.round(3).tolist(), scores.f1_zeros.tolist()
    ([0.5], [0.667], [0.5])
    """
    given, truth = np.asarray(answer, dtype=np.float64), np.asarray(outcome, dtype=np.float64)
    drawn = np.asarray(weights, dtype=np.float64)
    if given.ndim != 1 or given.shape != truth.shape or drawn.ndim != 2 or drawn.shape[1] != len(given):
        raise ValueError(f"answers {given.shape}, outcomes {truth.shape} and weights {drawn.shape} do not fit")
    if not np.isin(truth, (0.0, 1.0)).all() or not np.isin(given[~np.isnan(given)], (0.0, 1.0)).all():
        raise ValueError("an outcome is 0 or 1, an answer 0, 1 or unknown")
    right = drawn @ (given == truth)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = right / drawn.sum(axis=1)
        ones, zeros = (
            2.0 * (drawn @ ((given == one) & (truth == one))) / (drawn @ (given == one) + drawn @ (truth == one))
            for one in (1.0, 0.0)
        )
    known = ~np.isnan(np.stack([ones, zeros]))
    total = np.nan_to_num(np.stack([ones, zeros])).sum(axis=0)
    macro = np.divide(total, known.sum(axis=0), out=np.full(len(total), np.nan), where=known.any(axis=0))
    return TwoClassScores(accuracy, ones, zeros, macro)
