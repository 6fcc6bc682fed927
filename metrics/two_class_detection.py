"""How well two classes are told apart by someone who may abstain: precision, recall and F1 of each class, and accuracy.

Neither class is called positive: every figure is given for both, class 0 first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats

OUTCOMES = 6
"""Columns of the counts: class 0 called 0, called 1, left open; then class 1 likewise."""


@dataclass(frozen=True, slots=True)
class DetectionFigures:
    """Figures of a detection, each in [0, 1]; NaN where there is nothing that one could be over.

    Attributes:
        precision: `(..., 2)`, by class: right ones among those called so. NaN when none is called so.
        recall: `(..., 2)`, by class: found ones among those that are so. NaN when none is so.
        f1: `(..., 2)`, by class: `2 hits / (2 hits + false alarms + misses)`; an abstention is a miss and no false
            alarm. NaN when none is so and none is called so.
        macro_f1: `(...)`, mean over the classes that have an F1, as in `metrics.classification.macro_f1`.
        accuracy: `(...)`, right ones among all: an abstention is not right.
    """

    precision: Floats
    recall: Floats
    f1: Floats
    macro_f1: Floats
    accuracy: Floats


def detection_outcomes(
    truth: npt.ArrayLike | Sequence[float | None], called: npt.ArrayLike | Sequence[float | None]
) -> Floats:
    """What became of each case, as a row of `OUTCOMES` columns of which one is 1; the columns' sums are the counts.

    Args:
        truth: `(n,)`, the class of each case, 0 or 1; NaN (or None) when unknown: its row is all 0.
        called: `(n,)`, what it is called, 0 or 1; NaN (or None) for an abstention.

    Returns:
        `(n, 6)`. Sum it, or resample its sums with `metrics.cluster_bootstrap.resampled_sums`.

    Raises:
        ValueError: if the inputs are not two vectors of one length, or hold anything but 0, 1 and unknown.

    >>> detection_outcomes([0, 1, 1], [0, 0, None]).sum(axis=0).tolist()
    [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    """
    classes, calls = np.asarray(truth, dtype=np.float64), np.asarray(called, dtype=np.float64)
    if classes.ndim != 1 or classes.shape != calls.shape:
        raise ValueError(f"two vectors of one length expected, not {classes.shape} and {calls.shape}")
    for values in (classes, calls):
        if not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
            raise ValueError("a class is 0, 1 or unknown")
    known = np.flatnonzero(~np.isnan(classes))
    found = np.zeros((len(classes), OUTCOMES))
    column = 3 * classes[known] + np.where(np.isnan(calls[known]), 2.0, calls[known])
    found[known, column.astype(np.intp)] = 1.0
    return found


def detection_figures(counts: npt.ArrayLike) -> DetectionFigures:
    """The figures of counted outcomes.

    Args:
        counts: `(..., 6)`, sums of `detection_outcomes`.

    Raises:
        ValueError: if the last axis has another length.

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
    f1 = _ratio(2.0 * hits, called + are)
    return DetectionFigures(
        precision=_ratio(hits, called),
        recall=_ratio(hits, are),
        f1=f1,
        macro_f1=_ratio(np.nansum(f1, axis=-1), (~np.isnan(f1)).sum(axis=-1)),
        accuracy=_ratio(hits.sum(axis=-1), are.sum(axis=-1)),
    )


def resampled_figures(counts: npt.ArrayLike, resampled: npt.ArrayLike) -> DetectionFigures:
    """The figures of resamples of counted outcomes.

    A resample that lacks a class has for its macro F1 that of the other class alone, or half of it: no value that the
    data can have. So it is NaN there.

    Args:
        counts: `(..., 6)`, of the data themselves.
        resampled: `(resamples, ..., 6)`, of each resample.

    Raises:
        ValueError: if the last axis has another length.

    >>> resampled_figures([4, 0, 0, 0, 1, 0], [[5, 0, 0, 0, 0, 0], [3, 0, 0, 0, 2, 0]]).macro_f1.tolist()
    [nan, 1.0]
    """
    figures = detection_figures(resampled)
    lacking = (_of_class(counts) > 0.0) & (_of_class(resampled) == 0.0)
    return replace(figures, macro_f1=np.where(lacking.any(axis=-1), np.nan, figures.macro_f1))


def _of_class(counts: npt.ArrayLike) -> Floats:
    """How many cases there are of each class, `(..., 2)`."""
    table = np.asarray(counts, dtype=np.float64)
    sizes: Floats = table.reshape(*table.shape[:-1], 2, 3).sum(axis=-1)
    return sizes


def _ratio(above: npt.ArrayLike, below: npt.ArrayLike) -> Floats:
    one, other = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    found: Floats = np.divide(one, other, out=np.full(one.shape, np.nan), where=other > 0.0)
    return found
