"""Estimates with cluster-bootstrap intervals, and their text."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.rounds.case_means import LEAST_CASES
from moot.deploy.results.text import Interval, number
from moot.metrics.calibration_error import calibration_null_band, expected_calibration_error
from moot.metrics.cluster_bootstrap import interval_from, resampled_sums
from moot.metrics.distribution import Floats
from moot.metrics.significance import wilson_interval


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
    confidences: Sequence[float] | Floats, outcomes: Sequence[bool] | Floats, bins: int
) -> Calibration:
    """Calibration of confidences, beside that of a perfectly calibrated forecaster.

    Args:
        confidences: confidences in [0, 1], shape `(n,)`.
        outcomes: whether each event occurred, shape `(n,)`.
        bins: number of bins of the error.
    """
    error = expected_calibration_error(confidences, outcomes, bins=bins)
    if len(confidences) < LEAST_CASES:
        return Calibration(error, None)
    band = calibration_null_band(confidences, bins=bins)
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


RESAMPLES = 1000
"""Number of resamples of the groups for every interval."""

_MANY_GROUPS = 20_000
"""Groups above which the resampled means are treated as normally distributed."""

LEAST_GROUPS = 6
"""Fewest groups for an interval: fewer have too few distinct resamples."""


class IntervalEstimate(FrozenModel):
    """Estimate of a figure with its interval; each None when unknown.

    Attributes:
        value: the figure.
        interval: 95 % interval from resampled groups of cases (`metrics.cluster_bootstrap.interval_from`), for an
            accuracy over independent cases Wilson's, for a share of 0 or 1 Wilson's with the number of groups; None
            where neither is defined, and for fewer than `LEAST_GROUPS` groups.
    """

    value: float | None = None
    interval: Interval | None = None


def estimate(
    observed: npt.ArrayLike, resampled: npt.ArrayLike, *, groups: int, lowest: float = 0.0, is_share: bool = False
) -> IntervalEstimate:
    """Estimate of a figure with its interval.

    A binomial share of 0 or 1 gets Wilson's interval: its resamples do not vary, although it is uncertain.

    Args:
        observed: the figure; NaN when unknown.
        resampled: the figure of each resample, shape `(resamples,)`; NaN where undefined.
        groups: number of groups with a case in the figure; there is no interval below `LEAST_GROUPS`.
        lowest: lower bound of the figure; the upper bound is 1.
        is_share: whether the figure is a binomial share, so that Wilson's interval applies.

    >>> resampled = [0.4, 0.5, 0.6]
    >>> in_percent(estimate(0.5, resampled, groups=6)), in_percent(estimate(0.5, resampled, groups=5))
    ('50.0 [31.3, 68.7]', '50.0')
    """
    value = float(np.asarray(observed))
    if isnan(value):
        return IntervalEstimate()
    if groups < LEAST_GROUPS:
        return IntervalEstimate(value=value)
    low, high = (float(end) for end in interval_from(resampled, value, lowest=lowest))
    if not isnan(low) and not isnan(high):
        return IntervalEstimate(value=value, interval=(low, high))
    if not is_share or value not in (0.0, 1.0):
        return IntervalEstimate(value=value)
    ends = wilson_interval(groups if value else 0, groups)
    return IntervalEstimate(value=value, interval=(ends.low, ends.high))


def mean_estimate(values: Floats, groups: Sequence[str], *, is_share: bool = False) -> IntervalEstimate:
    """Estimate of a mean over cases, with its interval from resampled groups of cases.

    Above 20,000 groups, the standard error of the delta method takes the place of the resamples.

    Args:
        values: value of each case, shape `(n,)`.
        groups: group of each case, n of them.
        is_share: see `estimate`.
    """
    independent = len(set(groups))
    if independent > _MANY_GROUPS:
        resampled = _two_resamples(values, groups)
    else:
        drawn = resampled_sums(np.stack([values, np.ones(len(values))], axis=1), groups, RESAMPLES)
        resampled = drawn[:, 0] / drawn[:, 1]
    return estimate(values.mean(), resampled, groups=independent, is_share=is_share)


def _two_resamples(values: Floats, groups: Sequence[str]) -> Floats:
    """Two values with the standard deviation of the resampled means of very many groups, by the delta method."""
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    sums, counts = np.bincount(group, values), np.bincount(group)
    mean = values.mean()
    spread = np.sqrt(len(sums)) * np.std(sums - mean * counts) / len(values)
    found: Floats = mean + spread * np.array([-1.0, 1.0]) / np.sqrt(2.0)
    return found


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
