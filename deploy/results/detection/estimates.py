"""Estimates with cluster-bootstrap intervals."""

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
    """Expected calibration error; both are None with fewer than `LEAST_CASES` cases, which can have nearly any error.

    Attributes:
        error: the error.
        null: range of the error of 95 % of perfectly calibrated forecasters with these confidences.
    """

    error: float | None
    null: Interval | None


def measure_calibration(
    confidences: Sequence[float] | Floats, outcomes: Sequence[bool] | Floats, bins: int
) -> Calibration:
    """Measures the calibration of confidences against a calibrated forecaster's.

    Args:
        confidences: `(n,)`, in [0, 1].
        outcomes: `(n,)`, whether what each is of is true.
        bins: of the error.
    """
    if len(confidences) < LEAST_CASES:
        return Calibration(None, None)
    band = calibration_null_band(confidences, bins=bins)
    return Calibration(expected_calibration_error(confidences, outcomes, bins=bins), (band.low, band.high))


def calibration_words(error: float | None, null: Interval | None, n: int) -> str:
    """Formats a calibration error beside that of a calibrated forecaster, or that there are too few cases for one.

    >>> calibration_words(0.3, (0.043, 0.267), 20), calibration_words(None, None, 2)
    ('0.3; if calibrated 0.043 to 0.267 (95 %)', 'too few cases: n = 2')
    """
    if error is None or null is None:
        return too_few_words(n)
    return f"{number(error)}; if calibrated {null_words(null)}"


def too_few_words(n: int) -> str:
    """Text in place of a figure of fewer than `LEAST_CASES` cases."""
    return f"too few cases: n = {n:,}"


def null_words(null: Interval) -> str:
    """Formats the range of a calibrated forecaster's error.

    >>> null_words((0.043, 0.267))
    '0.043 to 0.267 (95 %)'
    """
    return f"{number(null[0])} to {number(null[1])} (95 %)"


RESAMPLES = 1000
"""Number of resamples of the groups for every interval."""

_MANY_GROUPS = 20_000
"""Groups above which resamples of a mean are normal for all that can be seen."""

LEAST_GROUPS = 6
"""Minimum number of groups for an interval: fewer have too few distinct resamples."""


class IntervalEstimate(FrozenModel):
    """An estimate with its interval; None when unknown.

    Attributes:
        value: the figure.
        interval: 95 %, from resampled groups of cases (`metrics.cluster_bootstrap.interval_from`); for an accuracy
            over independent cases Wilson's; for a share of 0 or 1, Wilson's with the number of groups; None where
            neither is defined, and with fewer than `LEAST_GROUPS` groups.
    """

    value: float | None = None
    interval: Interval | None = None


def estimate(
    observed: npt.ArrayLike, resampled: npt.ArrayLike, *, groups: int, lowest: float = 0.0, is_share: bool = False
) -> IntervalEstimate:
    """Estimates a figure with its interval.

    Where all are right (or none), resamples do not vary, though uncertainty remains: then the interval is Wilson's.

    Args:
        observed: one number; NaN when unknown.
        resampled: `(resamples,)`, the figure of each resample; NaN where undefined.
        groups: number of groups with a claim in the figure; there is no interval below `LEAST_GROUPS`.
        lowest: its lower bound; the upper bound is 1.
        is_share: whether it is a binomial share, so that Wilson's interval applies.

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
    """Estimates a mean over cases, with its interval from resampled groups of cases.

    Args:
        values: `(n,)`.
        groups: the group of each case.
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
    """Two means with the standard deviation that resamples of very many groups have, by the delta method."""
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    sums, counts = np.bincount(group, values), np.bincount(group)
    mean = values.mean()
    spread = np.sqrt(len(sums)) * np.std(sums - mean * counts) / len(values)
    found: Floats = mean + spread * np.array([-1.0, 1.0]) / np.sqrt(2.0)
    return found


def in_units(
    found: IntervalEstimate, digits: int = 3, *, unknown: str = "unknown", times: float = 1.0, sign: str = ""
) -> str:
    """Formats an estimate, scaled by a factor; `sign` is `+` to show the sign of positive numbers.

    >>> in_units(IntervalEstimate(value=0.25, interval=(0.125, 0.5)), 2), in_units(IntervalEstimate())
    ('0.25 [0.12, 0.50]', 'unknown')
    """
    if found.value is None:
        return unknown
    value, *ends = (f"{times * each:{sign}z.{digits}f}" for each in (found.value, *(found.interval or ())))
    return f"{value} [{', '.join(ends)}]" if ends else value


def in_percent(found: IntervalEstimate) -> str:
    """Formats a share in percent, without the percent sign, as a cell of a table.

    >>> in_percent(IntervalEstimate(value=0.667, interval=(0.6, 0.72))), in_percent(IntervalEstimate())
    ('66.7 [60.0, 72.0]', '-')
    """
    return in_units(found, 1, unknown="-", times=100.0)


def without_interval(found: IntervalEstimate) -> str:
    """Formats a share in percent without its interval."""
    return in_percent(IntervalEstimate(value=found.value))


def signed_points(found: IntervalEstimate) -> str:
    """Formats a difference of shares in points.

    >>> signed_points(IntervalEstimate(value=0.02, interval=(-0.01, 0.05)))
    '+2.0 [-1.0, +5.0]'
    """
    return in_units(found, 1, times=100.0, sign="+")


def in_seconds(value: float | None) -> str:
    """Formats seconds as a cell of a table, or `unknown`; a short duration is not printed as 0.

    >>> in_seconds(10.39), in_seconds(0.00312)
    ('10.39', '0.0031')
    """
    if value is None:
        return "unknown"
    return f"{value:,.2f}" if value >= 0.1 or value == 0.0 else f"{value:.2g}"
