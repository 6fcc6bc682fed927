"""Statistics of the token log-probabilities in a window of a reply."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Statistic = Literal["mean", "median", "min", "max", "range", "variance", "std", "slope"]
"""Names of the statistics."""

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)


def _slope(windows: Floats) -> Floats:
    """Least-squares slope on the token's number; NaN for windows of one token."""
    centred = np.arange(windows.shape[-1]) - (windows.shape[-1] - 1) / 2
    spread = float(centred @ centred)
    if not spread:
        return np.full(windows.shape[:-1], np.nan)
    # a matrix product rounds one window alone otherwise than among many
    return np.asarray((windows * centred).sum(axis=-1) / spread)


_FUNCTIONS: dict[Statistic, Callable[[Floats], Floats]] = {
    "mean": lambda windows: windows.mean(axis=-1),
    "median": lambda windows: np.median(windows, axis=-1),
    "min": lambda windows: windows.min(axis=-1),
    "max": lambda windows: windows.max(axis=-1),
    "range": lambda windows: np.ptp(windows, axis=-1),
    "variance": lambda windows: windows.var(axis=-1),
    "std": lambda windows: windows.std(axis=-1),
    "slope": _slope,
}


def window_statistic(logprobs: npt.ArrayLike, statistic: Statistic) -> Floats:
    """A statistic of each window of log-probabilities.

    Args:
        logprobs: `(..., k)`, natural logarithms; k tokens, at least one.
        statistic: `mean`, `median`, `min`, `max`; `range` = max - min; `variance` and `std` of the population; `slope`
            of the log-probability on the token's number.

    Returns:
        `(...)`; NaN where one of a window's values is not finite, and for the slope of one token.

    Raises:
        ValueError: for an empty window.

    Source: "Early-Token Confidence", its 8 statistics.

    >>> float(window_statistic([-1.0, -2.0, -3.0], "slope"))
    -1.0
    """
    windows = np.asarray(logprobs, np.float64)
    if not windows.ndim or not windows.shape[-1]:
        raise ValueError("a window holds at least one token")
    known = np.asarray(np.isfinite(windows).all(axis=-1))
    found = _FUNCTIONS[statistic](np.where(known[..., np.newaxis], windows, 0.0))
    return np.where(known, found, np.nan)
