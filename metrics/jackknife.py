"""Cluster jackknife: confidence intervals of means, ratios, shares and coefficients over clusters of dependent rows.

One cluster (a case, or a group of cases) is left out at a time. This gives the standard error of any smooth statistic,
without random draws. Intervals use Student's t with one degree of freedom less than there are clusters, and there is
none for fewer than `LEAST_CLUSTERS`. `tests/bench/coverage.py` measures how often they cover.

Functions raise ValueError for incompatible shapes, no rows, and a level outside (0, 1).
"""

import math

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import as_codes
from moot.metrics.significance import wilson_interval

LEAST_CLUSTERS = 10
"""Fewest clusters for an interval or a test; fewer do not show how much the statistic varies."""

MOST_BLOCKS = 200
"""Most blocks of clusters that `left_out_weights` leaves out."""

_ROUNDING = 1e-12  # of a standard error, relative to the scale of the statistic

Ends = tuple[float, float]
"""Lower and upper end of an interval; NaN if it is undefined."""


def left_out_sums(values: npt.ArrayLike, clusters: npt.ArrayLike) -> Floats:
    """Sums over rows without one cluster, for every cluster.

    Args:
        values: `(n, K)`.
        clusters: `(n,)`, cluster of each row, of any sortable type.

    Returns:
        `(clusters, K)`, in the order of the sorted clusters.

    >>> left_out_sums([[1.0], [2.0], [4.0]], ["a", "a", "b"])[:, 0].tolist()
    [4.0, 3.0]
    """
    rows = np.asarray(values, dtype=np.float64)
    codes = as_codes(clusters, len(rows))
    if not len(codes):
        raise ValueError("there are no rows")
    by_cluster = np.stack([np.bincount(codes, column) for column in rows.T], axis=1)
    # The sum of the others, not the total less the cluster: a difference would leave a rounding error instead of 0.
    before = np.cumsum(by_cluster, axis=0) - by_cluster
    after = np.cumsum(by_cluster[::-1], axis=0)[::-1] - by_cluster
    return np.asarray(before + after)


def left_out_weights(clusters: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """Weights of rows without one cluster: 0 for its rows, 1 for all others.

    With more than `MOST_BLOCKS` clusters, blocks of clusters are left out instead of single ones (the delete-a-group
    jackknife), which limits the cost of statistics that are not functions of sums.

    Args:
        clusters: `(n,)`, cluster of each row, of any sortable type.

    Returns:
        `(clusters or blocks, n)`.

    Source: Kott, "The delete-a-group jackknife", Journal of Official Statistics 2001.

    >>> left_out_weights(["a", "a", "b"]).tolist()
    [[0, 0, 1], [1, 1, 0]]
    """
    codes = as_codes(clusters, np.size(np.asarray(clusters)))
    if not len(codes):
        raise ValueError("there are no rows")
    blocks = codes % MOST_BLOCKS
    return np.asarray(blocks != np.arange(blocks.max() + 1)[:, np.newaxis], dtype=np.int32)


def jackknife_error(left_out: npt.ArrayLike) -> Floats:
    """Jackknife standard error of a statistic.

    `sqrt((G - 1) / G sum (theta_g - mean theta)^2)` over the G statistics without one cluster.

    Args:
        left_out: `(clusters, ...)`, the statistic without each cluster.

    Returns:
        `(...)`; NaN for fewer than `LEAST_CLUSTERS`, if a statistic is undefined, or if they do not vary.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11.

    >>> float(jackknife_error([1.0, 2.0] * 5).round(3))
    1.5
    """
    values = np.asarray(left_out, dtype=np.float64)
    if len(values) < LEAST_CLUSTERS:
        return np.full(values.shape[1:], np.nan)
    n = len(values)
    error = np.sqrt((n - 1) / n * ((values - values.mean(axis=0)) ** 2).sum(axis=0))
    return np.where(error > _ROUNDING * np.maximum(1.0, np.abs(values).max(axis=0)), error, np.nan)


def mean_interval(left_out: npt.ArrayLike, observed: float, level: float = 0.95) -> Ends:
    """Confidence interval of a mean, a ratio of sums, or another statistic without bounds.

    Student's t interval. Where the clusters' influences are skewed, the end on the side of the long tail is moved out
    by Hall's correction; no end is moved in.

    Args:
        left_out: `(clusters,)`, the statistic without each cluster.
        observed: statistic of the data.
        level: nominal coverage, in (0, 1).

    Returns:
        The ends; NaN where `jackknife_error` is.

    Source: Hall, "On the removal of skewness by transformation", JRSS B 1992.

    >>> x = np.arange(20.0)
    >>> low, high = mean_interval((x.sum() - x) / 19, 9.5)
    >>> round(low, 3), round(high, 3)
    (6.731, 12.269)
    """
    values = np.asarray(left_out, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"a vector of statistics expected, not {values.shape}")
    error = float(jackknife_error(values))
    if math.isnan(error) or math.isnan(observed):
        _checked(level)
        return math.nan, math.nan
    influences = values.mean() - values
    skewness = float((influences**3).mean() / (influences**2).mean() ** 1.5) / math.sqrt(len(values))
    reach = t_quantile(len(values), level)
    low, high = (error * _inverse_hall(sign * reach, skewness) for sign in (1.0, -1.0))
    return observed - max(error * reach, low), observed + max(error * reach, -high)


def _inverse_hall(t: float, skewness: float) -> float:
    """Value whose transformation `x + a x^2 / 3 + a^2 x^3 / 27 + a / 6` is t, with a the skewness."""
    if abs(skewness) < 1e-9:
        return t
    return float(3.0 / skewness * (np.cbrt(1.0 + skewness * (t - skewness / 6.0)) - 1.0))


def coefficient_interval(
    left_out: npt.ArrayLike, observed: npt.ArrayLike, *, lowest: float = -1.0, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Confidence interval of a bounded coefficient, such as a correlation, an agreement or an F1.

    See `bounded_interval`.

    Args:
        left_out: `(clusters, ...)`, the coefficient without each cluster.
        observed: `(...)`, coefficient of the data.
        lowest: lower bound of the coefficient; its upper bound is 1.
        level: nominal coverage, in (0, 1).

    >>> low, high = coefficient_interval([0.48, 0.52] * 10, 0.5)
    >>> float(low.round(3)), float(high.round(3))
    (0.297, 0.66)
    """
    values = np.asarray(left_out, dtype=np.float64)
    return bounded_interval(observed, jackknife_error(values), len(values), lowest=lowest, level=level)


def bounded_interval(
    observed: npt.ArrayLike, error: npt.ArrayLike, clusters: int, *, lowest: float = -1.0, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Confidence interval of a bounded statistic from its standard error.

    Student's t interval on a scale without bounds. With u the statistic mapped linearly to [-1, 1] and se the error on
    that scale: `tanh(artanh(u) -+ t se / (1 - u^2))`. This is Fisher's z for a correlation, and the logit for an AUROC.

    Args:
        observed: `(...)`, the statistic.
        error: `(...)`, its standard error over clusters.
        clusters: number of clusters.
        lowest: lower bound of the statistic; its upper bound is 1.
        level: nominal coverage, in (0, 1).

    Returns:
        Lower and upper end, each `(...)`, within the bounds; NaN if the statistic or its error is NaN, if it equals a
        bound, and for fewer than `LEAST_CLUSTERS`.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 12.6, with the delta method.
    """
    half = (1.0 - lowest) / 2
    reach = t_quantile(clusters, level)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = (np.asarray(observed, dtype=np.float64) - lowest) / half - 1.0
        width = np.where(np.abs(unit) < 1.0, reach * np.asarray(error) / half / (1.0 - unit**2), np.nan)
        low, high = (lowest + half * (1.0 + np.tanh(np.arctanh(unit) + sign * width)) for sign in (-1.0, 1.0))
    return np.asarray(low), np.asarray(high)


def share_interval(left_out: npt.ArrayLike, observed: float, *, level: float = 0.95) -> Ends:
    """Confidence interval of a proportion over clusters of dependent rows.

    Wilson's interval with the effective number of rows, `q (1 - q) / se^2` for a proportion q, and Student's t in place
    of the normal quantile. For q = 0 or 1, whose standard error is 0, the number of clusters is the effective one.

    Args:
        left_out: `(clusters,)`, the proportion without each cluster.
        observed: proportion of the data, in [0, 1].
        level: nominal coverage, in (0, 1).

    Returns:
        The ends, in [0, 1]; NaN for fewer than `LEAST_CLUSTERS`, or if a proportion is undefined.

    Source: Korn and Graubard, "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data", Survey Methodology 1998, with Wilson's interval in place of the exact one.

    >>> low, high = share_interval([0.5] * 10 + [0.45] * 5 + [0.55] * 5, 0.5)
    >>> round(low, 2), round(high, 2)
    (0.23, 0.77)
    """
    values = np.asarray(left_out, dtype=np.float64)
    clusters = len(values)
    z = t_quantile(clusters, level)
    if math.isnan(observed + z) or np.isnan(values).any():
        return math.nan, math.nan
    if observed in (0.0, 1.0):
        ends = wilson_interval(clusters if observed else 0, clusters, level)
        return ends.low, ends.high
    error = float(jackknife_error(values))
    if math.isnan(error):
        return math.nan, math.nan
    n = observed * (1.0 - observed) / error**2
    middle = (observed + z * z / (2.0 * n)) / (1.0 + z * z / n)
    half = z / (1.0 + z * z / n) * math.sqrt(observed * (1.0 - observed) / n + (z / (2.0 * n)) ** 2)
    return max(0.0, middle - half), min(1.0, middle + half)


def t_quantile(clusters: int, level: float) -> float:
    """Student's t quantile of `(1 + level) / 2` with one degree of freedom less than there are clusters.

    Returns:
        NaN for fewer than `LEAST_CLUSTERS`.

    >>> round(t_quantile(20, 0.95), 3), t_quantile(9, 0.95)
    (2.093, nan)
    """
    _checked(level)
    return float(scipy.special.stdtrit(clusters - 1, (1.0 + level) / 2)) if clusters >= LEAST_CLUSTERS else math.nan


def _checked(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level must be between 0 and 1, not {level:g}")
