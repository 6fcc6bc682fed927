"""Bootstrap confidence intervals, for independent cases and for clusters (replies to one case are dependent).

Functions raise ValueError for a level outside (0, 1).
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_MAX_DRAWS = 2**22  # in memory


@dataclass(frozen=True, slots=True)
class BootstrapInterval:
    """Bootstrap confidence interval.

    Attributes:
        low, high: ends; NaN if no resample has a value.
        resamples: number of resamples with a value.
    """

    low: float
    high: float
    resamples: int


def percentile_interval(resampled: npt.ArrayLike, level: float = 0.95) -> BootstrapInterval:
    """Percentile bootstrap interval from the resampled values of a statistic.

    Args:
        resampled: `(resamples,)`; NaN (a resample without a value) is left out.
        level: nominal coverage, in (0, 1). With fewer than about 30 clusters the actual coverage is lower.

    Returns:
        The interval, and the number of resamples with a value. If many have none, as when nearly all ratings are on one
        level, the interval is conditional on those that do. If all resamples are equal, as without any disagreement in
        the data, its width is 0, which does not mean certainty.

    Source: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 5.3.

    >>> result = percentile_interval([0.0, 0.25, 0.5, 0.75, 1.0, float("nan")], 0.5)
    >>> result.low, result.high, result.resamples
    (0.25, 0.75, 5)
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level must be between 0 and 1, not {level:g}")
    values = np.asarray(resampled, dtype=np.float64)
    known = values[~np.isnan(values)]
    if not len(known):
        return BootstrapInterval(float("nan"), float("nan"), 0)
    low, high = np.quantile(known, [(1.0 - level) / 2, (1.0 + level) / 2])
    return BootstrapInterval(float(low), float(high), len(known))


def cluster_bootstrap(
    statistic: Callable[[npt.NDArray[np.intp]], float],
    clusters: npt.ArrayLike,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> BootstrapInterval:
    """Cluster bootstrap: percentile interval of a statistic; whole clusters are drawn with replacement.

    Args:
        statistic: function of the indices of the drawn observations; may return NaN.
        clusters: `(n,)`, cluster of each observation, of any sortable type.
        resamples: number of resamples; for 0 the ends are NaN.
        level: nominal coverage, in (0, 1).
        seed: seed of the random generator.

    Raises:
        ValueError: if there are no observations.

    Source: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8.

    >>> import numpy as np
    >>> x = np.arange(100.0)
    >>> result = cluster_bootstrap(lambda i: float(x[i].mean()), np.arange(100), resamples=500)
    >>> 40.0 < result.low < 49.5 < result.high < 60.0
    True
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level must be between 0 and 1, not {level:g}")
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    if not len(codes):
        raise ValueError("there are no observations")
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    random = np.random.default_rng(seed)
    values = np.array(
        [
            statistic(np.concatenate([members[chosen] for chosen in random.integers(len(members), size=len(members))]))
            for _ in range(resamples)
        ]
    )
    return percentile_interval(values, level)


def bca_interval(
    values: npt.ArrayLike | Sequence[float | None],
    statistic: Callable[..., Any] = np.mean,
    *,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> BootstrapInterval:
    """BCa interval: the bias-corrected and accelerated bootstrap, for independent cases.

    The interval describes the variation of the statistic over OTHER samples of cases. To compare two systems, test the
    paired cases themselves (see `moot.metrics.significance`), not the resamples, which are dependent.

    Args:
        values: `(n,)`, one per case; NaN (or None) is left out.
        statistic: function of a vector; fast if it accepts `axis`, like numpy's reductions.
        resamples: number of resamples, at least 1; with fewer than 2000 the ends are noisy.
        level: nominal coverage, in (0, 1).
        seed: seed of the random generator.

    Returns:
        The interval. NaN at both ends, with 0 resamples, if the data are degenerate: fewer than two cases, all values
        equal (the bootstrap is undefined; for proportions use `wilson_interval`), or all resamples on one side of the
        statistic.

    Raises:
        ValueError: for fewer than one resample, or values that are not one-dimensional.

    Source: Efron, "Better bootstrap confidence intervals", JASA 1987; computed by scipy.

    >>> result = bca_interval([1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 9.0])
    >>> 2.0 < result.low < 3.375 < result.high < 6.5
    True
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level must be between 0 and 1, not {level:g}")
    if resamples < 1:
        raise ValueError(f"at least one resample expected, not {resamples}")
    cases = np.asarray(values, dtype=np.float64)
    if cases.ndim != 1:
        raise ValueError(f"a vector of values expected, not {cases.shape}")
    cases = cases[~np.isnan(cases)]
    if len(cases) < 2 or (cases == cases[0]).all():
        return BootstrapInterval(float("nan"), float("nan"), 0)
    from scipy.stats import DegenerateDataWarning, bootstrap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)  # NaN reports it
        result = bootstrap(
            (cases,),
            statistic,
            method="BCa",
            n_resamples=resamples,
            confidence_level=level,
            batch=max(1, _MAX_DRAWS // len(cases)),
            rng=np.random.default_rng(seed),
        ).confidence_interval
    if np.isnan(result.low) or np.isnan(result.high):
        return BootstrapInterval(float("nan"), float("nan"), 0)
    return BootstrapInterval(float(result.low), float(result.high), resamples)
