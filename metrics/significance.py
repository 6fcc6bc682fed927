"""Wilson intervals, and paired significance tests of two systems on the same cases.

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


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Paired difference of two systems' accuracy on the same cases.

    Attributes:
        b: number of cases that only A got right.
        c: number of cases that only B got right.
        difference: accuracy of A minus accuracy of B, `(b - c) / n`, in [-1, 1]; NaN for n = 0.
        p_value: of McNemar's exact test, two-sided; NaN for n = 0.
        n: number of cases on which both outcomes are known.
    """

    b: int
    c: int
    difference: float
    p_value: float
    n: int


def paired_difference(correct_a: Sequence[float | None], correct_b: Sequence[float | None]) -> PairedDifference:
    """McNemar's exact test of the difference of two systems' accuracy on the same cases.

    If both are equally accurate, b of the `b + c` discordant pairs follow a binomial distribution with probability 1/2.
    The p-value is two-sided, `min(1, 2 P(X <= min(b, c)))`, and 1 without discordant pairs.

    Args:
        correct_a: `(n,)`, whether A was right in each case: True or False (1 or 0); None or NaN if unknown.
        correct_b: `(n,)`, likewise for B, on the same cases in the same order.

    Returns:
        See `PairedDifference`; cases with an unknown outcome are left out.

    Source: McNemar, Psychometrika 1947, in its exact (binomial) form.

    >>> result = paired_difference([True, True, False, True], [True, False, False, None])
    >>> result.b, result.c, result.n, round(result.difference, 3)
    (1, 0, 3, 0.333)
    """
    if len(correct_a) != len(correct_b):
        raise ValueError(f"{len(correct_a)} outcomes of A but {len(correct_b)} of B")
    pairs = [
        (a, b)
        for a, b in zip(map(_outcome, correct_a), map(_outcome, correct_b), strict=True)
        if a is not None and b is not None
    ]
    only_a = sum(1 for a, b in pairs if a and not b)
    only_b = sum(1 for a, b in pairs if b and not a)
    n = len(pairs)
    return PairedDifference(
        b=only_a,
        c=only_b,
        difference=(only_a - only_b) / n if n else math.nan,
        p_value=_sign_test(only_a, only_b) if n else math.nan,
        n=n,
    )


def paired_difference_interval(b: int, c: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Adjusted Wald interval of a paired difference of proportions (Bonett and Price).

    With `p = (b + 1) / (n + 2)`, `q = (c + 1) / (n + 2)` and z the normal quantile of `(1 + level) / 2`: `p - q +- z
    sqrt((p + q - (p - q)^2) / (n + 2))`, truncated to [-1, 1]. Its coverage is near the nominal one even for few
    discordant pairs.

    Args:
        b, c: number of cases that only A, only B got right.
        n: number of cases on which both outcomes are known; they must be independent.
        level: nominal coverage, in (0, 1).

    Returns:
        Lower and upper end, in [-1, 1]; NaN for n = 0.

    Source: Bonett and Price, "Adjusted Wald confidence interval for a difference of binomial proportions based on
    paired data", Journal of Educational and Behavioral Statistics 2012.

    >>> [round(end, 3) for end in paired_difference_interval(8, 2, 50)]
    [-0.011, 0.242]
    """
    if min(b, c, n - b - c) < 0:
        raise ValueError(f"{b} and {c} discordant pairs of {n}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level must be between 0 and 1, not {level:g}")
    if not n:
        return math.nan, math.nan
    p, q = (b + 1) / (n + 2), (c + 1) / (n + 2)
    half = NormalDist().inv_cdf((1.0 + level) / 2.0) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    return max(-1.0, p - q - half), min(1.0, p - q + half)


def _sign_test(b: int, c: int) -> float:
    """Exact two-sided p-value of b against c with probability 1/2."""
    from scipy.stats import binomtest

    return float(binomtest(b, b + c, 0.5).pvalue) if b + c else 1.0


def _outcome(value: float | None) -> bool | None:
    """Validated outcome; None if unknown."""
    if value is None or math.isnan(value):
        return None
    if value not in (0, 1):
        raise ValueError(f"an outcome must be true, false or unknown, not {value!r}")
    return bool(value)


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
