"""Means over the cases of a run, with intervals over groups of cases, for measures of debate rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.text import number
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import LEAST_CLUSTERS, mean_interval, share_interval
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


def mean_over_cases(values: Iterable[tuple[str, float | None]], group_of: GroupOf) -> MeanOverCases:
    """Mean of all known values, given as pairs of case and value; a case counts once per value.

    Args:
        values: pairs of case and value.
        group_of: cases of a group are dependent.
    """
    known = [(case_id, value) for case_id, value in values if value is not None]
    if not known:
        return MeanOverCases(mean=None, low=None, high=None, cases=0)
    cases, numbers = zip(*known, strict=True)
    units = list(map(group_of, cases))
    place = {unit: number for number, unit in enumerate(dict.fromkeys(units))}
    codes = np.fromiter(map(place.__getitem__, units), np.intp, len(units))
    sums: Floats = np.bincount(codes, numbers).astype(np.float64)
    counts: Floats = np.bincount(codes).astype(np.float64)
    low, high = ratio_interval(sums, counts, LEVEL)
    if low is not None and min(numbers) >= 0.0:
        low = max(0.0, low)  # such a measure has no negative mean
    mean = float(sums.sum() / counts.sum())
    return MeanOverCases(mean=mean, low=low, high=high, cases=len(set(cases)))


def share_over_cases(values: Iterable[tuple[str, float]], group_of: GroupOf) -> tuple[float, float] | None:
    """95 % interval of a mean of values in [0, 1], such as an accuracy: Wilson's for independent outcomes.

    Dependent cases, and values between 0 and 1, have Wilson's interval with the effective number of cases (see
    `moot.metrics.jackknife.share_interval`); fewer than `LEAST_CASES` groups have none.

    Args:
        values: pairs of case and value, at least one.
        group_of: cases of a group are dependent.
    """
    cases, shares = zip(*values, strict=True)
    units = list(map(group_of, cases))
    place = {unit: index for index, unit in enumerate(dict.fromkeys(units))}
    numbers = np.array(shares, dtype=np.float64)
    if len(place) == len(units) and np.isin(numbers, (0.0, 1.0)).all():
        ends = wilson_interval(int(numbers.sum()), len(numbers))
        return ends.low, ends.high
    if len(place) < LEAST_CASES:
        return None
    codes = np.fromiter(map(place.__getitem__, units), np.intp, len(units))
    left_out = (numbers.sum() - np.bincount(codes, numbers)) / (len(numbers) - np.bincount(codes))
    low, high = share_interval(left_out, float(numbers.mean()))
    return None if math.isnan(low) else (low, high)


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
