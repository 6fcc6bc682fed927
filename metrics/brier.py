"""Brier scores of distributions and of stated confidences.

Functions raise ValueError for shapes that do not fit, a confidence outside [0, 1], an outcome that is neither true,
false nor unknown, and a number that is no label's.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Values, known_rows, values


def brier_multiclass(p: npt.ArrayLike, truth_index: npt.ArrayLike | Sequence[int | None]) -> Values:
    """Multiclass Brier score per case: `sum over j of (p_j - [j is true])^2`.

    Args:
        p: `(..., k)`, distributions.
        truth_index: `(...)`, the number of the true label, 0 to k - 1; NaN (or None) when unknown.

    Returns:
        `(...)`, in [0, 2]: 0 for all mass on the truth, 2 for all on one wrong label, `1 - 1/k` for the uniform
        distribution. Proper, and finite where the truth has no mass. NaN where p is no distribution or the truth is
        unknown.

    Source: Brier, "Verification of forecasts expressed in terms of probability", 1950.

    >>> brier_multiclass([0.5, 0.25, 0.25], 0)
    0.375
    """
    rows = known_rows(p)
    truth = np.asarray(truth_index, dtype=np.float64)
    labels = np.arange(rows.shape[-1])
    known = ~np.isnan(truth)
    true = truth[known]
    if not ((true >= 0.0) & (true < len(labels)) & (true == np.floor(true))).all():  # np.isin takes ten times as long
        raise ValueError(f"a true label is a whole number from 0 to {rows.shape[-1] - 1}")
    error = ((rows - (truth[..., None] == labels)) ** 2).sum(axis=-1)
    return values(np.where(known, error, np.nan))


def brier_stated(confidence: npt.ArrayLike, correct: npt.ArrayLike | Sequence[bool | None]) -> Values:
    """Brier score of a stated confidence, per answer: `(c - [it is right])^2`.

    The confidence is that of the answer that was given, however low it is: who answers and states .2 expects to be
    wrong. `brier_top_label([c, 1 - c], ...)` would judge the larger of the two instead.

    Args:
        confidence: `(...)`, the stated probability that the answer is right, in [0, 1]; NaN (or None) when unknown.
        correct: `(...)`, whether it is: True or False (1 or 0); NaN (or None) when unknown.

    Returns:
        `(...)`, in [0, 1]; NaN where either is unknown.

    Source: Brier, "Verification of forecasts expressed in terms of probability", 1950, for one event.

    >>> brier_stated([0.75, 0.25], [True, True]).tolist()
    [0.0625, 0.5625]
    """
    stated = np.asarray(confidence, dtype=np.float64)
    if ((stated < 0.0) | (stated > 1.0)).any():
        raise ValueError("a confidence lies between 0 and 1")
    return values((stated - _outcomes(correct)) ** 2)


def brier_top_label(p: npt.ArrayLike, correct: npt.ArrayLike | Sequence[bool | None]) -> Values:
    """Brier score of the most probable label alone, per case: `(max p - [it is true])^2`.

    It scores the confidence in the answer and ignores the other labels; do not compare it with `brier_multiclass`.

    Args:
        p: `(..., k)`, distributions.
        correct: `(...)`, whether the most probable label is true: True or False (1 or 0); NaN (or None) when unknown.

    Returns:
        `(...)`, in [0, 1]; NaN where p is no distribution or the outcome is unknown.

    >>> brier_top_label([0.75, 0.25], [True, False]).tolist()
    [0.0625, 0.5625]
    """
    return values((known_rows(p).max(axis=-1) - _outcomes(correct)) ** 2)


def _outcomes(correct: npt.ArrayLike | Sequence[bool | None]) -> npt.NDArray[np.float64]:
    outcome = np.asarray(correct, dtype=np.float64)
    if not np.isin(outcome[~np.isnan(outcome)], (0.0, 1.0)).all():
        raise ValueError("an outcome is true, false or unknown")
    return outcome
