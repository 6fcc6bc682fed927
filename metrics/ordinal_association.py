"""Association with scores that have few levels, in measures that many ties do not hold down.

When most replies have the highest score, no feature can have a rank correlation near 1 with it; roles with different
score distributions are compared by what is asked of pairs with DIFFERENT scores only.
"""

import numpy as np
import numpy.typing as npt

from moot.metrics.concordance import concordance
from moot.metrics.distribution import Floats, Values
from moot.metrics.pairwise_complete import as_columns


def somers_d(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Somers' D of a feature about a score: concordant less discordant pairs, over the pairs with different scores.

    y is the independent variable of Somers' naming: `scipy.stats.somersd(y, x)`. It is `2 c - 1` of Harrell's
    concordance index c, and for a flag `2 AUROC - 1`. Pairs with equal x count in the denominator.

    Args:
        x: `(n, F)`, NaN where unknown (a vector is one column).
        y: `(n, T)`, the same; its pairs with equal values are left out.

    Returns:
        `(F, T)`, in [-1, 1]: 1 when every pair with different scores is ordered alike. NaN where no two rows that have
        both have different scores.

    Raises:
        ValueError: if they have different numbers of rows.

    Source: Somers, "A new asymmetric measure of association for ordinal variables", 1962.

    >>> somers_d([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 3.0, 3.0]).tolist()
    [[1.0]]
    """
    counts = concordance(x, y)
    differing = counts.pairs - counts.tied_y
    found: Floats = np.divide(counts.balance, differing, out=np.full(differing.shape, np.nan), where=differing > 0.0)
    return found


def spearman_ceiling(y: npt.ArrayLike) -> Values:
    """The largest |rho| that a feature without ties can have with scores tied as these.

    `sqrt(1 - sum over levels of (t^3 - t) / (n^3 - n))`: of a feature that orders all replies by score, which is the
    share of its ranks' spread that the scores have. A feature with ties at the same places could have more.

    Args:
        y: `(n, T)`, or `(n,)`; NaN is left out.

    Returns:
        `(T,)`, or a float for a vector; in [0, 1], NaN for fewer than two known scores or a single level.

    Source: Kendall, "Rank Correlation Methods", 1948, the correction of rho for ties.

    >>> round(spearman_ceiling([3.0] * 930 + [2.0] * 70), 3)  # every score of the minority tied, too
    0.442
    """
    scores = as_columns(y)
    ceilings = np.array([_ceiling(column[~np.isnan(column)]) for column in scores.T])
    return ceilings if np.ndim(y) == 2 else float(ceilings[0])


def _ceiling(scores: Floats) -> float:
    """Of the known scores of one target."""
    n = float(len(scores))
    counts = np.unique(scores, return_counts=True)[1].astype(np.float64)
    if len(counts) < 2:
        return float("nan")
    return float(np.sqrt(1.0 - (counts**3 - counts).sum() / (n**3 - n)))
