"""Rank correlations of many features with many targets, each pair on the rows that have both.

Throughout, x is `(n, F)` and y is `(n, T)` (a vector is one column), NaN where unknown; results are `(F, T)`, in
[-1, 1], and NaN where nothing can be said: fewer than three rows have both, or one of the two does not vary on them.
"""

import numpy as np
import numpy.typing as npt

from moot.metrics.concordance import concordance
from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import Block, Numbers, as_codes, as_pair, complete_blocks

LEAST_ROWS = 3
"""With two rows every correlation is -1 or 1."""


def pairwise_n(x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """How many rows have both values, for each column of x and each of y.

    Args:
        x: `(n, F)`, NaN where unknown.
        y: `(n, T)`, the same.

    Returns:
        `(F, T)`, whole numbers.

    Raises:
        ValueError: if they have different numbers of rows.

    >>> pairwise_n([[1.0, np.nan], [2.0, 3.0]], [1.0, 0.0]).tolist()
    [[2], [1]]
    """
    features, targets = as_pair(x, y)
    return np.rint((~np.isnan(features)).T.astype(np.float64) @ (~np.isnan(targets)).astype(np.float64)).astype(
        np.int64
    )


def spearman_matrix(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Spearman's rho: Pearson's correlation of the ranks, tied values sharing their mean rank.

    Raises:
        ValueError: if x and y have different numbers of rows.

    Source: Spearman, "The proof and measurement of association between two things", 1904.

    >>> spearman_matrix([[1.0, 5.0], [2.0, 5.0], [9.0, 5.0]], [1.0, 3.0, 2.0]).round(3).tolist()
    [[0.5], [nan]]
    """
    features, targets = as_pair(x, y)
    found = np.full((features.shape[1], targets.shape[1]), np.nan)
    for block in complete_blocks(features, targets):
        found[np.ix_(block.features, block.targets)] = _correlation(centred_ranks(block.x), centred_ranks(block.y))
    return found


def kendall_matrix(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Kendall's tau-b: concordant less discordant pairs, over the geometric mean of the pairs untied in x and in y.

    Raises:
        ValueError: if x and y have different numbers of rows.

    Source: Kendall, "The treatment of ties in ranking problems", Biometrika 1945.

    >>> kendall_matrix([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]).round(3).tolist()
    [[0.667]]
    """
    counts = concordance(x, y)
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = counts.balance / np.sqrt(counts.pairs - counts.tied_x) / np.sqrt(counts.pairs - counts.tied_y)
    return np.where(counts.pairs >= LEAST_ROWS * (LEAST_ROWS - 1) / 2, np.clip(tau, -1.0, 1.0), np.nan)


def partial_spearman(x: npt.ArrayLike, y: npt.ArrayLike, z: npt.ArrayLike) -> Floats:
    """Spearman's rho of x and y with a covariate (such as the reply's length) held fixed.

    `(r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2))` of the ranks on the rows that have all three, which is
    Pearson's correlation of what a straight line on z's ranks leaves of those of x and of y.

    Args:
        x, y: see the head of this file.
        z: `(n,)`, NaN where unknown. Only its order matters: T and log T are the same covariate.

    Returns:
        `(F, T)`; NaN also where x or y has the order of z, or its opposite, or z does not vary.

    Raises:
        ValueError: if the numbers of rows differ.

    Source: Kendall, "Partial rank correlation", Biometrika 1942, for rho.

    >>> length = [1.0, 2.0, 3.0, 4.0]
    >>> partial_spearman([2.0, 1.0, 4.0, 3.0], [2.0, 1.0, 3.0, 4.0], length).round(3).tolist()
    [[0.667]]
    """
    features, targets = as_pair(x, y)
    covariate = as_pair(features, z)[1]
    if covariate.shape[1] != 1:
        raise ValueError(f"one covariate expected, not {covariate.shape[1]}")
    targets = np.where(np.isnan(covariate), np.nan, targets)
    found = np.full((features.shape[1], targets.shape[1]), np.nan)
    for block in complete_blocks(features, targets):
        ranks = [centred_ranks(values) for values in (block.x, block.y, covariate[block.rows])]
        xy, xz, yz = (_correlation(ranks[a], ranks[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
        left = (1.0 - xz**2) * (1.0 - yz.T**2)
        with np.errstate(invalid="ignore", divide="ignore"):
            partial = (xy - xz * yz.T) / np.sqrt(np.where(left > 1e-12, left, np.nan))
        found[np.ix_(block.features, block.targets)] = np.clip(partial, -1.0, 1.0)
    return found


def within_groups_spearman(x: npt.ArrayLike, y: npt.ArrayLike, groups: npt.ArrayLike) -> Floats:
    """Spearman's rho inside groups (such as replies with one opening): differences between groups do not count.

    Rows are ranked within their group, and ranks divided by the group's size, so that a group counts by its rows;
    then the covariances and the variances are summed over the groups. Without ties and with groups of one size it is
    the mean of the groups' own rho. Groups in which x or y does not vary are left out.

    Args:
        x, y: see the head of this file.
        groups: `(n,)`, of any sortable type.

    Raises:
        ValueError: if the numbers of rows differ.

    >>> within_groups_spearman([1, 2, 3, 8, 9, 7], [1, 2, 3, 2, 3, 1], [0, 0, 0, 1, 1, 1]).round(6).tolist()
    [[1.0]]
    """
    features, targets = as_pair(x, y)
    codes = as_codes(groups, len(features))
    found = np.full((features.shape[1], targets.shape[1]), np.nan)
    for block in complete_blocks(features, targets):
        found[np.ix_(block.features, block.targets)] = _within(block, codes[block.rows])
    return found


def centred_ranks(values: Floats) -> Floats:
    """The ranks of each column less their mean, `(m, columns)`, tied values sharing their mean rank.

    >>> centred_ranks(np.array([[10.0], [20.0], [20.0]])).tolist()
    [[-1.0], [0.5], [0.5]]
    """
    if not len(values):
        return values
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=0) - (len(values) + 1) / 2, dtype=np.float64)


def ranks_within(values: Floats, codes: Numbers) -> Floats:
    """The ranks of each column within groups, from 1, `(m, columns)`, tied values sharing their mean rank.

    Args:
        values: `(m, columns)`, without NaN.
        codes: `(m,)`, the groups, numbered from 0.

    >>> ranks_within(np.array([[5.0], [1.0], [7.0]]), np.array([0, 0, 1])).tolist()
    [[2.0], [1.0], [1.0]]
    """
    if not len(values):
        return values
    from scipy.stats import rankdata

    overall = rankdata(values, axis=0)
    before = np.cumsum(np.bincount(codes)) - np.bincount(codes)
    grouped = rankdata(overall + codes[:, np.newaxis] * (len(values) + 1.0), axis=0)
    return np.asarray(grouped - before[codes][:, np.newaxis], dtype=np.float64)


def _correlation(x: Floats, y: Floats) -> Floats:
    """Pearson's correlation of centred ranks, whose sums are exact: what does not vary has a sum of squares of 0."""
    if len(x) < LEAST_ROWS:
        return np.full((x.shape[1], y.shape[1]), np.nan)
    squares = np.outer((x * x).sum(axis=0), (y * y).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(np.where(squares > 0.0, (x.T @ y) / np.sqrt(squares), np.nan), -1.0, 1.0)


def _within(block: Block, codes: Numbers) -> Floats:
    """The pooled correlation of the ranks within groups."""
    if len(codes) < LEAST_ROWS:
        return np.full((len(block.features), len(block.targets)), np.nan)
    sizes = np.bincount(codes)
    x, y = (
        (ranks_within(values, codes) - (sizes[codes][:, np.newaxis] + 1) / 2) / sizes[codes][:, np.newaxis]
        for values in (block.x, block.y)
    )
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    squares_x, squares_y = (np.add.reduceat((ranks * ranks)[order], starts, axis=0) for ranks in (x, y))
    varies_x, varies_y = squares_x > 0.0, squares_y > 0.0
    both = (squares_x.T @ varies_y) * (varies_x.T @ squares_y)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(np.where(both > 0.0, (x.T @ y) / np.sqrt(both), np.nan), -1.0, 1.0)
