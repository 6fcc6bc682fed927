"""Pearson's correlation of rows in clusters: a t test and a confidence interval that always agree."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.jackknife import jackknife_error, left_out_sums, t_quantile


@dataclass(frozen=True, slots=True)
class CorrelationTest:
    """Pearson's correlation with a two-sided test that it is 0.

    Attributes:
        value: the correlation, in [-1, 1]; NaN if one of the two does not vary.
        low, high: ends of the interval, in [-1, 1], which excludes 0 exactly if p is below `1 - level`.
        p_value: in [0, 1]. It and the ends are NaN for fewer than `moot.metrics.jackknife.LEAST_CLUSTERS` clusters, if
            the correlation is 1 or -1, and if one of the two does not vary without some cluster.
        n: number of rows.
        clusters: number of clusters.
    """

    value: float
    low: float
    high: float
    p_value: float
    n: int
    clusters: int


def pearson_test(x: npt.ArrayLike, y: npt.ArrayLike, clusters: npt.ArrayLike, level: float = 0.95) -> CorrelationTest:
    """Test and interval of Pearson's correlation over clusters of dependent rows.

    The test is that of the slope of the regression of y on x: Student's t of the slope over its jackknife standard
    error, with one degree of freedom less than there are clusters. For independent normal rows it is close to the usual
    t test; it is also valid if the variance of y depends on x. With `g(r) = r / (1 + sqrt(1 - r^2))` the interval is
    `g(r) -+ t se / (1 + sqrt(1 - r^2))`, mapped back. On the scale of g the standard error of normal rows makes this
    ratio Pearson's `r sqrt(n) / sqrt(1 - r^2)`, so that the interval agrees with the test and covers r.

    Args:
        x, y: `(n,)`, finite.
        clusters: `(n,)`, cluster of each row, of any sortable type.
        level: nominal coverage of the interval, in (0, 1).

    Raises:
        ValueError: for incompatible shapes, no rows, an unknown value, and a level outside (0, 1).

    Source: MacKinnon and White, Journal of Econometrics 1985 (HC3), and Bell and McCaffrey, Survey Methodology 2002,
    for clusters.

    >>> x = np.arange(20.0)
    >>> found = pearson_test(x, x + 8.0 * np.sin(3.0 * x), np.arange(20))
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2), round(found.p_value, 4)
    (0.7, 0.48, 0.86, 0.0)
    """
    a, b = (np.asarray(values, dtype=np.float64) for values in (x, y))
    if a.ndim != 1 or a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError(f"two vectors of equal length and of known values expected, not {a.shape} and {b.shape}")
    a, b = _standardised(a), _standardised(b)
    value = float(np.clip((a * b).mean(), -1.0, 1.0)) if len(a) else float("nan")
    sums = left_out_sums(np.column_stack([np.ones(len(a)), a, b, a * b, a * a]), clusters)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_a, mean_b, ab, aa = (sums[:, 1:] / sums[:, :1]).T
        variances = aa - mean_a**2
        slopes = (ab - mean_a * mean_b) / np.where(variances > 1e-9, variances, np.nan)
    error, width = float(jackknife_error(slopes)), 1.0 + np.sqrt(1.0 - value**2)
    reach = t_quantile(len(sums), level) * error / width
    low, high = (float(np.clip(value / width + sign * reach, -1.0, 1.0)) for sign in (-1.0, 1.0))
    return CorrelationTest(
        value=value,
        low=2.0 * low / (1.0 + low**2),
        high=2.0 * high / (1.0 + high**2),
        p_value=float(2.0 * scipy.special.stdtr(len(sums) - 1, -abs(value) / error)),
        n=len(a),
        clusters=len(sums),
    )


def _standardised(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Values with mean 0 and variance 1; NaN if they do not vary."""
    centred = values - values.mean() if len(values) else values
    scale = float(np.sqrt((centred**2).mean())) if len(values) else 0.0
    if scale <= 1e-12 * float(np.abs(values).max(initial=0.0)):
        return np.full(len(values), np.nan)
    return centred / scale
