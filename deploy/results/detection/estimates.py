"""Estimates with intervals over groups of cases, and their text."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.rounds.case_means import LEAST_CASES
from moot.deploy.results.text import Interval, number
from moot.metrics.calibration_error import calibration_null_band, dependence_inflation, expected_calibration_error
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import coefficient_interval, left_out_sums, mean_interval, share_interval


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
