"""AUROC and point-biserial correlation of many features with binary flags, on pairwise complete rows.

x is `(n, F)`, flags is `(n, T)` of 0 and 1 (a vector is one column), NaN where unknown. Results are `(F, T)`; NaN if a
class is empty on the rows that have both. Functions raise ValueError if the numbers of rows differ, or a flag is not 0,
1 or NaN.
"""

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import as_codes, as_pair, complete_blocks
from moot.metrics.rank_correlation import centred_ranks, pearson_matrix, ranks_within


def auroc_matrix(x: npt.ArrayLike, flags: npt.ArrayLike) -> Floats:
    """Directed area under the ROC curve: above 0.5 if a HIGH x predicts flag 1, below if a low x does.

    It is the probability that x is higher in a random flagged row than in a random unflagged one, with ties counting
    one half. With R the rank sum of the P flagged rows, and N unflagged ones: `(R - P (P + 1) / 2) / (P N)`.

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

    It is at least 0.5 even for noise; report it with the directed area, not instead of it.

    >>> folded_auroc([0.2, 0.5, 0.9, np.nan]).tolist()
    [0.8, 0.5, 0.9, nan]
    """
    areas = np.asarray(area, dtype=np.float64)
    return np.maximum(areas, 1.0 - areas)


def point_biserial_matrix(x: npt.ArrayLike, flags: npt.ArrayLike) -> Floats:
    """Point-biserial correlation of features with flags, in [-1, 1]; positive if high x is flagged.

    Also NaN if x does not vary or is infinite, or fewer than three rows have both.

    >>> point_biserial_matrix([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1]).round(4).tolist()
    [[0.8944]]
    """
    return pearson_matrix(*checked_flags(x, flags))


def within_groups_auroc(x: npt.ArrayLike, flags: npt.ArrayLike, groups: npt.ArrayLike) -> Floats:
    """Stratified AUROC: over pairs of a flagged and an unflagged row of the SAME group.

    `sum over groups of U / sum over groups of P N`, with U the Mann-Whitney statistic of a group with P flagged and N
    unflagged rows. A group without both classes has no pairs and does not count.

    Args:
        groups: `(n,)`, group of each row, of any sortable type, such as the opening of a reply.

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
    """Validated features and flags, as float64 matrices."""
    features, targets = as_pair(x, flags)
    if not np.isin(targets[~np.isnan(targets)], (0.0, 1.0)).all():
        raise ValueError("a flag must be 0, 1 or unknown")
    return features, targets
