"""Cross-validated feature selection: the best feature of a sweep, evaluated on held-out clusters.

The largest of many statistics is biased upwards (winner's curse); on other data the same feature has no such bias.
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
    """Held-out statistic of the selected features: rho, or for flags the AUROC, in the direction of the training folds.

    Attributes:
        value: `(T,)`, the mean over the folds, each by its weight (known rows; for an AUROC pairs of a flagged and an
            unflagged row). 0 (AUROC: one half) when the choice was noise, below it when the sign is reversed. NaN
            when no fold has one.
        by_fold: `(folds, T)`, NaN where undefined.
        chosen: `(folds, T)`, the number of the feature chosen without that fold; -1 when none had a statistic.
        in_sample: `(T,)`, the best feature's statistic on all rows in its own direction, which is what a table of top
            features shows.
        best: `(T,)`, that feature's number, -1 for none.
        n: `(T,)`, held-out rows that entered `value`.
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
        x: `(n, F)`, NaN where unknown (a vector is one column). Leave out features with few rows: by chance they have
            the largest |statistic|.
        y: `(n, T)`, the same; flags of 0 and 1 for "auroc".
        clusters: `(n,)`, of any sortable type; a cluster is in one fold.
        folds, seed: see `grouped_folds`.
        statistic: "spearman", or "auroc" (chosen by its distance from one half).

    Raises:
        ValueError: for shapes that do not fit, a flag that is none, or fewer clusters than folds.

    Source: Stone, "Cross-validatory choice and assessment of statistical predictions", JRSS B 1974.

    >>> x = np.column_stack([np.arange(20.0) % 7, np.arange(20.0)])
    >>> found = held_out_selection(x, -np.arange(20.0), np.arange(20))
    >>> found.value.tolist(), found.chosen.ravel().tolist(), found.n.tolist()
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
    middle = 0.5 if statistic == "auroc" else 0.0
    return HeldOutSelection(
        value=middle + np.divide(sums, total, out=np.full(shape[1], np.nan), where=total > 0.0),
        by_fold=middle + values,
        chosen=chosen,
        in_sample=middle + in_sample,
        best=best,
        n=np.where(np.isnan(values), 0, rows).sum(axis=0),
    )


def _best(association: Floats) -> tuple[Numbers, Floats, Floats]:
    """Feature with the largest |association| for each target, -1 for none; its sign, and the size."""
    targets = np.arange(association.shape[1])
    size = np.where(np.isnan(association), -1.0, np.abs(association))
    if not len(size):
        return np.full(len(targets), -1), np.ones(len(targets)), np.full(len(targets), np.nan)
    best = size.argmax(axis=0)
    largest = size[best, targets]
    signs = np.where(association[best, targets] < 0.0, -1.0, 1.0)
    return np.where(largest < 0.0, -1, best), signs, np.where(largest < 0.0, np.nan, largest)
