"""Binary detection metrics: AUROC, F1 and accuracy with abstentions, and the correlation of two raters' errors.

Functions raise ValueError for arrays of incompatible shapes, and for a class, label, error or correlation that is
invalid.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from moot.metrics.class_separation import auroc_matrix
from moot.metrics.distribution import Floats, Values, ratio, values


def auroc(score: npt.ArrayLike | Sequence[float | None], is_positive: npt.ArrayLike | Sequence[bool | None]) -> float:
    """Area under the ROC curve (AUROC) of a score: above 0.5 if a HIGH score predicts the positive class.

    To test whether a low score (such as a confidence) predicts positives (such as errors), negate it.

    Args:
        score: `(n,)`, in any unit, infinities allowed; rows with NaN (or None) are left out.
        is_positive: `(n,)`, True or False (1 or 0); rows with NaN (or None) are left out.

    Returns:
        In [0, 1]; NaN if either class is empty.

    >>> auroc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.75
    """
    scores, classes = np.asarray(score, dtype=np.float64), np.asarray(is_positive, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != classes.shape:
        raise ValueError(f"two vectors of equal length expected, not {scores.shape} and {classes.shape}")
    return float(auroc_matrix(scores, classes).item())


def macro_f1(truth: Sequence[str | None], predicted: Sequence[str | None], labels: Sequence[str]) -> float:
    """Macro-averaged F1: the mean over labels of `F1 = 2 TP / (2 TP + FP + FN)`.

    Args:
        truth: `(n,)`, true label of each case; None if unknown.
        predicted: `(n,)`, predicted label of each case. None (an abstention) and a text that is not a label count as a
            false negative of the true label, and as no false positive.
        labels: labels to average over, each once.

    Returns:
        In [0, 1]. Cases of unknown truth are left out. A label that is neither true nor predicted in any case has no F1
        and is left out of the mean (as in scikit-learn with `zero_division=nan`); NaN if none remains.

    Source: van Rijsbergen, Information Retrieval, 1979; the mean as in Lewis, 1991.

    >>> round(macro_f1(["a", "a", "b"], ["a", None, "b"], ["a", "b", "c"]), 4)
    0.8333
    """
    if len(truth) != len(predicted):
        raise ValueError(f"{len(truth)} true labels but {len(predicted)} answers")
    if len(set(labels)) != len(labels):
        raise ValueError("a label is listed twice")
    pairs = [(true, answer) for true, answer in zip(truth, predicted, strict=True) if true is not None]
    if unlisted := {true for true, _ in pairs} - set(labels):
        raise ValueError(f"the true label {min(unlisted)!r} is not one of the labels")
    occurring = Counter(true for true, _ in pairs)
    answered = Counter(answer for _, answer in pairs)
    hits = Counter(true for true, answer in pairs if true == answer)
    scores = [
        2 * hits[label] / (occurring[label] + answered[label]) for label in labels if occurring[label] + answered[label]
    ]
    return sum(scores) / len(scores) if scores else float("nan")


OUTCOMES = 6
"""Columns of the counts: class 0 predicted as 0, as 1, abstained; then class 1 likewise."""


@dataclass(frozen=True, slots=True)
class DetectionFigures:
    """Precision, recall, F1 and accuracy, each in [0, 1]; NaN where the denominator is 0.

    Attributes:
        precision: `(..., 2)`, by class: true positives among the cases predicted as the class.
        recall: `(..., 2)`, by class: true positives among the cases of the class.
        f1: `(..., 2)`, by class: `2 TP / (2 TP + FP + FN)`; an abstention is a false negative and no false positive.
        macro_f1: `(...)`, mean over the classes that have an F1, as in `macro_f1`.
        accuracy: `(...)`, correct predictions among all cases; an abstention is not correct.
    """

    precision: Floats
    recall: Floats
    f1: Floats
    macro_f1: Floats
    accuracy: Floats


def detection_outcomes(
    truth: npt.ArrayLike | Sequence[float | None], called: npt.ArrayLike | Sequence[float | None]
) -> Floats:
    """One-hot outcomes of each case, in the columns of `OUTCOMES`; their sums are the confusion matrix.

    Args:
        truth: `(n,)`, class of each case, 0 or 1; NaN (or None) if unknown: its row is all 0.
        called: `(n,)`, predicted class, 0 or 1; NaN (or None) for an abstention.

    Returns:
        `(n, 6)`. Sum it, with `moot.metrics.jackknife.left_out_sums` without each cluster.

    >>> detection_outcomes([0, 1, 1], [0, 0, None]).sum(axis=0).tolist()
    [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    """
    classes, calls = np.asarray(truth, dtype=np.float64), np.asarray(called, dtype=np.float64)
    if classes.ndim != 1 or classes.shape != calls.shape:
        raise ValueError(f"two vectors of equal length expected, not {classes.shape} and {calls.shape}")
    for given in (classes, calls):
        if not np.isin(given[~np.isnan(given)], (0.0, 1.0)).all():
            raise ValueError("a class must be 0, 1 or unknown")
    known = np.flatnonzero(~np.isnan(classes))
    result = np.zeros((len(classes), OUTCOMES))
    column = 3 * classes[known] + np.where(np.isnan(calls[known]), 2.0, calls[known])
    result[known, column.astype(np.intp)] = 1.0
    return result


def detection_figures(counts: npt.ArrayLike) -> DetectionFigures:
    """Precision, recall, F1 and accuracy from counts of outcomes.

    Args:
        counts: `(..., 6)`, sums of `detection_outcomes`.

    Source: van Rijsbergen, Information Retrieval, 1979.

    >>> result = detection_figures([8, 2, 0, 1, 8, 1])
    >>> result.recall.tolist(), result.f1.round(3).tolist(), float(result.accuracy)
    ([0.8, 0.8], [0.842, 0.8], 0.8)
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim < 1 or table.shape[-1] != OUTCOMES:
        raise ValueError(f"counts of (..., {OUTCOMES}) expected, not {table.shape}")
    by_class = table.reshape(*table.shape[:-1], 2, 3)
    correct = np.diagonal(by_class[..., :2], axis1=-2, axis2=-1)
    predicted = by_class[..., :2].sum(axis=-2)
    actual = by_class.sum(axis=-1)
    f1 = ratio(2.0 * correct, predicted + actual)
    return DetectionFigures(
        precision=ratio(correct, predicted),
        recall=ratio(correct, actual),
        f1=f1,
        macro_f1=ratio(np.nansum(f1, axis=-1), (~np.isnan(f1)).sum(axis=-1)),
        accuracy=ratio(correct.sum(axis=-1), actual.sum(axis=-1)),
    )


def resampled_figures(counts: npt.ArrayLike, resampled: npt.ArrayLike) -> DetectionFigures:
    """Precision, recall, F1 and accuracy of each resample or part of the data, from counts of outcomes.

    Macro F1 is NaN in a resample that lacks a class which the data have: the mean over the remaining class would be a
    value that the data cannot have.

    Args:
        counts: `(..., 6)`, of the data.
        resampled: `(resamples, ..., 6)`, of each resample.

    >>> resampled_figures([4, 0, 0, 0, 1, 0], [[5, 0, 0, 0, 0, 0], [3, 0, 0, 0, 2, 0]]).macro_f1.tolist()
    [nan, 1.0]
    """
    figures = detection_figures(resampled)
    lacking = (_class_sizes(counts) > 0.0) & (_class_sizes(resampled) == 0.0)
    return replace(figures, macro_f1=np.where(lacking.any(axis=-1), np.nan, figures.macro_f1))


def _class_sizes(counts: npt.ArrayLike) -> Floats:
    """Number of cases of each class, `(..., 2)`."""
    table = np.asarray(counts, dtype=np.float64)
    sizes: Floats = table.reshape(*table.shape[:-1], 2, 3).sum(axis=-1)
    return sizes


ERROR_PAIRS = 4
"""Columns of the counts: neither rater errs, only the second, only the first, both."""


def error_pairs(first: npt.ArrayLike | Sequence[bool | None], second: npt.ArrayLike | Sequence[bool | None]) -> Floats:
    """One-hot joint errors of two raters on each case, in the columns of `ERROR_PAIRS`; their sums are the counts.

    Args:
        first, second: `(n,)`, whether each rater errs: True or False (1 or 0); NaN (or None) if unknown.

    Returns:
        `(n, 4)`; a row is all 0 if either value is unknown. Sum it, with
        `moot.metrics.jackknife.left_out_sums` without each cluster.

    >>> error_pairs([True, True, False], [True, False, None]).sum(axis=0).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    one, other = (np.asarray(errors, dtype=np.float64) for errors in (first, second))
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"two vectors of equal length expected, not {one.shape} and {other.shape}")
    for errors in (one, other):
        if not np.isin(errors[~np.isnan(errors)], (0.0, 1.0)).all():
            raise ValueError("an error must be true, false or unknown")
    known = np.flatnonzero(~np.isnan(one + other))
    result = np.zeros((len(one), ERROR_PAIRS))
    result[known, (2.0 * one[known] + other[known]).astype(np.intp)] = 1.0
    return result


def error_correlation(counts: npt.ArrayLike) -> Values:
    """Error correlation of two raters: Pearson's correlation of their error indicators (phi coefficient).

    Args:
        counts: `(..., 4)`, sums of `error_pairs`.

    Returns:
        `(...)`, in [-1, 1]: 0 for uncorrelated errors, 1 if both raters err on the same cases. The attainable range is
        narrower if the error rates differ. NaN if a rater always errs or never does.

    Source: Pearson, 1900 (the phi coefficient of a table of two by two).

    >>> round(error_correlation([2, 0, 1, 1]), 4)
    0.5774
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim < 1 or table.shape[-1] != ERROR_PAIRS:
        raise ValueError(f"counts of (..., {ERROR_PAIRS}) expected, not {table.shape}")
    neither, only_second, only_first, both = np.moveaxis(table, -1, 0)
    margins = (both + only_first) * (neither + only_second) * (both + only_second) * (neither + only_first)
    covariance = both * neither - only_first * only_second
    rho = np.divide(covariance, np.sqrt(margins), out=np.full(margins.shape, np.nan), where=margins > 0.0)
    return values(np.clip(rho, -1.0, 1.0))


def effective_raters(rho: float, raters: int) -> float:
    """Effective number of raters: the number of independent raters whose mean has the same VARIANCE.

    `n / (1 + (n - 1) rho)`, with rho the mean correlation of the raters' errors. It measures how averaging reduces the
    variance of the mean, not the probability that the mean is wrong. Do not use it in a bound for independent raters,
    such as Hoeffding's.

    Args:
        rho: in [-1, 1]; NaN if unknown.
        raters: n, at least 1.

    Returns:
        Above 0: n for rho = 0, 1 for rho = 1, more than n for negative rho. NaN if rho is unknown, or if the variance
        would not be positive (`rho <= -1 / (n - 1)`).

    Source: Kish, Survey Sampling, 1965 (the design effect).

    >>> effective_raters(0.0, 2), effective_raters(1.0, 2), effective_raters(0.6, 2)
    (2.0, 1.0, 1.25)
    """
    if raters < 1:
        raise ValueError(f"at least one rater expected, not {raters}")
    if abs(rho) > 1.0:
        raise ValueError(f"a correlation must be in [-1, 1], not {rho:g}")
    inflation = 1.0 + (raters - 1) * rho
    return raters / inflation if inflation > 0.0 else math.nan
