"""Rank correlations of many features with many targets, on pairwise complete rows.

x is `(n, F)` and y is `(n, T)` (a vector is one column), NaN where unknown. Correlations are `(F, T)`, in [-1, 1], and
NaN if fewer than three rows have both values, or one of the two does not vary on them. Functions raise ValueError if
the numbers of rows differ.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats, Values
from moot.metrics.pairwise_complete import CompleteBlock, Numbers, as_codes, as_columns, as_pair, complete_blocks

_MOST_LEVELS = 64
"""Below this many levels pairs are counted per level, in linear time; above, scipy's sorting is faster."""


@dataclass(frozen=True, slots=True)
class Concordance:
    """Counts of concordant, discordant and tied pairs of rows, each `(F, T)`; whole numbers, exact up to 2^53.

    Attributes:
        balance: concordant minus discordant pairs.
        pairs: all pairs, `n (n - 1) / 2`.
        tied_x: pairs with equal x.
        tied_y: pairs with equal y.
    """

    balance: Floats
    pairs: Floats
    tied_x: Floats
    tied_y: Floats


def concordance(x: npt.ArrayLike, y: npt.ArrayLike) -> Concordance:
    """Counts of concordant, discordant and tied pairs for each column of x and each of y.

    If y has few levels (scores), one sort of x gives the number of rows of each level below each row.

    Source: Kendall, "Rank Correlation Methods", 1948; for many levels Knight, JASA 1966 (scipy).

    >>> result = concordance([1.0, 2.0, 3.0, 3.0], [1.0, 1.0, 2.0, 0.0])
    >>> result.balance.item(), result.pairs.item(), result.tied_x.item(), result.tied_y.item()
    (0.0, 6.0, 1.0, 1.0)
    """
    features, targets = as_pair(x, y)
    shape = features.shape[1], targets.shape[1]
    result = Concordance(*(np.zeros(shape) for _ in range(4)))
    for block in complete_blocks(features, targets):
        where = np.ix_(block.features, block.targets)
        levels = [np.unique(column, return_inverse=True)[1] for column in block.y.T]
        result.balance[where] = _balances(block.x, levels)
        result.pairs[where] = len(block.rows) * (len(block.rows) - 1) / 2
        result.tied_x[where] = np.array([_tied_pairs(column) for column in block.x.T])[:, np.newaxis]
        result.tied_y[where] = np.array([_tied_pairs(column) for column in levels])
    return result


def _balances(x: Floats, levels: list[npt.NDArray[np.intp]]) -> Floats:
    """Concordant minus discordant pairs, `(f, t)`, of x `(m, f)` and the levels of each target, from 0."""
    balances = np.zeros((x.shape[1], len(levels)))
    if not len(x):
        return balances
    for feature, column in enumerate(x.T):
        order = np.argsort(column, kind="stable")
        in_order = column[order]
        first_of_ties = np.maximum.accumulate(np.where(np.r_[True, in_order[1:] != in_order[:-1]], range(len(x)), 0))
        for target, level in enumerate(levels):
            few = level.max() < _MOST_LEVELS
            balances[feature, target] = (
                _balance_of_levels(level[order], first_of_ties) if few else _balance_by_sorting(column, level)
            )
    return balances


def _balance_of_levels(level: npt.NDArray[np.intp], first_of_ties: npt.NDArray[np.intp]) -> float:
    """Concordant minus discordant pairs of rows sorted by x.

    Args:
        level: level of y of each row.
        first_of_ties: position of the first row with the same x.
    """
    at_level = np.zeros((len(level) + 1, int(level.max()) + 1))
    at_level[np.arange(1, len(level) + 1), level] = 1.0
    below = np.cumsum(at_level, axis=0)[first_of_ties]  # rows of each level with a smaller x
    number = np.arange(at_level.shape[1])
    return float((np.sign(number[:, np.newaxis] - number) * (at_level[1:].T @ below)).sum())


def _balance_by_sorting(x: Floats, level: npt.NDArray[np.intp]) -> float:
    """Concordant minus discordant pairs, from scipy's tau-b times its denominator."""
    from scipy.stats import kendalltau

    tau = float(kendalltau(x, level, method="asymptotic").statistic)
    pairs = len(x) * (len(x) - 1) / 2
    untied = np.sqrt(pairs - _tied_pairs(x)) * np.sqrt(pairs - _tied_pairs(level))
    return float(np.rint(tau * untied)) if untied else 0.0


def _tied_pairs(values: npt.NDArray[np.float64] | npt.NDArray[np.intp]) -> float:
    """Number of pairs of equal values."""
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1.0)).sum() / 2)


LEAST_ROWS = 3
"""Minimum number of rows: with two, every correlation is -1 or 1."""


def pairwise_n(x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Number of pairwise complete rows, for each column of x and each of y.

    Returns:
        `(F, T)`, whole numbers.

    >>> pairwise_n([[1.0, np.nan], [2.0, 3.0]], [1.0, 0.0]).tolist()
    [[2], [1]]
    """
    features, targets = as_pair(x, y)
    return np.rint((~np.isnan(features)).T.astype(np.float64) @ (~np.isnan(targets)).astype(np.float64)).astype(
        np.int64
    )


def pearson_matrix(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Pearson's correlation of each column of x with each of y.

    Returns:
        `(F, T)`, in [-1, 1]; NaN if fewer than three rows have both values, or x or y does not vary or is infinite on
        them.

    >>> pearson_matrix([[1.0], [2.0], [4.0]], [[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]]).round(6).tolist()
    [[1.0, nan]]
    """
    features, targets = as_pair(x, y)
    result = np.full((features.shape[1], targets.shape[1]), np.nan)
    for block in complete_blocks(features, targets):
        if len(block.rows) >= LEAST_ROWS:
            result[np.ix_(block.features, block.targets)] = np.clip(_unit(block.x).T @ _unit(block.y), -1.0, 1.0)
    return result


def spearman_matrix(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Spearman's rho: Pearson's correlation of the ranks; ties get their mean rank.

    Source: Spearman, "The proof and measurement of association between two things", 1904.

    >>> spearman_matrix([[1.0, 5.0], [2.0, 5.0], [9.0, 5.0]], [1.0, 3.0, 2.0]).round(3).tolist()
    [[0.5], [nan]]
    """
    features, targets = as_pair(x, y)
    result = np.full((features.shape[1], targets.shape[1]), np.nan)
    for block in complete_blocks(features, targets):
        result[np.ix_(block.features, block.targets)] = _correlation(centred_ranks(block.x), centred_ranks(block.y))
    return result


def kendall_matrix(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Kendall's tau-b: concordant minus discordant pairs, over the geometric mean of the pairs untied in x and in y.

    Source: Kendall, "The treatment of ties in ranking problems", Biometrika 1945.

    >>> kendall_matrix([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]).round(3).tolist()
    [[0.667]]
    """
    counts = concordance(x, y)
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = counts.balance / np.sqrt(counts.pairs - counts.tied_x) / np.sqrt(counts.pairs - counts.tied_y)
    return np.where(counts.pairs >= LEAST_ROWS * (LEAST_ROWS - 1) / 2, np.clip(tau, -1.0, 1.0), np.nan)


def partial_spearman(x: npt.ArrayLike, y: npt.ArrayLike, z: npt.ArrayLike) -> Floats:
    """Partial Spearman correlation of x and y, controlling for a covariate (such as the length of the reply).

    `(r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2))` of the ranks, on the rows that have all three. It is
    Pearson's correlation of the residuals of linear regressions of the ranks of x and of y on the ranks of z.

    Args:
        z: `(n,)`, NaN where unknown. Only its order matters: T and log T are the same covariate.

    Returns:
        `(F, T)`; also NaN if z does not vary, or x or y has the order of z or its reverse.

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
    result = np.full((features.shape[1], targets.shape[1]), np.nan)
    for block in complete_blocks(features, targets):
        ranks = [centred_ranks(values) for values in (block.x, block.y, covariate[block.rows])]
        xy, xz, yz = (_correlation(ranks[a], ranks[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
        unexplained = (1.0 - xz**2) * (1.0 - yz.T**2)
        with np.errstate(invalid="ignore", divide="ignore"):
            partial = (xy - xz * yz.T) / np.sqrt(np.where(unexplained > 1e-12, unexplained, np.nan))
        result[np.ix_(block.features, block.targets)] = np.clip(partial, -1.0, 1.0)
    return result


def within_groups_spearman(x: npt.ArrayLike, y: npt.ArrayLike, groups: npt.ArrayLike) -> Floats:
    """Stratified Spearman's rho: within groups (such as replies with the same opening), pooled.

    Rows are ranked within their group, and the ranks are divided by the group's size; covariances and variances are
    then summed over groups, so that each group is weighted by its rows. Without ties and with groups of equal size it
    is the mean of the groups' rho. Groups in which x or y does not vary are left out.

    Args:
        groups: `(n,)`, group of each row, of any sortable type.

    >>> within_groups_spearman([1, 2, 3, 8, 9, 7], [1, 2, 3, 2, 3, 1], [0, 0, 0, 1, 1, 1]).round(6).tolist()
    [[1.0]]
    """
    features, targets = as_pair(x, y)
    codes = as_codes(groups, len(features))
    result = np.full((features.shape[1], targets.shape[1]), np.nan)
    for block in complete_blocks(features, targets):
        result[np.ix_(block.features, block.targets)] = _within(block, codes[block.rows])
    return result


def centred_ranks(values: Floats) -> Floats:
    """Centred mid-ranks of each column, `(m, columns)`; ties get their mean rank.

    >>> centred_ranks(np.array([[10.0], [20.0], [20.0]])).tolist()
    [[-1.0], [0.5], [0.5]]
    """
    if not len(values):
        return values
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=0) - (len(values) + 1) / 2, dtype=np.float64)


def ranks_within(values: Floats, codes: Numbers) -> Floats:
    """Mid-ranks of each column within groups, `(m, columns)`, from 1; ties get their mean rank.

    Args:
        values: `(m, columns)`, without NaN.
        codes: `(m,)`, group of each row, numbered from 0.

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
    """Pearson's correlation of centred ranks. Their sums are exact, so a constant column has a sum of squares of 0."""
    if len(x) < LEAST_ROWS:
        return np.full((x.shape[1], y.shape[1]), np.nan)
    squares = np.outer((x * x).sum(axis=0), (y * y).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(np.where(squares > 0.0, (x.T @ y) / np.sqrt(squares), np.nan), -1.0, 1.0)


def _within(block: CompleteBlock, codes: Numbers) -> Floats:
    """Pooled correlation of the ranks within groups."""
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


def somers_d(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Somers' D of a feature given a score: concordant minus discordant pairs, over the pairs with different scores.

    y is the independent variable: `scipy.stats.somersd(y, x)`. D equals `2 c - 1` with Harrell's concordance index c,
    and for a binary y `2 AUROC - 1`. Pairs with equal x count in the denominator.

    Args:
        x: `(n, F)`, NaN where unknown (a vector is one column).
        y: `(n, T)`, likewise; pairs with equal y are left out.

    Returns:
        `(F, T)`, in [-1, 1]: 1 if x orders every pair with different scores as y does. NaN if no two complete rows have
        different scores.

    Source: Somers, "A new asymmetric measure of association for ordinal variables", 1962.

    >>> somers_d([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 3.0, 3.0]).tolist()
    [[1.0]]
    """
    counts = concordance(x, y)
    differing = counts.pairs - counts.tied_y
    result: Floats = np.divide(counts.balance, differing, out=np.full(differing.shape, np.nan), where=differing > 0.0)
    return result


def spearman_ceiling(y: npt.ArrayLike) -> Values:
    """Maximum of |rho| for a feature without ties, given the ties of the scores.

    `sqrt(1 - sum over levels of (t^3 - t) / (n^3 - n))`, with t the number of scores on a level. A feature that orders
    all replies by score reaches it; a feature with ties at the same rows can exceed it.

    Args:
        y: `(n, T)`, or `(n,)`; NaN is left out.

    Returns:
        `(T,)`, or a float for a vector; in [0, 1]. NaN for fewer than two known scores, or a single level.

    Source: Kendall, "Rank Correlation Methods", 1948, the correction of rho for ties.

    >>> round(spearman_ceiling([3.0] * 930 + [2.0] * 70), 3)  # two levels, all scores tied
    0.442
    """
    scores = as_columns(y)
    ceilings = np.array([_ceiling(column[~np.isnan(column)]) for column in scores.T])
    return ceilings if np.ndim(y) == 2 else float(ceilings[0])


def _ceiling(scores: Floats) -> float:
    """Maximum of |rho| for the known scores of one target."""
    n = float(len(scores))
    counts = np.unique(scores, return_counts=True)[1].astype(np.float64)
    if len(counts) < 2:
        return float("nan")
    return float(np.sqrt(1.0 - (counts**3 - counts).sum() / (n**3 - n)))


def _unit(values: Floats) -> Floats:
    """Each column centred and scaled to length 1; NaN if it does not vary or is not finite."""
    varies = np.isfinite(values).all(axis=0) & (values.max(axis=0) > values.min(axis=0))
    centred = np.where(varies, values, 0.0)
    centred = centred - centred.mean(axis=0)
    length = np.sqrt((centred * centred).sum(axis=0))
    unit: Floats = np.divide(centred, length, out=np.full(values.shape, np.nan), where=varies & (length > 0.0))
    return unit
