"""Intervals of agreement between raters, by drawing whole clusters of units with replacement."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from moot.metrics.bootstrap import BootstrapInterval, cluster_bootstrap
from moot.metrics.distribution import Floats
from moot.metrics.gwet import Weights, bootstrap_ac2, bootstrap_raw_agreement
from moot.metrics.krippendorff import Level, bootstrap_alpha


def percentile_interval(resampled: npt.ArrayLike, confidence: float = 0.95) -> BootstrapInterval:
    """The interval between two quantiles of a statistic's resamples.

    Args:
        resampled: `(resamples,)`; NaN, a resample that gave no value, is left out.
        confidence: nominal coverage, in (0, 1). Below about 30 clusters the interval covers less than it says.

    Returns:
        The interval, and how many resamples gave a value: where many did not, as when nearly all ratings are on one
        level, it is that of the lucky ones. Without a disagreement in the data all resamples are alike and it has no
        width, which is no certainty.

    Raises:
        ValueError: if the confidence is outside (0, 1).

    Source: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 5.3.

    >>> found = percentile_interval([0.0, 0.25, 0.5, 0.75, 1.0, float("nan")], 0.5)
    >>> found.low, found.high, found.resamples
    (0.25, 0.75, 5)
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence lies between 0 and 1, not {confidence:g}")
    values = np.asarray(resampled, dtype=np.float64)
    known = values[~np.isnan(values)]
    if not len(known):
        return BootstrapInterval(float("nan"), float("nan"), 0)
    low, high = np.quantile(known, [(1.0 - confidence) / 2, (1.0 + confidence) / 2])
    return BootstrapInterval(float(low), float(high), len(known))


def alpha_interval(
    ratings: npt.ArrayLike, level: Level, clusters: npt.ArrayLike, *, resamples: int = 1000, seed: int = 0
) -> BootstrapInterval:
    """The 95 % interval of Krippendorff's alpha.

    Args:
        ratings: `(raters, units)`, NaN for missing.
        level: `nominal`, `ordinal` or `interval`.
        clusters: `(units,)`, of any sortable type: the case of each unit.
        resamples: how many draws.
        seed: of the draws.

    Raises:
        ValueError: as `bootstrap_alpha`.
    """
    return percentile_interval(bootstrap_alpha(ratings, level, clusters, resamples, seed))


def ac2_interval(
    ratings: npt.ArrayLike,
    categories: Sequence[float],
    weights: Weights,
    clusters: npt.ArrayLike,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> BootstrapInterval:
    """The 95 % interval of Gwet's AC2; the arguments are those of `bootstrap_ac2`, and so are the errors."""
    return percentile_interval(bootstrap_ac2(ratings, categories, weights, clusters, resamples, seed))


def raw_agreement_interval(
    ratings: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    weights: Weights = "identity",
    categories: Sequence[float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> BootstrapInterval:
    """The 95 % interval of raw agreement; the arguments are those of `bootstrap_raw_agreement`, as are the errors."""
    return percentile_interval(bootstrap_raw_agreement(ratings, clusters, resamples, seed, weights, categories))


def rater_interval(
    statistic: Callable[[Floats], float],
    ratings: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> BootstrapInterval:
    """The 95 % interval of any other statistic of a rating matrix, say a weighted kappa of two of its rows.

    Args:
        statistic: of `(raters, drawn units)` ratings; NaN for none. It is called once per resample.
        ratings: `(raters, units)`, NaN for missing.
        clusters: `(units,)`, of any sortable type.
        resamples: how many draws.
        seed: of the draws.

    Raises:
        ValueError: if the ratings are no matrix, or there is not one cluster per unit.

    >>> same = rater_interval(lambda pair: float((pair[0] == pair[1]).mean()), [[1, 2] * 20, [1, 1] * 20], range(40))
    >>> 0.3 < same.low < 0.5 < same.high < 0.7
    True
    """
    given = np.asarray(ratings, dtype=np.float64)
    if given.ndim != 2 or np.shape(clusters) != given.shape[1:]:
        raise ValueError(f"raters x units and a cluster per unit expected, not {given.shape} and {np.shape(clusters)}")
    return cluster_bootstrap(lambda units: statistic(given[:, units]), clusters, resamples=resamples, seed=seed)
