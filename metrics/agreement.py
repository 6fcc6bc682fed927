"""Inter-rater agreement with missing ratings: raw agreement, Krippendorff's alpha, Gwet's AC1 and AC2.

Ratings are matrices `(raters, units)`, NaN where missing. Categories are all values that a rater could give. Functions
raise ValueError if the ratings are not a matrix, a rating is infinite or not among the categories, or a category occurs
twice.

Intervals are 95 % intervals of the cluster jackknife, as pairs of ends: see `moot.metrics.jackknife`, also for when the
ends are NaN. `clusters`, `(units,)` of any sortable type, is the cluster of each unit, such as its case. ValueError is
raised for no units, and for a different number of clusters than of units.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats, ratio
from moot.metrics.jackknife import Ends, coefficient_interval, left_out_weights

Level = Literal["nominal", "ordinal", "interval"]
"""Level of measurement: nominal, ordinal, or interval (differences are meaningful)."""

Weights = Literal["identity", "ordinal", "quadratic", "linear"]
"""Weighting scheme: the partial credit for unequal ratings."""

_MAX_ELEMENTS = 2**21  # of one array in memory


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of ratings per unit and category.

    Attributes:
        levels: `(k,)`, ascending.
        counts: `(units, k)`, number of raters who chose the level for the unit.
        raters: `(units,)`, number of raters of the unit; fewer than two give no information on agreement.
    """

    levels: Floats
    counts: Floats
    raters: Floats

    @classmethod
    def of(cls, ratings: npt.ArrayLike, levels: Sequence[float] | None = None) -> "_Counts":
        given = np.asarray(ratings, dtype=np.float64)
        if given.ndim != 2:
            raise ValueError(f"a matrix of raters x units expected, not {given.shape}")
        rated = ~np.isnan(given)
        if np.isinf(given).any():
            raise ValueError("a rating is infinite; a missing one is NaN")
        possible = np.unique(given[rated] if levels is None else np.asarray(levels, dtype=np.float64))
        if levels is not None and len(possible) != len(levels):
            raise ValueError("a level is listed twice")
        if not np.isin(given[rated], possible).all():
            raise ValueError(f"a rating is not one of the levels {', '.join(f'{level:g}' for level in possible)}")
        counts = (given[:, :, np.newaxis] == possible).sum(axis=0)
        return cls(possible, counts.astype(np.float64), rated.sum(axis=0).astype(np.float64))

    def left_out_weights(self, clusters: npt.ArrayLike) -> Floats:
        """Weights of the units without each cluster, `(clusters or blocks, units)`."""
        given = np.asarray(clusters)
        if given.shape != self.raters.shape:
            raise ValueError(f"{len(self.raters)} units but clusters of shape {given.shape}")
        return left_out_weights(given).astype(np.float64)

    def unit_weights(self) -> Floats:
        """Weights of the original sample: 1 for each unit."""
        return np.ones((1, len(self.raters)))


def krippendorff_alpha(ratings: npt.ArrayLike, level: Level) -> float:
    """Krippendorff's alpha, `1 - D_o / D_e`: observed disagreement relative to the disagreement expected by chance.

    Only units with at least two ratings count. With `m_u` the number of ratings of unit u, `n_uc` of them on level c,
    `n_c = sum_u n_uc`, `n = sum_c n_c` and a distance d between levels: `D_o = sum_u sum_cd n_uc (n_ud - [c = d]) d(c,
    d)^2 / (m_u - 1) / n` and `D_e = sum_cd n_c n_d d(c, d)^2 / (n (n - 1))`. The squared distance is 1 between
    different levels (nominal), `(c - d)^2` (interval), or `(sum of n_g from c to d - (n_c + n_d) / 2)^2` (ordinal). The
    last is the squared difference of mean ranks: ordinal alpha is interval alpha of the ranks.

    Alpha depends on prevalence. If nearly all ratings are on one level, chance agreement is near 1, and a few
    disagreements make alpha small even if raw agreement is high. Report `raw_agreement` and `gwet_ac2` with it.

    Returns:
        At most 1 (no disagreement); 0 for chance agreement; negative for systematic disagreement. NaN if no unit has
        two ratings, or all such ratings are on one level.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011.

    >>> round(krippendorff_alpha([[1, 2, 3, 3], [1, 2, 3, 2], [float("nan"), 2, 3, 3]], "nominal"), 4)
    0.7368
    """
    counted = _Counts.of(ratings)
    return float(_alphas(counted, level, counted.unit_weights())[0])


def alpha_interval(ratings: npt.ArrayLike, level: Level, clusters: npt.ArrayLike) -> Ends:
    """Confidence interval of Krippendorff's alpha; the units left are ranked again."""
    counted = _Counts.of(ratings)
    left_out = _alphas(counted, level, counted.left_out_weights(clusters))
    return _interval(left_out, krippendorff_alpha(ratings, level))


def agreement_weights(categories: Sequence[float], weights: Weights) -> Floats:
    """Agreement weights of each pair of categories, `(q, q)`: 1 on the diagonal, 0 for the two extremes.

    With x the categories in ascending order and i, j their positions: `identity` is `[i = j]`, `linear` is `1 - |x_i -
    x_j| / range`, `quadratic` is `1 - (x_i - x_j)^2 / range^2`, and `ordinal`, which uses only the order, is `1 - C(|i
    - j| + 1, 2) / C(q, 2)`.

    Args:
        categories: `(q,)`, ascending; their order is not checked.

    Raises:
        ValueError: for fewer than two categories, or an unknown scheme.

    Source: Gwet, Handbook of Inter-Rater Reliability, 4th edition, 2014, section 3.5.

    >>> agreement_weights([1, 2, 3], "ordinal").round(3).tolist()
    [[1.0, 0.667, 0.0], [0.667, 1.0, 0.667], [0.0, 0.667, 1.0]]
    """
    x = np.asarray(categories, dtype=np.float64)
    if len(x) < 2:
        raise ValueError("at least two categories expected")
    steps = np.abs(np.subtract.outer(np.arange(len(x)), np.arange(len(x))))
    differences = np.abs(np.subtract.outer(x, x)) / (x.max() - x.min())
    distances: dict[Weights, Floats] = {
        "identity": (steps > 0).astype(np.float64),
        "linear": differences,
        "quadratic": differences**2,
        "ordinal": steps * (steps + 1) / (len(x) * (len(x) - 1)),
    }
    if weights not in distances:
        raise ValueError(f"weights must be one of {', '.join(get_args(Weights))}, not {weights!r}")
    return np.asarray(1.0 - distances[weights])


def raw_agreement(
    ratings: npt.ArrayLike, weights: Weights = "identity", categories: Sequence[float] | None = None
) -> float:
    """Raw agreement: the mean pairwise agreement per unit, not corrected for chance.

    `p_a = mean over units with m >= 2 of sum_k n_k (sum_l w_kl n_l - 1) / (m (m - 1))`. With identity weights it is the
    proportion of equal pairs of ratings, averaged over units. Other weights require `categories`.

    Returns:
        In [0, 1]; NaN if no unit has two ratings.

    Source: Gwet, Handbook of Inter-Rater Reliability, 4th edition, 2014, equation 3.30.

    >>> raw_agreement([[1, 2, 2], [1, 2, 3]])
    0.6666666666666666
    """
    counted, agreement = _weighted(ratings, categories, weights)
    return float(_agreements(counted, agreement, counted.unit_weights())[0])


def raw_agreement_interval(
    ratings: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    weights: Weights = "identity",
    categories: Sequence[float] | None = None,
) -> Ends:
    """Confidence interval of raw agreement."""
    counted, agreement = _weighted(ratings, categories, weights)
    left_out = _agreements(counted, agreement, counted.left_out_weights(clusters))
    return _interval(left_out, raw_agreement(ratings, weights, categories), lowest=0.0)


def gwet_ac2(ratings: npt.ArrayLike, categories: Sequence[float], weights: Weights) -> float:
    """Gwet's AC2, `(p_a - p_e) / (1 - p_e)`; with identity weights (nominal categories) it is AC1.

    `p_a` is `raw_agreement`. `p_e = T / (q (q - 1)) sum_k pi_k (1 - pi_k)`, with T the sum of the weights and `pi_k`
    the mean over rated units of the proportion of the unit's ratings in category k. Unused categories count in q. The
    model of chance is that raters guess only where they are unsure. `p_e` therefore vanishes as one category prevails,
    and AC2 approaches raw agreement, while alpha and kappa fall to 0.

    Returns:
        At most 1; 0 for chance agreement, negative below it. NaN if no unit has two ratings.

    Source: Gwet, Handbook of Inter-Rater Reliability, 4th edition, 2014, chapter 3; Gwet, BJMSP 2008.

    >>> nearly_all_one = [[1] * 98 + [2, 1], [1] * 98 + [1, 2]]
    >>> round(gwet_ac2(nearly_all_one, [1, 2], "identity"), 3), raw_agreement(nearly_all_one)
    (0.98, 0.98)
    """
    counted, agreement = _weighted(ratings, categories, weights)
    return float(_coefficients(counted, agreement, counted.unit_weights())[0])


def ac2_interval(
    ratings: npt.ArrayLike, categories: Sequence[float], weights: Weights, clusters: npt.ArrayLike
) -> Ends:
    """Confidence interval of Gwet's AC2."""
    counted, agreement = _weighted(ratings, categories, weights)
    left_out = _coefficients(counted, agreement, counted.left_out_weights(clusters))
    return _interval(left_out, gwet_ac2(ratings, categories, weights))


def rater_interval(
    statistic: Callable[[Floats], float],
    ratings: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    lowest: float = -1.0,
) -> Ends:
    """Confidence interval of any coefficient of a rating matrix, such as a weighted kappa of two raters.

    Args:
        statistic: function of the ratings `(raters, units)` of some units; returns NaN if undefined.
        lowest: lower bound of the coefficient; its upper bound is 1.

    >>> def equal(pair: Floats) -> float:
    ...     return float((pair[0] == pair[1]).mean())
    >>> low, high = rater_interval(equal, [[1, 2] * 20, [1, 1] * 20], range(40), lowest=0.0)
    >>> 0.3 < low < 0.5 < high < 0.7
    True
    """
    given = np.asarray(ratings, dtype=np.float64)
    if given.ndim != 2 or np.shape(clusters) != given.shape[1:]:
        raise ValueError(f"raters x units and a cluster per unit expected, not {given.shape} and {np.shape(clusters)}")
    left_out = np.array([statistic(given[:, kept > 0]) for kept in left_out_weights(clusters)])
    return _interval(left_out, statistic(given), lowest=lowest)


def _interval(left_out: Floats, observed: float, *, lowest: float = -1.0) -> Ends:
    low, high = coefficient_interval(left_out, observed, lowest=lowest)
    return float(low), float(high)


def _alphas(counted: _Counts, level: Level, weights: Floats) -> Floats:
    """Alpha for each row of weights `(rows, units)`."""
    if level not in get_args(Level):
        raise ValueError(f"a level must be one of {', '.join(get_args(Level))}, not {level!r}")
    pairable = counted.raters >= 2.0
    counts, raters = counted.counts[pairable], counted.raters[pairable]
    result = np.full(len(weights), np.nan)
    if not counts.size:
        return result
    step = max(1, _MAX_ELEMENTS // len(raters))
    for start in range(0, len(weights), step):
        drawn = weights[start : start + step, pairable]
        totals = drawn @ counts
        scores = _scores(level, counted.levels, totals)
        observed = (drawn * _disagreement(counts, scores) / (raters - 1.0)).sum(axis=1)
        expected = _total_disagreement(totals, scores)
        defined = (totals > 0.0).sum(axis=1) >= 2
        quotient = np.divide(observed, expected, out=np.full(len(totals), np.nan), where=defined)
        result[start : start + step] = 1.0 - (totals.sum(axis=1) - 1.0) * quotient
    return result


def _disagreement(counts: Floats, scores: Floats | None) -> Floats:
    """Sum of squared distances over each unit's ordered pairs of ratings, `(resamples or 1, units)`.

    For m ratings with scores s it is `2 (m sum s^2 - (sum s)^2)`; for nominal levels `m^2 - sum n_c^2`.

    Args:
        counts: `(units, levels)`.
        scores: `(resamples or 1, levels)`; None for nominal levels.
    """
    raters = counts.sum(axis=1)
    if scores is None:
        return np.asarray(raters**2 - (counts**2).sum(axis=1))[np.newaxis, :]
    return np.asarray(2.0 * (raters * (scores**2 @ counts.T) - (scores @ counts.T) ** 2))


def _total_disagreement(totals: Floats, scores: Floats | None) -> Floats:
    """Sum of squared distances over all ordered pairs of ratings, `(resamples,)` from `(resamples, levels)`."""
    n = totals.sum(axis=1)
    if scores is None:
        return np.asarray(n**2 - (totals**2).sum(axis=1))
    return np.asarray(2.0 * (n * (totals * scores**2).sum(axis=1) - (totals * scores).sum(axis=1) ** 2))


def _scores(level: Level, levels: Floats, totals: Floats) -> Floats | None:
    """Scores of the levels for squared distances, `(resamples or 1, levels)`; None for nominal levels."""
    if level == "nominal":
        return None
    if level == "ordinal":
        return np.asarray(np.cumsum(totals, axis=1) - totals / 2.0)  # mean ranks
    # Centred, so that large levels with small differences keep their precision.
    return np.asarray(levels - levels.mean())[np.newaxis, :]


def _weighted(ratings: npt.ArrayLike, categories: Sequence[float] | None, weights: Weights) -> tuple[_Counts, Floats]:
    """Counts of the ratings, and the agreement weights of their levels."""
    if categories is None and weights != "identity":
        raise ValueError(f"{weights} weights require the categories")
    counted = _Counts.of(ratings, categories)
    if categories is None:
        return counted, np.eye(len(counted.levels))
    return counted, agreement_weights(counted.levels.tolist(), weights)


def _agreements(counted: _Counts, agreement: Floats, weights: Floats) -> Floats:
    """Raw agreement for each row of weights `(rows, units)`."""
    pairable, raters = counted.raters >= 2.0, counted.raters
    pairs = (counted.counts * (counted.counts @ agreement - 1.0)).sum(axis=1)
    of_unit = np.divide(pairs, raters * (raters - 1.0), out=np.zeros(len(raters)), where=pairable)
    return ratio(weights @ of_unit, weights @ pairable.astype(np.float64))


def _coefficients(counted: _Counts, agreement: Floats, weights: Floats) -> Floats:
    """AC2 for each row of weights."""
    rated = counted.raters > 0.0
    shares = counted.counts / np.where(rated, counted.raters, 1.0)[:, np.newaxis]
    prevalence = ratio(weights @ shares, (weights @ rated.astype(np.float64))[:, np.newaxis])
    k = len(agreement)
    chance = agreement.sum() / (k * (k - 1)) * (prevalence * (1.0 - prevalence)).sum(axis=1)
    return np.asarray((_agreements(counted, agreement, weights) - chance) / (1.0 - chance))
