"""Krippendorff's alpha: agreement of any number of raters, some of whose ratings may be missing, beyond chance."""

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from moot.metrics.cluster_bootstrap import cluster_weights
from moot.metrics.distribution import Floats
from moot.metrics.rating_counts import RatingCounts, rating_counts

Level = Literal["nominal", "ordinal", "interval"]
"""What the levels are: names, an order, or numbers whose differences mean something."""

_NUMBERS = 2**21  # held at once, per array


def krippendorff_alpha(ratings: npt.ArrayLike, level: Level) -> float:
    """Alpha, `1 - D_o / D_e`: observed disagreement over that of ratings paired at random.

    With `n_uc` of the `m_u` raters of unit u on level c, `n_c = sum_u n_uc` and `n = sum_c n_c` over units with
    `m_u >= 2`, and a distance d of levels:
    `D_o = sum_u sum_cd n_uc (n_ud - [c = d]) d(c, d)^2 / (m_u - 1) / n`,
    `D_e = sum_cd n_c n_d d(c, d)^2 / (n (n - 1))`. Squared distances are 1 for other names (nominal), `(c - d)^2`
    (interval), and `(sum of n_g from c to d - (n_c + n_d) / 2)^2` (ordinal), which is the squared difference of the
    levels' mean ranks: an ordinal alpha is an interval alpha of ranks.

    Alpha falls with prevalence: where nearly all ratings are on one level, chance agrees nearly always and a few
    disagreements make it small however high the raw agreement is. Show `raw_agreement` and `gwet_ac2` beside it.

    Args:
        ratings: `(raters, units)`, NaN for missing. The raters of a unit need not be those of another.
        level: `nominal`, `ordinal` or `interval`.

    Returns:
        At most 1 (no disagreement), 0 for chance, below it for systematic disagreement. NaN where it is undefined: no
        unit with two ratings, or all such ratings on one level.

    Raises:
        ValueError: if the ratings are no matrix, one is infinite, or there is no such level.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011.

    >>> round(krippendorff_alpha([[1, 2, 3, 3], [1, 2, 3, 2], [float("nan"), 2, 3, 3]], "nominal"), 4)
    0.7368
    """
    counted = rating_counts(ratings)
    return float(_alphas(counted, level, np.ones((1, len(counted.raters))))[0])


def bootstrap_alpha(
    ratings: npt.ArrayLike, level: Level, clusters: npt.ArrayLike, resamples: int, seed: int = 0
) -> Floats:
    """Alpha of resamples in which whole clusters of units are drawn with replacement; ranks are made anew in each.

    Args:
        ratings: `(raters, units)`, as for `krippendorff_alpha`.
        level: `nominal`, `ordinal` or `interval`.
        clusters: `(units,)`, of any sortable type; units of one cluster (one case) stay together.
        resamples: how many.
        seed: of the draws.

    Returns:
        `(resamples,)`; NaN for a resample in which alpha is undefined.

    Raises:
        ValueError: as `krippendorff_alpha`, for no unit or no resample, or if there is not one cluster per unit.
    """
    counted = rating_counts(ratings)
    drawn = np.asarray(clusters)
    if drawn.shape != counted.raters.shape:
        raise ValueError(f"{len(counted.raters)} units but clusters of shape {drawn.shape}")
    return _alphas(counted, level, cluster_weights(drawn, resamples, seed).astype(np.float64))


def _alphas(counted: RatingCounts, level: Level, weights: Floats) -> Floats:
    """Alpha for each row of `(resamples, units)` multiplicities."""
    if level not in get_args(Level):
        raise ValueError(f"a level is one of {', '.join(get_args(Level))}, not {level!r}")
    pairable = counted.pairable()
    counts, raters = counted.counts[pairable], counted.raters[pairable]
    found = np.full(len(weights), np.nan)
    if not counts.size:
        return found
    step = max(1, _NUMBERS // len(raters))
    for start in range(0, len(weights), step):
        drawn = weights[start : start + step, pairable]
        totals = drawn @ counts
        scores = _scores(level, counted.levels, totals)
        observed = (drawn * _disagreement(counts, scores) / (raters - 1.0)).sum(axis=1)
        expected = _total_disagreement(totals, scores)
        defined = (totals > 0.0).sum(axis=1) >= 2
        ratio = np.divide(observed, expected, out=np.full(len(totals), np.nan), where=defined)
        found[start : start + step] = 1.0 - (totals.sum(axis=1) - 1.0) * ratio
    return found


def _disagreement(counts: Floats, scores: Floats | None) -> Floats:
    """Sum of squared distances over each unit's ordered pairs of ratings, `(resamples or 1, units)`.

    Of m ratings on scores s that is `2 (m sum s^2 - (sum s)^2)`; of names `m^2 - sum n_c^2`.

    Args:
        counts: `(units, levels)`.
        scores: `(resamples or 1, levels)`; None for names.
    """
    raters = counts.sum(axis=1)
    if scores is None:
        return np.asarray(raters**2 - (counts**2).sum(axis=1))[np.newaxis, :]
    return np.asarray(2.0 * (raters * (scores**2 @ counts.T) - (scores @ counts.T) ** 2))


def _total_disagreement(totals: Floats, scores: Floats | None) -> Floats:
    """The same over all ordered pairs of ratings whatever their unit, `(resamples,)` from `(resamples, levels)`."""
    n = totals.sum(axis=1)
    if scores is None:
        return np.asarray(n**2 - (totals**2).sum(axis=1))
    return np.asarray(2.0 * (n * (totals * scores**2).sum(axis=1) - (totals * scores).sum(axis=1) ** 2))


def _scores(level: Level, levels: Floats, totals: Floats) -> Floats | None:
    """What squared distances are of, `(resamples or 1, levels)`; None for names, which are alike or not."""
    if level == "nominal":
        return None
    if level == "ordinal":
        return np.asarray(np.cumsum(totals, axis=1) - totals / 2.0)  # mean ranks
    # About 0, so that large levels with small differences lose no digits.
    return np.asarray(levels - levels.mean())[np.newaxis, :]
