"""Wilson intervals, rank tests of two systems on the same cases, and adjustment for several tests.

Functions raise ValueError for incompatible shapes or lengths, and for a number out of range.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats


@dataclass(frozen=True, slots=True)
class Interval:
    """Confidence interval of a proportion: `low <= high`, both in [0, 1], or both NaN without observations."""

    low: float
    high: float


def wilson_interval(successes: int, n: int, level: float = 0.95) -> Interval:
    """Wilson score interval of a binomial proportion (without continuity correction).

    With z the normal quantile of `(1 + level) / 2` and `q = successes / n`: `(q + z^2 / 2n +- z sqrt(q (1 - q) / n +
    z^2 / 4n^2)) / (1 + z^2 / n)`. Unlike the Wald interval it is within [0, 1], and its width is not 0 for 0 or n
    successes.

    Args:
        successes: number of successes, 0 to n.
        n: number of observations, which must be independent.
        level: nominal coverage, in (0, 1).

    Returns:
        The interval; NaN at both ends for n = 0.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 1927.

    >>> wilson = wilson_interval(8, 10)
    >>> round(wilson.low, 4), round(wilson.high, 4)
    (0.4902, 0.9433)
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be from 0 to {n}, not {successes}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level must be between 0 and 1, not {level!r}")
    if n == 0:
        return Interval(math.nan, math.nan)
    z = NormalDist().inv_cdf((1.0 + level) / 2.0)
    share = successes / n
    scale = 1.0 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z * math.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n)) / scale
    # For 0 and n successes one bound is exactly 0 or 1, free of rounding.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high)


Scores = npt.ArrayLike | Sequence[float | None]

ROUNDING = 1e-12
"""Relative difference below which two numbers are equal: some thousand units in the last place."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Result of a two-sided paired test.

    Attributes:
        statistic: test statistic; NaN for n = 0.
        p_value: in (0, 1]; NaN for n = 0.
        n: number of pairs with two known scores.
        n_zero: number of these pairs with equal scores, up to rounding.
        left_out: number of pairs with an unknown score.
    """

    statistic: float
    p_value: float
    n: int
    n_zero: int
    left_out: int


def wilcoxon_signed_rank(a: Scores, b: Scores) -> PairedTest:
    """Wilcoxon signed-rank test of the null hypothesis that the differences a - b are symmetric about 0.

    Zero differences are excluded from the ranking (Wilcoxon's method) and counted in `n_zero`; tied differences get
    their mean rank. For up to 50 differences without ties (13 with ties) the p-value is exact; for more it uses the
    normal approximation.

    Args:
        a, b: `(n,)`, scores on the same cases in the same order; NaN (or None) if unknown.

    Returns:
        The test; its statistic is the smaller of the two signed rank sums. The p-value is 1 if no pair differs.

    Source: Wilcoxon, "Individual comparisons by ranking methods", 1945.

    >>> wilcoxon_signed_rank([1, 2, 3, 4, 5, 6, None], [0, 0, 0, 0, 0, 0, 0]).p_value
    0.03125
    """
    first, second, left_out = _pairs(a, b)
    differences = first - second
    nonzero = differences[differences != 0.0]
    n, n_zero = len(differences), len(differences) - len(nonzero)
    if not len(nonzero):
        return PairedTest(0.0 if n else float("nan"), 1.0 if n else float("nan"), n, n_zero, left_out)
    from scipy.stats import wilcoxon

    result = wilcoxon(nonzero)
    return PairedTest(float(result.statistic), float(result.pvalue), n, n_zero, left_out)


def cliffs_delta_per_case(a: Scores, b: Scores) -> float:
    """Paired Cliff's delta, the mean of `sign(a_i - b_i)`: how much more often a is higher than b.

    Args:
        a, b: `(n,)`, scores on the same cases in the same order; pairs with NaN (or None) are left out.

    Returns:
        In [-1, 1]; for outcomes 0 and 1 it is the difference in accuracy. NaN if no pair is known.

    Source: Cliff, 1993, the "within" dominance d_w.

    >>> cliffs_delta_per_case([1, 1, 0, 1], [0, 1, 0, 0])
    0.5
    """
    first, second, _ = _pairs(a, b)
    return float(np.sign(first - second).mean()) if len(first) else float("nan")


def _vector(scores: Scores) -> Floats:
    """Scores as a vector; NaN if unknown."""
    result = np.asarray(scores, dtype=np.float64)
    if result.ndim != 1:
        raise ValueError(f"a vector of scores expected, not {result.shape}")
    return result


def _pairs(a: Scores, b: Scores) -> tuple[Floats, Floats, int]:
    """Pairs of known scores, equal if they differ by rounding alone, and the number of other pairs."""
    first, second = _vector(a), _vector(b)
    if first.shape != second.shape:
        raise ValueError(f"{len(first)} scores of A but {len(second)} of B")
    known = ~(np.isnan(first) | np.isnan(second))
    first, second = first[known], second[known]
    same = np.abs(first - second) < ROUNDING * np.maximum(np.abs(first), np.abs(second))  # False if one is infinite
    return first, np.where(same, first, second), int((~known).sum())


def benjamini_hochberg(p_values: npt.ArrayLike | Sequence[float | None]) -> Floats:
    """Benjamini-Hochberg adjusted p-values, `min over j with p_j >= p_i of m p_j / rank_j`, at most 1.

    Rejecting the hypotheses with an adjusted value of at most q controls the false discovery rate at q, for independent
    or positively dependent tests.

    Args:
        p_values: `(m,)`, in [0, 1]; NaN (or None) for a test without a p-value, which does not count in m.

    Returns:
        `(m,)`, in the same order, each at least its p-value; NaN where that is NaN.

    Source: Benjamini and Hochberg, JRSS B 1995.

    >>> benjamini_hochberg([0.01, None, 0.04, 0.02]).round(4).tolist()
    [0.03, nan, 0.04, 0.03]
    """
    result = np.array(p_values, dtype=np.float64)
    if result.ndim != 1:
        raise ValueError(f"a vector of p-values expected, not {result.shape}")
    known = ~np.isnan(result)
    if ((result[known] < 0.0) | (result[known] > 1.0)).any():
        raise ValueError("a p-value is outside [0, 1]")
    if known.any():
        from scipy.stats import false_discovery_control

        result[known] = false_discovery_control(result[known], method="bh")
    return result
