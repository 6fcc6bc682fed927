"""AUROC and point-biserial correlation of many features with binary flags, on pairwise complete rows.

Throughout, x is `(n, F)`, flags is `(n, T)` of 0 and 1 (a vector is one column), NaN where unknown; results are `(F,
T)`, and NaN where one of the classes is empty on the rows that have both. Functions raise ValueError where the numbers
of rows differ, or a flag is neither 0, 1 nor NaN.
"""

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import as_codes, as_pair, complete_blocks
from moot.metrics.rank_correlation import centred_ranks, pearson_matrix, ranks_within


def auroc_matrix(x: npt.ArrayLike, flags: npt.ArrayLike) -> Floats:
    """Directed area under the ROC curve: near 1 when a HIGH x predicts flag 1, near 0 when a low x does.

    The probability that a random flagged row has the higher x than a random unflagged one, ties counting one half;
    from the rank sum of the flagged rows, `(R - P (P + 1) / 2) / (P N)`.

    Source: Hanley and McNeil, Radiology 1982.

    >>> auroc_matrix([[0.1], [0.4], [0.35], [0.8]], [0, 0, 1, 1]).tolist()
    [[0.75]]
    """
    features, targets = checked_flags(x, flags)
    result = np.full((features.shape[1], targets.shape[1]), np.nan)
    for block in complete_blocks(features, targets):
        flagged = block.y.sum(axis=0)
        pairs = flagged * (len(block.y) - flagged)
        with np.errstate(invalid="ignore", divide="ignore"):
            area = 0.5 + (centred_ranks(block.x).T @ block.y) / np.where(pairs > 0.0, pairs, np.nan)
        result[np.ix_(block.features, block.targets)] = area
    return result


def folded_auroc(area: npt.ArrayLike) -> Floats:
    """Undirected (folded) area under the ROC curve: `max(A, 1 - A)`, in [0.5, 1].

    It is never below one half even for noise, so it complements the directed area and does not replace it.

    >>> folded_auroc([0.2, 0.5, 0.9, np.nan]).tolist()
    [0.8, 0.5, 0.9, nan]
    """
    areas = np.asarray(area, dtype=np.float64)
    return np.maximum(areas, 1.0 - areas)


def point_biserial_matrix(x: npt.ArrayLike, flags: npt.ArrayLike) -> Floats:
    """Point-biserial correlation of features with flags of 0 and 1, in [-1, 1]; above 0 when high x is flagged.

    NaN also where x does not vary, is infinite, or fewer than three rows have both.

    >>> point_biserial_matrix([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1]).round(4).tolist()
    [[0.8944]]
    """
    return pearson_matrix(*checked_flags(x, flags))


def within_groups_auroc(x: npt.ArrayLike, flags: npt.ArrayLike, groups: npt.ArrayLike) -> Floats:
    """Stratified AUROC: over pairs of a flagged and an unflagged row of ONE group (such as replies with one opening).

    `sum over groups of U / sum over groups of P N`: a group without both classes has no pair and does not count.

    Args:
        groups: `(n,)`, of any sortable type.

    >>> within_groups_auroc([1.0, 2.0, 8.0, 7.0], [0, 1, 0, 1], [0, 0, 1, 1]).tolist()
    [[0.5]]
    """
    features, targets = checked_flags(x, flags)
    codes = as_codes(groups, len(features))
    result = np.full((features.shape[1], targets.shape[1]), np.nan)
    for block in complete_blocks(features, targets):
        code = codes[block.rows]
        size = np.bincount(code).astype(np.float64)
        flagged = np.stack([np.bincount(code, flag, len(size)) for flag in block.y.T], axis=1)
        pairs = (flagged * (size[:, np.newaxis] - flagged)).sum(axis=0)
        wins = ranks_within(block.x, code).T @ block.y - (flagged * (flagged + 1.0)).sum(axis=0) / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            result[np.ix_(block.features, block.targets)] = wins / np.where(pairs > 0.0, pairs, np.nan)
    return result


def checked_flags(x: npt.ArrayLike, flags: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Features and flags, validated, as float64 columns."""
    features, targets = as_pair(x, flags)
    if not np.isin(targets[~np.isnan(targets)], (0.0, 1.0)).all():
        raise ValueError("a flag is 0, 1 or unknown")
    return features, targets
