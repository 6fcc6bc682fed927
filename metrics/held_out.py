"""Cross-validated feature selection: the best of many features, evaluated on held-out clusters.

The maximum of many statistics is biased upwards (winner's curse); the statistic of the selected feature on held-out
data is not.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.class_separation import auroc_matrix, checked_flags
from moot.metrics.cluster_permutation import Statistic
from moot.metrics.distribution import Floats
from moot.metrics.logistic_regression import grouped_folds
from moot.metrics.pairwise_complete import Numbers, as_pair
from moot.metrics.rank_correlation import spearman_matrix

_MEASURES: dict[Statistic, Callable[[Floats, Floats], Floats]] = {
    "spearman": spearman_matrix,
    "auroc": lambda x, flags: auroc_matrix(x, flags) - 0.5,
}


@dataclass(frozen=True, slots=True)
class HeldOutSelection:
    """Held-out statistic of the selected features, rho or AUROC, oriented by the sign in the training folds.

    Attributes:
        value: `(T,)`, weighted mean over the folds; the weight is the number of known rows or, for AUROC, of pairs of a
            positive and a negative row. About 0 (AUROC: 0.5) if the selection fitted noise, below it if the sign is
            reversed. NaN if no fold has a value.
        by_fold: `(folds, T)`, NaN where undefined.
        chosen: `(folds, T)`, index of the feature selected without that fold; -1 if none has a statistic.
        in_sample: `(T,)`, statistic of the best feature on all rows, oriented by its own sign, as in a table of top
            features.
        best: `(T,)`, index of that feature; -1 for none.
        n: `(T,)`, number of held-out rows in `value`.
    """

    value: Floats
    by_fold: Floats
    chosen: Numbers
    in_sample: Floats
    best: Numbers
    n: npt.NDArray[np.int64]


def held_out_selection(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    clusters: npt.ArrayLike,
    folds: int = 5,
    seed: int = 0,
    statistic: Statistic = "spearman",
) -> HeldOutSelection:
    """Cross-validated selection of the feature with the largest |statistic|, evaluated on each held-out fold.

    Args:
        x: `(n, F)`, NaN where unknown (a vector is one column). Leave out features with few known rows: by chance they
            have the largest |statistic|.
        y: `(n, T)`, likewise; 0 and 1 for "auroc".
        clusters: `(n,)`, cluster of each row, of any sortable type; each cluster is in one fold.
        folds, seed: see `moot.metrics.logistic_regression.grouped_folds`.
        statistic: "spearman", or "auroc" (selected by its distance from 0.5).

    Raises:
        ValueError: for incompatible shapes, a flag that is not 0, 1 or NaN, or fewer clusters than folds.

    Source: Stone, "Cross-validatory choice and assessment of statistical predictions", JRSS B 1974.

    >>> x = np.column_stack([np.arange(20.0) % 7, np.arange(20.0)])
    >>> result = held_out_selection(x, -np.arange(20.0), np.arange(20))
    >>> result.value.tolist(), result.chosen.ravel().tolist(), result.n.tolist()
    ([1.0], [1, 1, 1, 1, 1], [20])
    """
    features, targets = checked_flags(x, y) if statistic == "auroc" else as_pair(x, y)
    measure = _MEASURES[statistic]
    fold = grouped_folds(clusters, folds, seed)
    if len(fold) != len(features):
        raise ValueError(f"{len(fold)} clusters for {len(features)} rows")
    shape = folds, targets.shape[1]
    values, weights, rows = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    chosen = np.full(shape, -1, dtype=np.intp)
    for number in range(folds):
        out = fold == number
        chosen[number], signs, _ = _best(measure(features[~out], targets[~out]))
        for target in np.flatnonzero(chosen[number] >= 0):
            feature, scores = features[out, chosen[number, target]], targets[out, target]
            values[number, target] = signs[target] * measure(feature[:, np.newaxis], scores[:, np.newaxis]).item()
            known = scores[~np.isnan(feature) & ~np.isnan(scores)]
            rows[number, target] = len(known)
            weights[number, target] = (known == 0).sum() * (known == 1).sum() if statistic == "auroc" else len(known)
    best, _, in_sample = _best(measure(features, targets))
    weights = np.where(np.isnan(values), 0.0, weights)
    total = weights.sum(axis=0)
    sums = (np.nan_to_num(values) * weights).sum(axis=0)
    null_value = 0.5 if statistic == "auroc" else 0.0
    return HeldOutSelection(
        value=null_value + np.divide(sums, total, out=np.full(shape[1], np.nan), where=total > 0.0),
        by_fold=null_value + values,
        chosen=chosen,
        in_sample=null_value + in_sample,
        best=best,
        n=np.where(np.isnan(values), 0, rows).sum(axis=0),
    )


def _best(association: Floats) -> tuple[Numbers, Floats, Floats]:
    """Index of the feature with the largest |association| for each target (-1 for none), its sign, and its size."""
    targets = np.arange(association.shape[1])
    size = np.where(np.isnan(association), -1.0, np.abs(association))
    if not len(size):
        return np.full(len(targets), -1), np.ones(len(targets)), np.full(len(targets), np.nan)
    best = size.argmax(axis=0)
    largest = size[best, targets]
    signs = np.where(association[best, targets] < 0.0, -1.0, 1.0)
    return np.where(largest < 0.0, -1, best), signs, np.where(largest < 0.0, np.nan, largest)
