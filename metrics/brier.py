"""Brier scores of distributions and of stated confidences.

Functions raise ValueError for incompatible shapes, a confidence outside [0, 1], an outcome that is not true, false or
unknown, and a label index out of range.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Values, known_rows, values


def brier_multiclass(p: npt.ArrayLike, truth_index: npt.ArrayLike | Sequence[int | None]) -> Values:
    """Multiclass Brier score per case: `sum over j of (p_j - [j is true])^2`.

    A proper score; finite if the true label has no mass.

    Args:
        p: `(..., k)`, distributions.
        truth_index: `(...)`, index of the true label, 0 to k - 1; NaN (or None) if unknown.

    Returns:
        `(...)`, in [0, 2]: 0 for all mass on the true label, 2 for all mass on one wrong label, `1 - 1/k` for the
        uniform distribution. NaN if p is not a distribution or the truth is unknown.

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
        raise ValueError(f"a true label must be a whole number from 0 to {rows.shape[-1] - 1}")
    error = ((rows - (truth[..., None] == labels)) ** 2).sum(axis=-1)
    return values(np.where(known, error, np.nan))


def brier_stated(confidence: npt.ArrayLike, correct: npt.ArrayLike | Sequence[bool | None]) -> Values:
    """Brier score of a stated confidence, per answer: `(c - [the answer is right])^2`.

    The confidence refers to the given answer, however low it is. `brier_top_label([c, 1 - c], ...)` would use the
    larger of c and 1 - c.

    Args:
        confidence: `(...)`, stated probability that the answer is right, in [0, 1]; NaN (or None) if unknown.
        correct: `(...)`, whether it is right: True or False (1 or 0); NaN (or None) if unknown.

    Returns:
        `(...)`, in [0, 1]; NaN if either is unknown.

    Source: Brier, "Verification of forecasts expressed in terms of probability", 1950, for one event.

    >>> brier_stated([0.75, 0.25], [True, True]).tolist()
    [0.0625, 0.5625]
    """
    stated = np.asarray(confidence, dtype=np.float64)
    if ((stated < 0.0) | (stated > 1.0)).any():
        raise ValueError("a confidence must be between 0 and 1")
    return values((stated - _outcomes(correct)) ** 2)


def brier_top_label(p: npt.ArrayLike, correct: npt.ArrayLike | Sequence[bool | None]) -> Values:
    """Brier score of the most probable label, per case: `(max p - [the label is true])^2`.

    It ignores the other labels; do not compare it with `brier_multiclass`.

    Args:
        p: `(..., k)`, distributions.
        correct: `(...)`, whether the most probable label is true: True or False (1 or 0); NaN (or None) if unknown.

    Returns:
        `(...)`, in [0, 1]; NaN if p is not a distribution or the outcome is unknown.

    >>> brier_top_label([0.75, 0.25], [True, False]).tolist()
    [0.0625, 0.5625]
    """
    return values((known_rows(p).max(axis=-1) - _outcomes(correct)) ** 2)


def _outcomes(correct: npt.ArrayLike | Sequence[bool | None]) -> npt.NDArray[np.float64]:
    outcome = np.asarray(correct, dtype=np.float64)
    if not np.isin(outcome[~np.isnan(outcome)], (0.0, 1.0)).all():
        raise ValueError("an outcome must be true, false or unknown")
    return outcome
