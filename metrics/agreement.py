"""Inter-rater agreement with missing ratings: raw agreement, Krippendorff's alpha, Gwet's AC1 and AC2.

Throughout, ratings are `(raters, units)` with NaN for missing, and categories are all that could have been given.
Functions raise ValueError if the ratings are no matrix, one is infinite or not a category, or a category is listed
twice. Intervals are of 95 %, from the percentiles of resamples in which whole clusters of units, `(units,)` of any
sortable type such as the case of each unit, are drawn with replacement; they raise ValueError for no unit, no resample,
or another number of clusters than of units.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from moot.metrics.bootstrap import BootstrapInterval, cluster_bootstrap, percentile_interval
from moot.metrics.cluster_bootstrap import cluster_weights
from moot.metrics.distribution import Floats, ratio

Level = Literal["nominal", "ordinal", "interval"]
"""Scale of the levels: nominal, ordinal, or interval (differences are meaningful)."""

Weights = Literal["identity", "ordinal", "quadratic", "linear"]
"""Partial credit for unequal ratings."""

_NUMBERS = 2**21  # in memory at once, per array


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of ratings per unit and category.

    Attributes:
        levels: `(k,)`, ascending.
        counts: `(units, k)`, how many raters chose the level for the unit.
        raters: `(units,)`, how many rated the unit; with fewer than two it has no information on agreement.
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
            raise ValueError("each level is listed once")
        if not np.isin(given[rated], possible).all():
            raise ValueError(f"a rating is none of the levels {', '.join(f'{level:g}' for level in possible)}")
        counts = (given[:, :, np.newaxis] == possible).sum(axis=0)
        return cls(possible, counts.astype(np.float64), rated.sum(axis=0).astype(np.float64))

    def drawn(self, clusters: npt.ArrayLike, resamples: int, seed: int) -> Floats:
        """`(resamples, units)` multiplicities."""
        given = np.asarray(clusters)
        if given.shape != self.raters.shape:
            raise ValueError(f"{len(self.raters)} units but clusters of shape {given.shape}")
        return cluster_weights(given, resamples, seed).astype(np.float64)

    def once(self) -> Floats:
        """The multiplicities of the data themselves."""
        return np.ones((1, len(self.raters)))


def krippendorff_alpha(ratings: npt.ArrayLike, level: Level) -> float:
    """Krippendorff's alpha, `1 - D_o / D_e`: observed disagreement relative to that expected by chance.

    With `n_uc` of the `m_u` raters of unit u on level c, `n_c = sum_u n_uc` and `n = sum_c n_c` over units with
    `m_u >= 2`, and a distance d of levels:
    `D_o = sum_u sum_cd n_uc (n_ud - [c = d]) d(c, d)^2 / (m_u - 1) / n`,
    `D_e = sum_cd n_c n_d d(c, d)^2 / (n (n - 1))`. Squared distances are 1 for other names (nominal), `(c - d)^2`
    (interval), and `(sum of n_g from c to d - (n_c + n_d) / 2)^2` (ordinal), which is the squared difference of the
    levels' mean ranks: an ordinal alpha is an interval alpha of ranks.

    Alpha falls with prevalence: where nearly all ratings are on one level, chance agrees nearly always and a few
    disagreements make it small however high the raw agreement is. Report `raw_agreement` and `gwet_ac2` with it.

    Returns:
        At most 1 (no disagreement), 0 for chance, below it for systematic disagreement. NaN where it is undefined: no
        unit with two ratings, or all such ratings on one level.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011.

    >>> round(krippendorff_alpha([[1, 2, 3, 3], [1, 2, 3, 2], [float("nan"), 2, 3, 3]], "nominal"), 4)
    0.7368
    """
    counted = _Counts.of(ratings)
    return float(_alphas(counted, level, counted.once())[0])


def alpha_interval(
    ratings: npt.ArrayLike, level: Level, clusters: npt.ArrayLike, *, resamples: int = 1000, seed: int = 0
) -> BootstrapInterval:
    """Bootstrap confidence interval of Krippendorff's alpha; ranks are recomputed in each resample."""
    counted = _Counts.of(ratings)
    return percentile_interval(_alphas(counted, level, counted.drawn(clusters, resamples, seed)))


def agreement_weights(categories: Sequence[float], weights: Weights) -> Floats:
    """Agreement weights of each pair of categories, `(q, q)`: 1 on the diagonal, 0 for the two extremes.

    With x the ascending categories and i, j their places among q: `identity` `[i = j]`, `linear`
    `1 - |x_i - x_j| / range`, `quadratic` `1 - (x_i - x_j)^2 / range^2`, and `ordinal`
    `1 - C(|i - j| + 1, 2) / C(q, 2)`, which uses only their order.

    Raises:
        ValueError: for fewer than two categories, or an unknown name.

    Source: Gwet, Handbook of Inter-Rater Reliability, 4th edition, 2014, section 3.5.

    >>> agreement_weights([1, 2, 3], "ordinal").round(3).tolist()
    [[1.0, 0.667, 0.0], [0.667, 1.0, 0.667], [0.0, 0.667, 1.0]]
    """
    x = np.asarray(categories, dtype=np.float64)
    if len(x) < 2:
        raise ValueError("agreement is among at least two categories")
    steps = np.abs(np.subtract.outer(np.arange(len(x)), np.arange(len(x))))
    apart = np.abs(np.subtract.outer(x, x)) / (x.max() - x.min())
    distances: dict[Weights, Floats] = {
        "identity": (steps > 0).astype(np.float64),
        "linear": apart,
        "quadratic": apart**2,
        "ordinal": steps * (steps + 1) / (len(x) * (len(x) - 1)),
    }
    if weights not in distances:
        raise ValueError(f"weights are one of {', '.join(get_args(Weights))}, not {weights!r}")
    return np.asarray(1.0 - distances[weights])


def raw_agreement(
    ratings: npt.ArrayLike, weights: Weights = "identity", categories: Sequence[float] | None = None
) -> float:
    """Observed agreement, not corrected for chance: the mean over units of their pairwise agreement.

    `p_a = mean over units with m >= 2 of sum_k n_k (sum_l w_kl n_l - 1) / (m (m - 1))`; with identity weights, which
    need no categories, the share of pairs of ratings that are the same, each unit counting once.

    Returns:
        In [0, 1]; NaN when no unit has two ratings.

    Source: Gwet, Handbook of Inter-Rater Reliability, 4th edition, 2014, equation 3.30.

    >>> raw_agreement([[1, 2, 2], [1, 2, 3]])
    0.6666666666666666
    """
    counted, worth = _weighted(ratings, categories, weights)
    return float(_agreements(counted, worth, counted.once())[0])


def raw_agreement_interval(
    ratings: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    weights: Weights = "identity",
    categories: Sequence[float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> BootstrapInterval:
    """Bootstrap confidence interval of raw agreement."""
    counted, worth = _weighted(ratings, categories, weights)
    return percentile_interval(_agreements(counted, worth, counted.drawn(clusters, resamples, seed)))


def gwet_ac2(ratings: npt.ArrayLike, categories: Sequence[float], weights: Weights) -> float:
    """Gwet's AC2, `(p_a - p_e) / (1 - p_e)`; with identity weights (nominal categories) it is AC1.

    `p_a` is `raw_agreement`; `p_e = T / (q (q - 1)) sum_k pi_k (1 - pi_k)` with T the sum of the weights and `pi_k` the
    mean over rated units of the share of the unit's ratings in category k, used or not: the number of categories
    counts. Chance is what raters would agree on if they guessed where they are unsure: it vanishes where one category
    prevails, so AC2 nears the raw agreement there, while alpha and kappa fall to 0.

    Returns:
        At most 1, 0 for chance, below it for less. NaN when no unit has two ratings.

    Source: Gwet, Handbook of Inter-Rater Reliability, 4th edition, 2014, chapter 3; Gwet, BJMSP 2008.

    >>> nearly_all_one = [[1] * 98 + [2, 1], [1] * 98 + [1, 2]]
    >>> round(gwet_ac2(nearly_all_one, [1, 2], "identity"), 3), raw_agreement(nearly_all_one)
    (0.98, 0.98)
    """
    counted, worth = _weighted(ratings, categories, weights)
    return float(_coefficients(counted, worth, counted.once())[0])


def ac2_interval(
    ratings: npt.ArrayLike,
    categories: Sequence[float],
    weights: Weights,
    clusters: npt.ArrayLike,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> BootstrapInterval:
    """Bootstrap confidence interval of Gwet's AC2."""
    counted, worth = _weighted(ratings, categories, weights)
    return percentile_interval(_coefficients(counted, worth, counted.drawn(clusters, resamples, seed)))


def rater_interval(
    statistic: Callable[[Floats], float],
    ratings: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> BootstrapInterval:
    """Bootstrap confidence interval of any statistic of a rating matrix, such as a weighted kappa of two rows.

    Args:
        statistic: of `(raters, drawn units)` ratings; NaN for none. It is called once per resample.

    >>> same = rater_interval(lambda pair: float((pair[0] == pair[1]).mean()), [[1, 2] * 20, [1, 1] * 20], range(40))
    >>> 0.3 < same.low < 0.5 < same.high < 0.7
    True
    """
    given = np.asarray(ratings, dtype=np.float64)
    if given.ndim != 2 or np.shape(clusters) != given.shape[1:]:
        raise ValueError(f"raters x units and a cluster per unit expected, not {given.shape} and {np.shape(clusters)}")
    return cluster_bootstrap(lambda units: statistic(given[:, units]), clusters, resamples=resamples, seed=seed)


def _alphas(counted: _Counts, level: Level, weights: Floats) -> Floats:
    """Alpha for each row of `(resamples, units)` multiplicities."""
    if level not in get_args(Level):
        raise ValueError(f"a level is one of {', '.join(get_args(Level))}, not {level!r}")
    pairable = counted.raters >= 2.0
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
    """Disagreement over all ordered pairs of ratings of any units, `(resamples,)` from `(resamples, levels)`."""
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
    # About 0, so that large levels with small differences lose no digits.
    return np.asarray(levels - levels.mean())[np.newaxis, :]


def _weighted(ratings: npt.ArrayLike, categories: Sequence[float] | None, weights: Weights) -> tuple[_Counts, Floats]:
    """The counts, and the weights of their levels."""
    if categories is None and weights != "identity":
        raise ValueError(f"{weights} weights need the categories that could have been given")
    counted = _Counts.of(ratings, categories)
    if categories is None:
        return counted, np.eye(len(counted.levels))
    return counted, agreement_weights(counted.levels.tolist(), weights)


def _agreements(counted: _Counts, worth: Floats, weights: Floats) -> Floats:
    """Raw agreement for each row of `(resamples, units)` multiplicities."""
    pairable, raters = counted.raters >= 2.0, counted.raters
    pairs = (counted.counts * (counted.counts @ worth - 1.0)).sum(axis=1)
    of_unit = np.divide(pairs, raters * (raters - 1.0), out=np.zeros(len(raters)), where=pairable)
    return ratio(weights @ of_unit, weights @ pairable.astype(np.float64))


def _coefficients(counted: _Counts, worth: Floats, weights: Floats) -> Floats:
    """AC2 for each row of multiplicities."""
    rated = counted.raters > 0.0
    shares = counted.counts / np.where(rated, counted.raters, 1.0)[:, np.newaxis]
    prevalence = ratio(weights @ shares, (weights @ rated.astype(np.float64))[:, np.newaxis])
    k = len(worth)
    chance = worth.sum() / (k * (k - 1)) * (prevalence * (1.0 - prevalence)).sum(axis=1)
    return np.asarray((_agreements(counted, worth, weights) - chance) / (1.0 - chance))
