"""Shares, means and differences over the cases of a run, each with its interval over groups of dependent cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from math import isnan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.text import Interval, cases, count, in_groups, number, p_value
from moot.metrics.calibration_error import calibration_null_band, dependence_inflation, expected_calibration_error
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import LEAST_CLUSTERS, coefficient_interval, left_out_sums, mean_interval, share_interval
from moot.metrics.paired_difference import paired_difference
from moot.metrics.significance import wilson_interval

GroupOf = Callable[[str], str]
"""The group of a case, such as the text that several cases are about; of a case that stands alone its id."""

LEAST_CASES = LEAST_CLUSTERS
"""Fewest groups of cases for an interval, and fewest cases for a calibration error."""

LEVEL = 0.95
"""Coverage of the intervals."""


class MeanOverCases(FrozenModel):
    """Mean over cases; None is unknown.

    Attributes:
        low, high: 95 % interval over groups of cases (see `ratio_interval`); None with fewer than ten groups, and
            where their means are all equal.
        cases: number of cases with a value.
    """

    mean: float | None
    low: float | None
    high: float | None
    cases: int


def interval_words(low: float | None, high: float | None, times: float = 1.0, digits: int = 3) -> str:
    """Text of an interval, scaled by `times`; `unknown` without one."""
    known = None if low is None or high is None else [number(times * end, digits) for end in (low, high)]
    return " to ".join(known) if known else number(None)


def grouped_mean(values: Floats, groups: npt.ArrayLike, cases: npt.ArrayLike | None = None) -> MeanOverCases:
    """Mean of the known values, with its interval over groups of cases.

    Args:
        values: shape `(n,)`, NaN where unknown; a case counts once per value.
        groups: group of each value's case, shape `(n,)`; cases of a group are dependent.
        cases: case of each value, shape `(n,)`; None if each value is another case's.
    """
    known = ~np.isnan(values)
    values, n = values[known], int(known.sum())
    if not n:
        return MeanOverCases(mean=None, low=None, high=None, cases=0)
    codes = np.unique(np.asarray(groups)[known], return_inverse=True)[1]
    sums: Floats = np.bincount(codes, values).astype(np.float64)
    counts: Floats = np.bincount(codes).astype(np.float64)
    low, high = ratio_interval(sums, counts, LEVEL)
    if low is not None and values.min() >= 0.0:
        low = max(0.0, low)  # such a measure has no negative mean
    mean = float(sums.sum() / counts.sum())
    return MeanOverCases(
        mean=mean, low=low, high=high, cases=n if cases is None else len(np.unique(np.asarray(cases)[known]))
    )


def grouped_share_interval(values: Floats, groups: npt.ArrayLike) -> tuple[float, float] | None:
    """95 % interval of a mean of values in [0, 1], such as an accuracy: Wilson's for independent outcomes.

    Dependent cases, and values between 0 and 1, have Wilson's interval with the effective number of cases (see
    `moot.metrics.jackknife.share_interval`); fewer than `LEAST_CASES` groups have none.

    Args:
        values: shape `(n,)`, at least one.
        groups: group of each value's case, shape `(n,)`; cases of a group are dependent.
    """
    distinct, codes = np.unique(np.asarray(groups), return_inverse=True)
    if len(distinct) == len(values) and np.isin(values, (0.0, 1.0)).all():
        ends = wilson_interval(int(values.sum()), len(values))
        return ends.low, ends.high
    if len(distinct) < LEAST_CASES:
        return None
    left_out = (values.sum() - np.bincount(codes, values)) / (len(values) - np.bincount(codes))
    low, high = share_interval(left_out, float(values.mean()))
    return None if math.isnan(low) else (low, high)


def mean_over_cases(values: Iterable[tuple[str, float | None]], group_of: GroupOf) -> MeanOverCases:
    """`grouped_mean` of pairs of case and value.

    Args:
        values: pairs of case and value.
        group_of: cases of a group are dependent.
    """
    pairs = list(values)
    cases = [case_id for case_id, _ in pairs]
    numbers = np.array([np.nan if value is None else value for _, value in pairs], np.float64)
    return grouped_mean(numbers, np.array(list(map(group_of, cases)), np.str_), np.array(cases, np.str_))


def share_over_cases(values: Iterable[tuple[str, float]], group_of: GroupOf) -> tuple[float, float] | None:
    """`grouped_share_interval` of pairs of case and value, at least one.

    Args:
        values: pairs of case and value.
        group_of: cases of a group are dependent.
    """
    cases, shares = zip(*values, strict=True)
    return grouped_share_interval(np.array(shares, np.float64), np.array(list(map(group_of, cases)), np.str_))


def ratio_interval(above: Floats, below: Floats, level: float) -> tuple[float, float] | tuple[None, None]:
    """Interval of the ratio of two sums over groups of cases (`moot.metrics.jackknife.mean_interval`).

    None for fewer than `LEAST_CASES` groups, and for groups that do not differ.

    Args:
        above, below: contribution of each group to the two sums.
    """
    if len(above) < LEAST_CASES:
        return None, None
    left_out = (above.sum() - above) / (below.sum() - below)
    low, high = mean_interval(left_out, float(above.sum() / below.sum()), level)
    return (None, None) if math.isnan(low) else (low, high)


class Calibration(NamedTuple):
    """Expected calibration error.

    Attributes:
        error: the error.
        null: central 95 % of the error of a perfectly calibrated forecaster with these confidences; None for fewer than
            `LEAST_CASES` cases, whose error is arbitrary: texts then state the number of cases instead.
    """

    error: float
    null: Interval | None


def measure_calibration(
    confidences: Sequence[float] | Floats, outcomes: Sequence[bool] | Floats, groups: Sequence[str], bins: int
) -> Calibration:
    """Calibration of confidences, beside that of a perfectly calibrated forecaster.

    Args:
        confidences: confidences in [0, 1], shape `(n,)`.
        outcomes: whether each event occurred, shape `(n,)`.
        groups: group of each case, n of them: outcomes of one are dependent.
        bins: number of bins of the error.
    """
    error = expected_calibration_error(confidences, outcomes, bins=bins)
    if len(confidences) < LEAST_CASES:
        return Calibration(error, None)
    inflation = dependence_inflation(confidences, outcomes, groups)
    band = calibration_null_band(confidences, bins=bins, inflation=inflation)
    return Calibration(error, (band.low, band.high))


def calibration_words(error: float | None, null: Interval | None, n: int) -> str:
    """Text of a calibration error beside that of a perfectly calibrated forecaster, or of too few cases.

    >>> calibration_words(0.3, (0.043, 0.267), 20), calibration_words(0.3, None, 2)
    ('0.3; if calibrated 0.043 to 0.267 (95 %)', 'too few cases: n = 2')
    """
    if null is None:
        return too_few_words(n)
    return f"{number(error)}; if calibrated {null_words(null)}"


def too_few_words(n: int) -> str:
    """Text in place of a figure of fewer than `LEAST_CASES` cases."""
    return f"too few cases: n = {n:,}"


def null_words(null: Interval) -> str:
    """Text of the range of a perfectly calibrated forecaster's error.

    >>> null_words((0.043, 0.267))
    '0.043 to 0.267 (95 %)'
    """
    return f"{number(null[0])} to {number(null[1])} (95 %)"


class IntervalEstimate(FrozenModel):
    """Estimate of a figure with its interval; each None when unknown.

    Attributes:
        value: the figure.
        interval: 95 % interval over groups of cases (`metrics.jackknife`); None where it is not defined, and for fewer
            than `metrics.jackknife.LEAST_CLUSTERS` groups.
    """

    value: float | None = None
    interval: Interval | None = None


def with_ends(value: float, low: npt.ArrayLike, high: npt.ArrayLike) -> IntervalEstimate:
    """Estimate with the ends of its interval; each NaN when unknown."""
    if isnan(value):
        return IntervalEstimate()
    ends = float(np.asarray(low)), float(np.asarray(high))
    return IntervalEstimate(value=value, interval=None if isnan(sum(ends)) else ends)


def coefficient(observed: npt.ArrayLike, left_out: npt.ArrayLike, *, lowest: float = 0.0) -> IntervalEstimate:
    """Estimate of a bounded figure, such as an F1 or a correlation, with its interval.

    Args:
        observed: the figure; NaN when unknown.
        left_out: the figure without each group that has a case in it, shape `(groups,)`; NaN where undefined.
        lowest: lower bound of the figure; the upper bound is 1.

    >>> in_percent(coefficient(0.5, [0.48, 0.52] * 10)), in_percent(coefficient(0.5, [0.48, 0.52] * 4))
    ('50.0 [32.5, 67.5]', '50.0')
    """
    return with_ends(float(np.asarray(observed)), *coefficient_interval(left_out, observed, lowest=lowest))


def share_estimate(observed: npt.ArrayLike, left_out: npt.ArrayLike) -> IntervalEstimate:
    """Estimate of a proportion of cases with its interval; see `coefficient` for the arguments."""
    value = float(np.asarray(observed))
    return with_ends(value, *share_interval(left_out, value))


def mean_estimate(values: Floats, groups: Sequence[str], *, is_share: bool = False) -> IntervalEstimate:
    """Estimate of a mean over cases, with its interval over groups of cases.

    Args:
        values: value of each case, in [0, 1], shape `(n,)`.
        groups: group of each case, n of them.
        is_share: whether the values are 0 or 1.
    """
    mean, sums = float(values.mean()), left_out_sums(np.stack([values, np.ones(len(values))], axis=1), groups)
    left_out = sums[:, 0] / np.where(sums[:, 1] > 0.0, sums[:, 1], np.nan)
    if is_share:
        return share_estimate(mean, left_out)
    low, high = mean_interval(left_out, mean)
    return with_ends(mean, *np.clip([low, high], 0.0, 1.0))


def in_units(
    found: IntervalEstimate, digits: int = 3, *, unknown: str = "unknown", times: float = 1.0, sign: str = ""
) -> str:
    """Text of an estimate, scaled by `times`; `sign` is `+` to show the sign of positive numbers.

    >>> in_units(IntervalEstimate(value=0.25, interval=(0.125, 0.5)), 2), in_units(IntervalEstimate())
    ('0.25 [0.12, 0.50]', 'unknown')
    """
    if found.value is None:
        return unknown
    value, *ends = (f"{times * each:{sign}z.{digits}f}" for each in (found.value, *(found.interval or ())))
    return f"{value} [{', '.join(ends)}]" if ends else value


def in_percent(found: IntervalEstimate) -> str:
    """Text of a share in percent, without the percent sign, for a cell of a table.

    >>> in_percent(IntervalEstimate(value=0.667, interval=(0.6, 0.72))), in_percent(IntervalEstimate())
    ('66.7 [60.0, 72.0]', '-')
    """
    return in_units(found, 1, unknown="-", times=100.0)


def without_interval(found: IntervalEstimate) -> str:
    """Text of a share in percent, without its interval."""
    return in_percent(IntervalEstimate(value=found.value))


def signed_points(found: IntervalEstimate) -> str:
    """Text of a difference of shares in percentage points.

    >>> signed_points(IntervalEstimate(value=0.02, interval=(-0.01, 0.05)))
    '+2.0 [-1.0, +5.0]'
    """
    return in_units(found, 1, times=100.0, sign="+")


def in_seconds(value: float | None) -> str:
    """Text of seconds for a cell of a table, or `unknown`; a short duration is not printed as 0.

    >>> in_seconds(10.39), in_seconds(0.00312)
    ('10.39', '0.0031')
    """
    if value is None:
        return "unknown"
    return f"{value:,.2f}" if value >= 0.1 or value == 0.0 else f"{value:.2g}"


_LEVEL = 0.05
"""Two-sided level below which a difference is called one."""


class PairedComparison(FrozenModel):
    """Paired comparison of two methods on the same cases; see `moot.metrics.paired_difference`.

    Attributes:
        only_first, only_second: cases that only this method answered correctly.
        difference: accuracy of the first minus accuracy of the second; None for n = 0.
        p_value: two-sided, of McNemar's test over groups of cases; None for n = 0.
        n: cases that can be scored for both.
        interval: 95 % interval of the difference, which excludes 0 exactly if p is below 0.05; None for n = 0.
        groups: number of groups of dependent cases among them; None if all are independent.
    """

    only_first: int
    only_second: int
    difference: float | None
    p_value: float | None
    n: int
    interval: Interval | None = None
    groups: int | None = None

    @property
    def differs(self) -> bool | None:
        """Whether the test shows a difference at 5 %; None for n = 0."""
        return None if self.p_value is None else self.p_value < _LEVEL


def compare_paired(
    first: Sequence[bool | None], second: Sequence[bool | None], groups: Sequence[str] | None = None
) -> PairedComparison:
    """Paired comparison of two methods on the same cases, in the same order, where both outcomes are known.

    Args:
        first, second: whether each method is right, by case.
        groups: group of each case, as of `References.group`; None if all cases are independent.
    """
    found = paired_difference(first, second, groups)
    return PairedComparison(
        only_first=found.b,
        only_second=found.c,
        difference=found.difference if found.n else None,
        p_value=found.p_value if found.n else None,
        n=found.n,
        interval=(found.low, found.high) if found.n else None,
        groups=found.groups if found.groups < found.n else None,
    )


def paired_sentence(found: PairedComparison, first: str, second: str) -> str:
    """Paired comparison in words: the difference, whether it is shown, and the cases behind it.

    Args:
        first, second: adverbials that name the two methods, such as "with the debates" and "without".

    >>> found = PairedComparison(
    ...     only_first=1, only_second=3, difference=-0.02, p_value=0.3173, n=99, interval=(-0.06, 0.02)
    ... )
    >>> print(paired_sentence(found, "in A", "in B"))
    -2.0 points [-6.0, +2.0], not shown to differ (1 case right only in A, 3 only in B; McNemar p = 0.3173, n = 99)
    """
    if found.difference is None:
        return "unknown (no case can be compared)"
    difference, *ends = (f"{100 * each:+z.1f}" for each in (found.difference, *(found.interval or ())))
    points = f"{difference} points" + (f" [{', '.join(ends)}]" if ends else "")
    shown = {True: ", shown to differ", False: ", not shown to differ", None: ""}[found.differs]
    behind = f"{cases(found.only_first)} right only {first}, {count(found.only_second)} only {second}"
    return f"{points}{shown} ({behind}; {_mcnemar(found)}, n = {in_groups(found.n, found.groups)})"


def paired_words(found: PairedComparison) -> str:
    """Paired comparison in a cell of a table.

    >>> paired_words(PairedComparison(only_first=1, only_second=3, difference=-0.02, p_value=0.4, n=100, groups=40))
    '-2.0 points, McNemar p = 0.4000 (1 and 3 of n = 100 in 40 groups)'
    """
    if found.difference is None:
        return "unknown (no case can be compared)"
    return (
        f"{100 * found.difference:+z.1f} points, {_mcnemar(found)} "
        f"({found.only_first} and {found.only_second} of n = {in_groups(found.n, found.groups)})"
    )


def _mcnemar(found: PairedComparison) -> str:
    sign = "p" if (found.p_value or 0.0) < 1e-4 else "p ="
    return f"McNemar {sign} {p_value(found.p_value)}"
