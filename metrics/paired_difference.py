"""Paired differences of two systems on the same cases, with a test and an interval that always agree.

The interval contains exactly the differences that the test does not reject at the same level. Cases of one group are
dependent, as are those about one text: a group counts as one observation of its sum. Functions raise ValueError for
incompatible lengths, and for a number out of range.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from moot.metrics.jackknife import LEAST_CLUSTERS

Groups = Sequence[Hashable] | None
"""Group of each case; None if all cases are independent."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Paired difference of two systems' accuracy on the same cases.

    Attributes:
        b: number of cases that only A got right.
        c: number of cases that only B got right.
        difference: accuracy of A minus accuracy of B, `(b - c) / n`, in [-1, 1]; NaN for n = 0.
        p_value: two-sided, of the null hypothesis of equal accuracies; NaN for n = 0.
        low, high: ends of the interval of the difference, in [-1, 1]; NaN for n = 0.
        n: number of cases on which both outcomes are known.
        groups: number of their groups; n if they are independent.
    """

    b: int
    c: int
    difference: float
    p_value: float
    low: float
    high: float
    n: int
    groups: int


def paired_difference(
    correct_a: Sequence[float | None],
    correct_b: Sequence[float | None],
    groups: Groups = None,
    level: float = 0.95,
) -> PairedDifference:
    """McNemar's test of the difference of two systems' accuracy on the same cases, and its score interval.

    With b and c the discordant pairs, the test at difference d is `|b - c - n d| / sqrt(V(d) F)` against the normal
    distribution. V(d) is the variance of b - c at its restricted maximum likelihood (Tango's score test), which is `b +
    c` for d = 0: McNemar's test without continuity correction. F is the variance inflation by groups, `sum over the
    groups of (b_k - c_k)^2 / (b + c)`: for d = 0 Obuchowski's test without its factor K / (K - 1) for K groups, so that
    K independent cases have McNemar's. It is at least 1, which independent cases have; if no pair is discordant it is
    `sum n_k^2 / n`, as of groups whose cases are all alike. The interval has all d that the test does not reject, so
    that it excludes 0 exactly if p is below `1 - level`.

    No p-value is below `2^(1 - groups)`, that of the sign test if all groups favour the same system: fewer than six
    groups show no difference at 5 %, and their 95 % interval is [-1, 1].

    Args:
        correct_a: `(n,)`, whether A was right in each case: True or False (1 or 0); None or NaN if unknown.
        correct_b: `(n,)`, likewise for B, on the same cases in the same order.
        groups: `(n,)`, group of each case; None if all cases are independent.
        level: nominal coverage of the interval, in (0, 1).

    Returns:
        See `PairedDifference`; cases with an unknown outcome are left out.

    Source: McNemar, Psychometrika 1947; Tango, "Equivalence test and confidence interval for the difference in
    proportions for the paired-sample design", Statistics in Medicine 1998; Obuchowski, "On the comparison of correlated
    proportions for clustered data", Statistics in Medicine 1998. Fagerland, Lydersen and Laake, BMC Medical Research
    Methodology 2013, on its level for few pairs.

    >>> result = paired_difference([True] * 14 + [False] * 2 + [True] * 34, [False] * 14 + [True] * 36)
    >>> result.b, result.c, result.n, result.difference, round(result.p_value, 4)
    (14, 2, 50, 0.24, 0.0027)
    >>> round(result.low, 3), round(result.high, 3)
    (0.095, 0.388)
    """
    known = _known_outcomes(correct_a, correct_b, groups, level)
    n, number = len(known), len({group for _, group in known})
    if not n:
        return PairedDifference(0, 0, math.nan, math.nan, math.nan, math.nan, n=0, groups=0)
    b, c = sum(sign > 0 for sign, _ in known), sum(sign < 0 for sign, _ in known)
    inflation = _variance_inflation(known)
    z = abs(b - c) / math.sqrt((b + c) * inflation) if b != c else 0.0
    p = max(2.0 * NormalDist().cdf(-z), 2.0 ** (1 - number))
    low, high = _score_interval(b, c, n, inflation, level) if 2.0 ** (1 - number) < 1.0 - level else (-1.0, 1.0)
    return PairedDifference(b, c, (b - c) / n, min(p, 1.0), low, high, n=n, groups=number)


def _known_outcomes(
    correct_a: Sequence[float | None], correct_b: Sequence[float | None], groups: Groups, level: float
) -> list[tuple[int, Hashable]]:
    """Validated pairs with known outcomes: A's outcome minus B's, and the group."""
    labels = range(len(correct_a)) if groups is None else groups
    if not len(correct_a) == len(correct_b) == len(labels):
        raise ValueError(f"{len(correct_a)} outcomes of A but {len(correct_b)} of B, and {len(labels)} groups")
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level must be between 0 and 1, not {level:g}")
    outcomes = zip(map(_outcome, correct_a), map(_outcome, correct_b), labels, strict=True)
    return [(a - b, group) for a, b, group in outcomes if a is not None and b is not None]


def _outcome(value: float | None) -> bool | None:
    """Validated outcome; None if unknown."""
    if value is None or math.isnan(value):
        return None
    if value not in (0, 1):
        raise ValueError(f"an outcome must be true, false or unknown, not {value!r}")
    return bool(value)


def _variance_inflation(known: Sequence[tuple[int, Hashable]]) -> float:
    """Variance of the sum of the signs as a multiple of that of independent cases, at least 1."""
    sums, sizes = dict[Hashable, int](), dict[Hashable, int]()
    for sign, group in known:
        sums[group], sizes[group] = sums.get(group, 0) + sign, sizes.get(group, 0) + 1
    discordant = sum(sign != 0 for sign, _ in known)
    if not discordant:
        return sum(size**2 for size in sizes.values()) / len(known)
    return max(1.0, sum(each**2 for each in sums.values()) / discordant)


def _score_interval(b: int, c: int, n: int, inflation: float, level: float) -> tuple[float, float]:
    """Differences that the score test does not reject."""
    critical = NormalDist().inv_cdf((1.0 + level) / 2.0) ** 2 * inflation

    def rejects(d: float) -> bool:
        return (b - c - n * d) ** 2 > critical * _variance(b, c, n, d)

    return _end(rejects, (b - c) / n, -1.0), _end(rejects, (b - c) / n, 1.0)


def _variance(b: int, c: int, n: int, d: float) -> float:
    """Variance of b - c if the true difference is d, at the restricted maximum likelihood of the discordance."""
    linear = (2 * n - b + c) * d - b - c
    only_b = (math.sqrt(max(0.0, linear**2 + 8 * n * c * d * (1.0 - d))) - linear) / (4 * n)
    return n * (2.0 * only_b + d * (1.0 - d))


def _end(rejects: Callable[[float], bool], inside: float, outside: float) -> float:
    """Last value that is not rejected on the way from `inside`, by bisection; `outside` if that is not rejected."""
    if not rejects(outside):
        return outside
    while abs(outside - inside) > 1e-9:
        middle = (inside + outside) / 2.0
        inside, outside = (inside, middle) if rejects(middle) else (middle, outside)
    return inside


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """Mean of values by case, such as paired differences, with a test that it is 0.

    Attributes:
        mean: mean over the cases; NaN for n = 0.
        p_value: two-sided; NaN for fewer than `LEAST_CLUSTERS` groups that vary.
        low, high: ends of the interval; NaN likewise, and if the groups do not vary.
        n: number of cases with a value.
        groups: number of their groups.
    """

    mean: float
    p_value: float
    low: float
    high: float
    n: int
    groups: int


def mean_difference(values: Sequence[float | None], groups: Groups = None, level: float = 0.95) -> MeanDifference:
    """Student's t test and interval of a mean over cases, with the variance between groups.

    With S_k the sum over group k of n_k values, K groups and `v = K / (K - 1) sum (S_k - mean n_k)^2`, the interval is
    `mean +- t sqrt(v) / n`, t being the quantile for K - 1 degrees of freedom. For independent cases it is the paired t
    test. The interval excludes 0 exactly if p is below `1 - level`. Fewer than `LEAST_CLUSTERS` groups that vary
    have neither.

    Groups that do not vary have no interval. Their p is 1 for a mean of 0, else that of the sign test, `2^(1 - K)`.

    Args:
        values: `(n,)`, one per case; None or NaN is left out.
        groups: `(n,)`, group of each case; None if all cases are independent.
        level: nominal coverage of the interval, in (0, 1).

    Source: Student, Biometrika 1908; Liang and Zeger, Biometrika 1986, for the variance.

    >>> result = mean_difference([0.1, 0.3, 0.2, 0.4, 0.3, -0.1, 0.2, 0.3, 0.1, 0.2])
    >>> round(result.mean, 3), round(result.p_value, 4), round(result.low, 3), round(result.high, 3)
    (0.2, 0.0015, 0.099, 0.301)
    """
    labels = range(len(values)) if groups is None else groups
    if len(values) != len(labels):
        raise ValueError(f"{len(values)} values but {len(labels)} groups")
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level must be between 0 and 1, not {level:g}")
    known = [(v, group) for v, group in zip(values, labels, strict=True) if v is not None and not math.isnan(v)]
    place = {group: number for number, group in enumerate(dict.fromkeys(group for _, group in known))}
    n, number = len(known), len(place)
    if not n:
        return MeanDifference(math.nan, math.nan, math.nan, math.nan, n=0, groups=0)
    numbers = np.array([value for value, _ in known])
    codes = [place[group] for _, group in known]
    mean = float(numbers.mean())
    residuals = np.bincount(codes, numbers - mean)
    spread = math.sqrt(float((residuals**2).sum()) * number / (number - 1)) / n if number > 1 else 0.0
    if spread <= 1e-12 * float(np.abs(numbers).max()):
        p = 2.0 ** (1 - number) if mean else 1.0
        return MeanDifference(mean, p, math.nan, math.nan, n=n, groups=number)
    if number < LEAST_CLUSTERS:
        return MeanDifference(mean, math.nan, math.nan, math.nan, n=n, groups=number)
    from scipy.special import stdtr, stdtrit

    half = spread * float(stdtrit(number - 1, (1.0 + level) / 2.0))
    p = 2.0 * float(stdtr(number - 1, -abs(mean) / spread))
    return MeanDifference(mean, p, mean - half, mean + half, n=n, groups=number)
