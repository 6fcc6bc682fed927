"""Binary detection metrics: AUROC, F1 and accuracy with abstentions, and the correlation of two raters' errors.

Functions raise ValueError for shapes or lengths that do not fit, and for a class, label, error or correlation that is
none.
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
    """Area under the ROC curve (AUROC) of one score: above 0.5 when a HIGH score means positive.

    `auroc_matrix` of one score: below 0.5 when a low score means positive. To test whether a low score (such as a
    confidence) predicts positives (such as errors), negate the score.

    Args:
        score: `(n,)`, any unit, infinities allowed; rows with NaN (or None) are left out.
        is_positive: `(n,)`, True or False (1 or 0); rows with NaN (or None) are left out.

    Returns:
        A number in [0, 1]; NaN when either class is empty.

    >>> auroc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.75
    """
    scores, classes = np.asarray(score, dtype=np.float64), np.asarray(is_positive, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != classes.shape:
        raise ValueError(f"two vectors of one length expected, not {scores.shape} and {classes.shape}")
    return float(auroc_matrix(scores, classes).item())


def macro_f1(truth: Sequence[str | None], predicted: Sequence[str | None], labels: Sequence[str]) -> float:
    """Macro-averaged F1: the mean over labels of `F1 = 2 hits / (2 hits + false alarms + misses)`.

    Args:
        truth: `(n,)`, each case's true label; None when unknown.
        predicted: `(n,)`, each case's answer. None (an abstention) and a text that is no label are wrong answers: a
            miss of the true label, and a false alarm of none.
        labels: the labels to take the mean over, each once.

    Returns:
        A number in [0, 1]. Cases without a known truth are left out. A label that is neither true nor answered anywhere
        has no F1 and is left out of the mean (as in scikit-learn with `zero_division=nan`, not 0); NaN when none is
        left.

    Source: van Rijsbergen, Information Retrieval, 1979; the mean as in Lewis, 1991.

    >>> round(macro_f1(["a", "a", "b"], ["a", None, "b"], ["a", "b", "c"]), 4)
    0.8333
    """
    if len(truth) != len(predicted):
        raise ValueError(f"{len(truth)} true labels but {len(predicted)} answers")
    if len(set(labels)) != len(labels):
        raise ValueError("a label is given twice")
    pairs = [(true, answer) for true, answer in zip(truth, predicted, strict=True) if true is not None]
    if strange := {true for true, _ in pairs} - set(labels):
        raise ValueError(f"the true label {min(strange)!r} is none of the labels")
    occurring = Counter(true for true, _ in pairs)
    answered = Counter(answer for _, answer in pairs)
    hits = Counter(true for true, answer in pairs if true == answer)
    scores = [
        2 * hits[label] / (occurring[label] + answered[label]) for label in labels if occurring[label] + answered[label]
    ]
    return sum(scores) / len(scores) if scores else float("nan")


OUTCOMES = 6
"""Columns of the counts: class 0 called 0, called 1, left open; then class 1 likewise."""


@dataclass(frozen=True, slots=True)
class DetectionFigures:
    """Precision, recall, F1 and accuracy, each in [0, 1]; NaN where the denominator is 0.

    Attributes:
        precision: `(..., 2)`, by class: hits among the cases predicted as the class. NaN when there are none.
        recall: `(..., 2)`, by class: hits among the cases of the class. NaN when there are none.
        f1: `(..., 2)`, by class: `2 hits / (2 hits + false alarms + misses)`; an abstention is a miss and no false
            alarm. NaN when no case has or is predicted the class.
        macro_f1: `(...)`, mean over the classes that have an F1, as in `metrics.detection.macro_f1`.
        accuracy: `(...)`, hits among all cases: an abstention is not a hit.
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
        truth: `(n,)`, the class of each case, 0 or 1; NaN (or None) when unknown: its row is all 0.
        called: `(n,)`, its predicted class, 0 or 1; NaN (or None) for an abstention.

    Returns:
        `(n, 6)`. Sum it, or resample its sums with `metrics.cluster_bootstrap.resampled_sums`.

    >>> detection_outcomes([0, 1, 1], [0, 0, None]).sum(axis=0).tolist()
    [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    """
    classes, calls = np.asarray(truth, dtype=np.float64), np.asarray(called, dtype=np.float64)
    if classes.ndim != 1 or classes.shape != calls.shape:
        raise ValueError(f"two vectors of one length expected, not {classes.shape} and {calls.shape}")
    for given in (classes, calls):
        if not np.isin(given[~np.isnan(given)], (0.0, 1.0)).all():
            raise ValueError("a class is 0, 1 or unknown")
    known = np.flatnonzero(~np.isnan(classes))
    found = np.zeros((len(classes), OUTCOMES))
    column = 3 * classes[known] + np.where(np.isnan(calls[known]), 2.0, calls[known])
    found[known, column.astype(np.intp)] = 1.0
    return found


def detection_figures(counts: npt.ArrayLike) -> DetectionFigures:
    """Precision, recall, F1 and accuracy from counted outcomes.

    Args:
        counts: `(..., 6)`, sums of `detection_outcomes`.

    Source: van Rijsbergen, Information Retrieval, 1979.

    >>> found = detection_figures([8, 2, 0, 1, 8, 1])
    >>> found.recall.tolist(), found.f1.round(3).tolist(), float(found.accuracy)
    ([0.8, 0.8], [0.842, 0.8], 0.8)
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim < 1 or table.shape[-1] != OUTCOMES:
        raise ValueError(f"counts of (..., {OUTCOMES}) expected, not {table.shape}")
    by_class = table.reshape(*table.shape[:-1], 2, 3)
    hits = np.diagonal(by_class[..., :2], axis1=-2, axis2=-1)
    called = by_class[..., :2].sum(axis=-2)
    are = by_class.sum(axis=-1)
    f1 = ratio(2.0 * hits, called + are)
    return DetectionFigures(
        precision=ratio(hits, called),
        recall=ratio(hits, are),
        f1=f1,
        macro_f1=ratio(np.nansum(f1, axis=-1), (~np.isnan(f1)).sum(axis=-1)),
        accuracy=ratio(hits.sum(axis=-1), are.sum(axis=-1)),
    )


def resampled_figures(counts: npt.ArrayLike, resampled: npt.ArrayLike) -> DetectionFigures:
    """Bootstrap resamples of precision, recall, F1 and accuracy, from counted outcomes.

    In a resample without one class the macro F1 would be that of the other class alone, or half of it, a value that the
    data cannot have. So it is NaN there.

    Args:
        counts: `(..., 6)`, of the data themselves.
        resampled: `(resamples, ..., 6)`, of each resample.

    >>> resampled_figures([4, 0, 0, 0, 1, 0], [[5, 0, 0, 0, 0, 0], [3, 0, 0, 0, 2, 0]]).macro_f1.tolist()
    [nan, 1.0]
    """
    figures = detection_figures(resampled)
    lacking = (_of_class(counts) > 0.0) & (_of_class(resampled) == 0.0)
    return replace(figures, macro_f1=np.where(lacking.any(axis=-1), np.nan, figures.macro_f1))


def _of_class(counts: npt.ArrayLike) -> Floats:
    """Number of cases of each class, `(..., 2)`."""
    table = np.asarray(counts, dtype=np.float64)
    sizes: Floats = table.reshape(*table.shape[:-1], 2, 3).sum(axis=-1)
    return sizes


ERROR_PAIRS = 4
"""Columns of the counts: neither errs, only the second, only the first, both."""


def error_pairs(first: npt.ArrayLike | Sequence[bool | None], second: npt.ArrayLike | Sequence[bool | None]) -> Floats:
    """One-hot joint errors of two raters on each case, in the columns of `ERROR_PAIRS`; their sums are the counts.

    Args:
        first, second: `(n,)`, whether each rater errs on each case: True or False (1 or 0); NaN (or None) when unknown.

    Returns:
        `(n, 4)`; a case on which one of the two is unknown has a row of 0. Sum it, or resample its sums with
        `metrics.cluster_bootstrap.resampled_sums`.

    >>> error_pairs([True, True, False], [True, False, None]).sum(axis=0).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    one, other = (np.asarray(errors, dtype=np.float64) for errors in (first, second))
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"two vectors of one length expected, not {one.shape} and {other.shape}")
    for errors in (one, other):
        if not np.isin(errors[~np.isnan(errors)], (0.0, 1.0)).all():
            raise ValueError("an error is true, false or unknown")
    known = np.flatnonzero(~np.isnan(one + other))
    found = np.zeros((len(one), ERROR_PAIRS))
    found[known, (2.0 * one[known] + other[known]).astype(np.intp)] = 1.0
    return found


def error_correlation(counts: npt.ArrayLike) -> Values:
    """Error correlation of two raters: Pearson's correlation of their error indicators (phi coefficient).

    Args:
        counts: `(..., 4)`, sums of `error_pairs`.

    Returns:
        rho, `(...)`, in [-1, 1]: 0 for uncorrelated errors, 1 when both err on the same cases. Its range is narrower
        where their error rates differ. NaN when one of them always errs or never does.

    Source: Pearson, 1900 (the phi coefficient of a table of two by two).

    >>> round(error_correlation([2, 0, 1, 1]), 4)
    0.5774
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim < 1 or table.shape[-1] != ERROR_PAIRS:
        raise ValueError(f"counts of (..., {ERROR_PAIRS}) expected, not {table.shape}")
    neither, only_second, only_first, both = np.moveaxis(table, -1, 0)
    margins = (both + only_first) * (neither + only_second) * (both + only_second) * (neither + only_first)
    apart = both * neither - only_first * only_second
    rho = np.divide(apart, np.sqrt(margins), out=np.full(margins.shape, np.nan), where=margins > 0.0)
    return values(np.clip(rho, -1.0, 1.0))


def effective_raters(rho: float, raters: int) -> float:
    """Effective number of raters: how many independent ones have the VARIANCE of the mean of correlated ones.

    `n / (1 + (n - 1) rho)`, rho the mean correlation of their errors. It measures how much averaging reduces the
    variance of the mean, not how probable a wrong mean is: do not use it in a bound for independent raters, such as
    Hoeffding's.

    Args:
        rho: in [-1, 1]; NaN when unknown.
        raters: n, at least 1.

    Returns:
        A number above 0: n for rho = 0, 1 for rho = 1, more than n for errors that offset each other. NaN when rho is
        unknown, or so far below 0 that no variance would be left (`rho <= -1 / (n - 1)`).

    Source: Kish, Survey Sampling, 1965 (the design effect).

    >>> effective_raters(0.0, 2), effective_raters(1.0, 2), effective_raters(0.6, 2)
    (2.0, 1.0, 1.25)
    """
    if raters < 1:
        raise ValueError(f"at least one rater, not {raters}")
    if abs(rho) > 1.0:
        raise ValueError(f"a correlation lies in [-1, 1], not {rho:g}")
    left = 1.0 + (raters - 1) * rho
    return raters / left if left > 0.0 else math.nan
