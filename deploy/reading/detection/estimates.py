"""A figure with its interval, from what it is and what it is when whole groups are drawn anew."""

from __future__ import annotations

from math import isnan

import numpy as np
import numpy.typing as npt

from moot.deploy.reading.frozen import Frozen
from moot.deploy.reading.text import Interval
from moot.metrics.cluster_bootstrap import interval_from
from moot.metrics.significance import wilson_interval

RESAMPLES = 1000
"""Of the groups, behind every interval."""

LEAST_GROUPS = 6
"""Behind an interval: of fewer groups there are too few distinct resamples for their spread to mean anything."""


class Estimate(Frozen):
    """A figure; None when it is unknown.

    Attributes:
        value: the figure.
        interval: 95 %, from the spread of the figure when whole groups of cases are drawn anew
            (`metrics.cluster_bootstrap.interval_from`); of a share of 0 or 1, Wilson's of so many groups; None where
            neither leaves anything to go by, and with fewer than `LEAST_GROUPS` groups.
    """

    value: float | None = None
    interval: Interval | None = None


def estimate(
    observed: npt.ArrayLike, resampled: npt.ArrayLike, *, groups: int, lowest: float = 0.0, is_share: bool = False
) -> Estimate:
    """A figure and its interval.

    Where all are right (or none), resamples do not vary; as many groups that are right still leave room for doubt.

    Args:
        observed: one number; NaN when unknown.
        resampled: `(resamples,)`, the same of each resample; NaN where one has none.
        groups: how many have a claim that enters the figure; there is no interval below `LEAST_GROUPS`.
        lowest: the least that it can be; 1 is the most.
        is_share: whether it is a share of cases that chance had a part in, so that Wilson's interval fits.

    >>> resampled = [0.4, 0.5, 0.6]
    >>> in_percent(estimate(0.5, resampled, groups=6)), in_percent(estimate(0.5, resampled, groups=5))
    ('50.0 [31.3, 68.7]', '50.0')
    """
    value = float(np.asarray(observed))
    if isnan(value):
        return Estimate()
    if groups < LEAST_GROUPS:
        return Estimate(value=value)
    low, high = (float(end) for end in interval_from(resampled, value, lowest=lowest))
    if not isnan(low) and not isnan(high):
        return Estimate(value=value, interval=(low, high))
    if not is_share or value not in (0.0, 1.0):
        return Estimate(value=value)
    ends = wilson_interval(groups if value else 0, groups)
    return Estimate(value=value, interval=(ends.low, ends.high))


def in_percent(found: Estimate) -> str:
    """An estimate of a share in percent, without the sign, as a cell of a table.

    >>> in_percent(Estimate(value=0.667, interval=(0.6, 0.72))), in_percent(Estimate())
    ('66.7 [60.0, 72.0]', '-')
    """
    if found.value is None:
        return "-"
    ends = "" if found.interval is None else " [{:.1f}, {:.1f}]".format(*(100 * end for end in found.interval))
    return f"{100 * found.value:.1f}{ends}"


def without_interval(found: Estimate) -> str:
    """An estimate of a share in percent, without the sign and its interval.

    >>> without_interval(Estimate(value=0.667, interval=(0.6, 0.72)))
    '66.7'
    """
    return in_percent(Estimate(value=found.value))


def in_seconds(value: float) -> str:
    """Seconds as a cell of a table; few of them are not printed as 0.

    >>> in_seconds(10.39), in_seconds(0.00312)
    ('10.39', '0.0031')
    """
    return f"{value:,.2f}" if value >= 0.1 or value == 0.0 else f"{value:.2g}"


def in_units(found: Estimate, digits: int = 3) -> str:
    """An estimate as it is.

    >>> in_units(Estimate(value=0.25, interval=(0.125, 0.5)), 2), in_units(Estimate())
    ('0.25 [0.12, 0.50]', 'unknown')
    """
    if found.value is None:
        return "unknown"
    ends = "" if found.interval is None else " [{:.{d}f}, {:.{d}f}]".format(*found.interval, d=digits)
    return f"{found.value:.{digits}f}{ends}"


def signed_points(found: Estimate) -> str:
    """A difference of shares in points.

    >>> signed_points(Estimate(value=0.02, interval=(-0.01, 0.05)))
    '+2.0 [-1.0, +5.0]'
    """
    if found.value is None:
        return "unknown"
    ends = "" if found.interval is None else " [{:+.1f}, {:+.1f}]".format(*(100 * end for end in found.interval))
    return f"{100 * found.value:+.1f}{ends}"
