"""Confidence intervals of a share."""

import math
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of a share: `low <= high`, both in [0, 1], or both NaN when nothing was observed."""

    low: float
    high: float


def wilson_interval(successes: int, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval of a binomial proportion (without continuity correction).

    With z the normal quantile of `(1 + level) / 2` and `q = successes / n`:
    `(q + z^2 / 2n +- z sqrt(q (1 - q) / n + z^2 / 4n^2)) / (1 + z^2 / n)`.
    Unlike the interval around the plain share it stays in [0, 1] and has a width at 0 of n and n of n.

    Args:
        successes: how many of the n succeeded, 0 to n.
        n: how many were observed, and independent of each other.
        level: coverage, in (0, 1).

    Returns:
        The interval; NaN at both ends for n = 0.

    Raises:
        ValueError: if `successes` is not between 0 and n, n is negative, or `level` is not in (0, 1).

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 1927.

    >>> wilson = wilson_interval(8, 10)
    >>> round(wilson.low, 4), round(wilson.high, 4)
    (0.4902, 0.9433)
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be in (0, 1), not {level!r}")
    if n == 0:
        return Interval(math.nan, math.nan)
    z = NormalDist().inv_cdf((1.0 + level) / 2.0)
    share = successes / n
    scale = 1.0 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z * math.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n)) / scale
    # At the ends the exact bound is the end itself; rounding must not move it.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high)
