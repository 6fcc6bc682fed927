"""Bootstrap confidence intervals, for independent cases and for clusters (replies of one case are not independent).

Functions raise ValueError for no observation or resample, values that are no vector, and a level outside (0, 1).
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_NUMBERS = 2**22  # drawn at once


@dataclass(frozen=True, slots=True)
class BootstrapInterval:
    """A bootstrap confidence interval.

    Attributes:
        low, high: its ends; NaN when no resample gave a value.
        resamples: how many gave one.
    """

    low: float
    high: float
    resamples: int


def percentile_interval(resampled: npt.ArrayLike, level: float = 0.95) -> BootstrapInterval:
    """Percentile bootstrap interval from the resampled values of a statistic.

    Args:
        resampled: `(resamples,)`; NaN, a resample that gave no value, is left out.
        level: nominal coverage, in (0, 1). Below about 30 clusters the interval covers less than its nominal level.

    Returns:
        The interval, and how many resamples gave a value: where many did not, as when nearly all ratings are on one
        level, it is conditional on those that did. Without a disagreement in the data all resamples are equal and its
        width is 0, which does not mean certainty.

    Source: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 5.3.

    >>> found = percentile_interval([0.0, 0.25, 0.5, 0.75, 1.0, float("nan")], 0.5)
    >>> found.low, found.high, found.resamples
    (0.25, 0.75, 5)
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level lies between 0 and 1, not {level:g}")
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
    """Cluster bootstrap: the percentile interval of a statistic when whole clusters are drawn with replacement.

    Args:
        statistic: called with the indices of the observations that were drawn; may return NaN.
        clusters: `(n,)`, the cluster of each observation, of any sortable type.
        resamples: how many draws.
        level: share of the draws inside the interval, in (0, 1).
        seed: of the draws.

    Source: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8.

    >>> import numpy as np
    >>> x = np.arange(100.0)
    >>> found = cluster_bootstrap(lambda i: float(x[i].mean()), np.arange(100), resamples=500)
    >>> 40.0 < found.low < 49.5 < found.high < 60.0
    True
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level lies between 0 and 1, not {level:g}")
    _, number = np.unique(np.asarray(clusters), return_inverse=True)
    if not len(number):
        raise ValueError("there are no observations")
    order = np.argsort(number, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(number))[:-1])
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

    Resampling the cases estimates how much the statistic varies over OTHER such cases; a test between two systems uses
    the paired cases themselves (see `moot.metrics.significance`), never the resamples, which are not independent of
    each other.

    Args:
        values: `(n,)`, one per case; NaN (or None) is left out.
        statistic: as numpy's reductions, with an `axis` (fast), or of a vector.
        resamples: how many draws; fewer than 2000 make its ends noisy.
        level: nominal coverage, in (0, 1).
        seed: of the draws.

    Returns:
        The interval. NaN at both ends, with 0 resamples, when the data are degenerate: fewer than two cases, all alike
        (the bootstrap is undefined then; for shares use `wilson_interval`), or every resample on one side of
        the statistic.

    Source: Efron, "Better bootstrap confidence intervals", JASA 1987; computed by scipy.

    >>> found = bca_interval([1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 9.0])
    >>> 2.0 < found.low < 3.375 < found.high < 6.5
    True
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level lies between 0 and 1, not {level:g}")
    if resamples < 1:
        raise ValueError(f"at least one resample, not {resamples}")
    cases = np.asarray(values, dtype=np.float64)
    if cases.ndim != 1:
        raise ValueError(f"a vector of values expected, not {cases.shape}")
    cases = cases[~np.isnan(cases)]
    if len(cases) < 2 or (cases == cases[0]).all():
        return BootstrapInterval(float("nan"), float("nan"), 0)
    from scipy.stats import DegenerateDataWarning, bootstrap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)  # NaN reports it
        found = bootstrap(
            (cases,),
            statistic,
            method="BCa",
            n_resamples=resamples,
            confidence_level=level,
            batch=max(1, _NUMBERS // len(cases)),
            rng=np.random.default_rng(seed),
        ).confidence_interval
    if np.isnan(found.low) or np.isnan(found.high):
        return BootstrapInterval(float("nan"), float("nan"), 0)
    return BootstrapInterval(float(found.low), float(found.high), resamples)
