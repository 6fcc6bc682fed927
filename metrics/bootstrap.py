"""Bootstrap intervals for observations that come in clusters: several replies of one case are not independent."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class BootstrapInterval:
    """A percentile interval.

    Attributes:
        low, high: its ends; NaN when no resample gave a value.
        resamples: how many gave one.
    """

    low: float
    high: float
    resamples: int


def cluster_bootstrap(
    statistic: Callable[[npt.NDArray[np.intp]], float],
    clusters: npt.ArrayLike,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> BootstrapInterval:
    """The interval of a statistic when whole clusters are drawn with replacement.

    Args:
        statistic: called with the numbers of the observations that were drawn; NaN for none.
        clusters: `(n,)`, the cluster of each observation, of any sortable type.
        resamples: how many draws.
        level: share of the draws inside the interval, in (0, 1).
        seed: of the draws.

    Raises:
        ValueError: for an empty `clusters`, or a level outside (0, 1).

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
    known = values[~np.isnan(values)]
    if not len(known):
        return BootstrapInterval(float("nan"), float("nan"), 0)
    low, high = np.quantile(known, [(1.0 - level) / 2, (1.0 + level) / 2])
    return BootstrapInterval(float(low), float(high), len(known))
