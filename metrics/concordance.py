"""Pairs of rows that x and y order alike, and pairs that they order differently."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import as_pair, complete_blocks

_MOST_LEVELS = 64
"""Up to which pairs are counted per level, in time proportional to their number; beyond, scipy's sorting is faster."""


@dataclass(frozen=True, slots=True)
class Concordance:
    """Counts of unordered pairs of rows, each `(F, T)`; whole numbers, exact up to 2^53.

    Attributes:
        balance: concordant pairs less discordant ones.
        pairs: `n (n - 1) / 2`.
        tied_x: pairs with equal x.
        tied_y: pairs with equal y.
    """

    balance: Floats
    pairs: Floats
    tied_x: Floats
    tied_y: Floats


def concordance(x: npt.ArrayLike, y: npt.ArrayLike) -> Concordance:
    """The counts for each column of x and each of y, on the rows that have both.

    With y of few levels (scores) one sort of x counts them all: how many rows of each level stand below each row.

    Args:
        x: `(n, F)`, NaN where unknown.
        y: `(n, T)`, the same.

    Raises:
        ValueError: if they have different numbers of rows.

    Source: Kendall, "Rank Correlation Methods", 1948; Knight, JASA 1966, for many levels (scipy).

    >>> found = concordance([1.0, 2.0, 3.0, 3.0], [1.0, 1.0, 2.0, 0.0])
    >>> found.balance.item(), found.pairs.item(), found.tied_x.item(), found.tied_y.item()
    (0.0, 6.0, 1.0, 1.0)
    """
    features, targets = as_pair(x, y)
    shape = features.shape[1], targets.shape[1]
    found = Concordance(*(np.zeros(shape) for _ in range(4)))
    for block in complete_blocks(features, targets):
        where = np.ix_(block.features, block.targets)
        levels = [np.unique(column, return_inverse=True)[1] for column in block.y.T]
        found.balance[where] = _balances(block.x, levels)
        found.pairs[where] = len(block.rows) * (len(block.rows) - 1) / 2
        found.tied_x[where] = np.array([_tied_pairs(column) for column in block.x.T])[:, np.newaxis]
        found.tied_y[where] = np.array([_tied_pairs(column) for column in levels])
    return found


def _balances(x: Floats, levels: list[npt.NDArray[np.intp]]) -> Floats:
    """Concordant less discordant pairs, `(f, t)`, of x `(m, f)` with the levels of each target, numbered from 0."""
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
    """Of rows in the order of x: their level of y, and the place of the first row with the same x."""
    at_level = np.zeros((len(level) + 1, int(level.max()) + 1))
    at_level[np.arange(1, len(level) + 1), level] = 1.0
    below = np.cumsum(at_level, axis=0)[first_of_ties]  # rows of each level with a smaller x
    number = np.arange(at_level.shape[1])
    return float((np.sign(number[:, np.newaxis] - number) * (at_level[1:].T @ below)).sum())


def _balance_by_sorting(x: Floats, level: npt.NDArray[np.intp]) -> float:
    """scipy's tau-b with its denominators taken back: a whole number but for rounding."""
    from scipy.stats import kendalltau

    tau = float(kendalltau(x, level, method="asymptotic").statistic)
    pairs = len(x) * (len(x) - 1) / 2
    untied = np.sqrt(pairs - _tied_pairs(x)) * np.sqrt(pairs - _tied_pairs(level))
    return float(np.rint(tau * untied)) if untied else 0.0


def _tied_pairs(values: npt.NDArray[np.float64] | npt.NDArray[np.intp]) -> float:
    """Pairs of equal values."""
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1.0)).sum() / 2)
