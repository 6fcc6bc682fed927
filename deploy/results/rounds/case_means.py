"""Means over the cases of a run, with intervals over groups of cases, for measures of debate rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.text import number
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import LEAST_CLUSTERS, mean_interval

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
