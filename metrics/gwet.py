"""Raw agreement of raters and Gwet's AC1 and AC2, which do not collapse where one category prevails."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from moot.metrics.cluster_bootstrap import cluster_weights
from moot.metrics.distribution import Floats
from moot.metrics.rating_counts import RatingCounts, rating_counts

Weights = Literal["identity", "ordinal", "quadratic", "linear"]
"""How much two ratings agree that are not the same."""


def agreement_weights(categories: Sequence[float], weights: Weights) -> Floats:
    """How much each pair of categories agrees, 1 on the diagonal and 0 for the two ends.

    With x the categories and i, j their places among q: `identity` `[i = j]`, `linear` `1 - |x_i - x_j| / range`,
    `quadratic` `1 - (x_i - x_j)^2 / range^2`, and `ordinal` `1 - C(|i - j| + 1, 2) / C(q, 2)`, which knows only their
    order.

    Args:
        categories: at least two, ascending.
        weights: which.

    Returns:
        `(q, q)`, in [0, 1].

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
    """The mean over units of the agreement of a pair of the unit's ratings, not corrected for chance.

    `p_a = mean over units with m >= 2 of sum_k n_k (sum_l w_kl n_l - 1) / (m (m - 1))`; with identity weights the share
    of pairs of ratings that are the same, each unit counting once.

    Args:
        ratings: `(raters, units)`, NaN for missing.
        weights: what two other ratings are worth.
        categories: all that could have been given; may be left out where only sameness counts (`identity`).

    Returns:
        In [0, 1]; NaN when no unit has two ratings.

    Raises:
        ValueError: if the ratings are no matrix, one is none of the categories, or the categories are missing.

    Source: Gwet, Handbook of Inter-Rater Reliability, 4th edition, 2014, equation 3.30.

    >>> raw_agreement([[1, 2, 2], [1, 2, 3]])
    0.6666666666666666
    """
    counted, worth = _weighted(ratings, categories, weights)
    return float(_agreements(counted, worth, np.ones((1, len(counted.raters))))[0])


def gwet_ac2(ratings: npt.ArrayLike, categories: Sequence[float], weights: Weights) -> float:
    """Gwet's AC2, `(p_a - p_e) / (1 - p_e)`; with identity weights this is AC1.

    `p_a` is `raw_agreement`; `p_e = T / (q (q - 1)) sum_k pi_k (1 - pi_k)` with T the sum of the weights and `pi_k` the
    mean over rated units of the share of the unit's ratings in category k. Chance is what raters would agree on if
    they guessed where they are unsure: it vanishes where one category prevails, so AC2 nears the raw agreement there,
    while alpha and kappa fall to 0.

    Args:
        ratings: `(raters, units)`, NaN for missing.
        categories: all that could have been given, used or not: the number of them counts.
        weights: what two other ratings are worth; `identity` for names.

    Returns:
        At most 1, 0 for chance, below it for less. NaN when no unit has two ratings.

    Raises:
        ValueError: if the ratings are no matrix, one is none of the categories, or there are fewer than two of these.

    Source: Gwet, Handbook of Inter-Rater Reliability, 4th edition, 2014, chapter 3; Gwet, BJMSP 2008.

    >>> nearly_all_one = [[1] * 98 + [2, 1], [1] * 98 + [1, 2]]
    >>> round(gwet_ac2(nearly_all_one, [1, 2], "identity"), 3), raw_agreement(nearly_all_one)
    (0.98, 0.98)
    """
    counted, worth = _weighted(ratings, categories, weights)
    return float(_coefficients(counted, worth, np.ones((1, len(counted.raters))))[0])


def bootstrap_raw_agreement(
    ratings: npt.ArrayLike,
    clusters: npt.ArrayLike,
    resamples: int,
    seed: int = 0,
    weights: Weights = "identity",
    categories: Sequence[float] | None = None,
) -> Floats:
    """Raw agreement of resamples in which whole clusters of units are drawn with replacement.

    Args:
        ratings, weights, categories: as for `raw_agreement`.
        clusters: `(units,)`, of any sortable type.
        resamples: how many.
        seed: of the draws.

    Returns:
        `(resamples,)`; NaN for a resample without a unit that has two ratings.

    Raises:
        ValueError: as `raw_agreement`, for no unit or no resample, or if there is not one cluster per unit.
    """
    counted, worth = _weighted(ratings, categories, weights)
    return _agreements(counted, worth, _drawn(counted, clusters, resamples, seed))


def bootstrap_ac2(
    ratings: npt.ArrayLike,
    categories: Sequence[float],
    weights: Weights,
    clusters: npt.ArrayLike,
    resamples: int,
    seed: int = 0,
) -> Floats:
    """AC2 of resamples in which whole clusters of units are drawn with replacement.

    Args:
        ratings, categories, weights: as for `gwet_ac2`.
        clusters: `(units,)`, of any sortable type.
        resamples: how many.
        seed: of the draws.

    Returns:
        `(resamples,)`; NaN for a resample without a unit that has two ratings.

    Raises:
        ValueError: as `gwet_ac2`, for no unit or no resample, or if there is not one cluster per unit.
    """
    counted, worth = _weighted(ratings, categories, weights)
    return _coefficients(counted, worth, _drawn(counted, clusters, resamples, seed))


def _weighted(
    ratings: npt.ArrayLike, categories: Sequence[float] | None, weights: Weights
) -> tuple[RatingCounts, Floats]:
    """The counts, and the weights of their levels."""
    if categories is None and weights != "identity":
        raise ValueError(f"{weights} weights need the categories that could have been given")
    counted = rating_counts(ratings, categories)
    if categories is None:
        return counted, np.eye(len(counted.levels))
    return counted, agreement_weights(counted.levels.tolist(), weights)


def _drawn(counted: RatingCounts, clusters: npt.ArrayLike, resamples: int, seed: int) -> Floats:
    """`(resamples, units)` multiplicities."""
    given = np.asarray(clusters)
    if given.shape != counted.raters.shape:
        raise ValueError(f"{len(counted.raters)} units but clusters of shape {given.shape}")
    return cluster_weights(given, resamples, seed).astype(np.float64)


def _agreements(counted: RatingCounts, worth: Floats, weights: Floats) -> Floats:
    """Raw agreement for each row of `(resamples, units)` multiplicities."""
    pairable, raters = counted.pairable(), counted.raters
    pairs = (counted.counts * (counted.counts @ worth - 1.0)).sum(axis=1)
    of_unit = np.divide(pairs, raters * (raters - 1.0), out=np.zeros(len(raters)), where=pairable)
    return _ratio(weights @ of_unit, weights @ pairable.astype(np.float64))


def _coefficients(counted: RatingCounts, worth: Floats, weights: Floats) -> Floats:
    """AC2 for each row of multiplicities."""
    rated = counted.raters > 0.0
    shares = counted.counts / np.where(rated, counted.raters, 1.0)[:, np.newaxis]
    prevalence = _ratio(weights @ shares, (weights @ rated.astype(np.float64))[:, np.newaxis])
    k = len(worth)
    chance = worth.sum() / (k * (k - 1)) * (prevalence * (1.0 - prevalence)).sum(axis=1)
    return np.asarray((_agreements(counted, worth, weights) - chance) / (1.0 - chance))


def _ratio(above: Floats, below: Floats) -> Floats:
    """NaN where nothing is below."""
    return np.asarray(np.where(below > 0.0, above, np.nan) / np.where(below > 0.0, below, 1.0))
