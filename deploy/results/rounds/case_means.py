"""Means over the cases of a run, with bootstrap intervals over cases: what is measured of many debates' rounds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import NormalDist

import numpy as np

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.record.rows import EventRow
from moot.deploy.results.text import number
from moot.metrics.bootstrap import percentile_interval
from moot.metrics.cluster_bootstrap import resampled_sums
from moot.metrics.distribution import Floats

LEAST_CASES = 10
"""With fewer, a bootstrap over cases says too little for an interval."""

MANY_CASES = 5_000
"""With more, the resamples' ratios are normal for all that can be seen, and the delta method gives their spread."""

LEVEL = 0.95
"""Of the intervals."""

_RESAMPLES = 2000


class MeanOverCases(FrozenModel):
    """A mean over cases; None is unknown.

    Attributes:
        low, high: 95 % bootstrap interval over cases; None with fewer than ten.
        cases: that have a value there.
    """

    mean: float | None
    low: float | None
    high: float | None
    cases: int


def interval_words(low: float | None, high: float | None, times: float = 1.0, digits: int = 3) -> str:
    """An interval in words, so many times it; `unknown` without one."""
    known = None if low is None or high is None else [number(times * end, digits) for end in (low, high)]
    return " to ".join(known) if known else number(None)


def latest_attempts(events: Iterable[EventRow]) -> list[EventRow]:
    """The events of each case's latest attempt."""
    events = list(events)
    attempts: dict[str, int] = {}
    for event in events:
        attempts[event.case_id] = max(event.attempt, attempts.get(event.case_id, 0))
    return [event for event in events if event.attempt == attempts[event.case_id]]


def mean_over_cases(values: Iterable[tuple[str, float | None]]) -> MeanOverCases:
    """The mean of all known values, pairs of a case and a value; a case with several weighs as much as it has."""
    by_case: dict[str, list[float]] = defaultdict(list)
    for case_id, value in values:
        if value is not None:
            by_case[case_id].append(value)
    if not by_case:
        return MeanOverCases(mean=None, low=None, high=None, cases=0)
    sums = np.array([sum(of_case) for of_case in by_case.values()])
    counts = np.array([len(of_case) for of_case in by_case.values()])
    low, high = ratio_interval(sums, counts, LEVEL)
    mean = float(sums.sum() / counts.sum())
    return MeanOverCases(mean=mean, low=low, high=high, cases=len(by_case))


def ratio_interval(above: Floats, below: Floats, level: float) -> tuple[float, float] | tuple[None, None]:
    """The bootstrap interval of the ratio of two sums over cases; nothing with too few.

    Args:
        above, below: per case, what it adds to each sum.
    """
    if len(above) < LEAST_CASES:
        return None, None
    if len(above) > MANY_CASES:
        ratio = float(above.sum() / below.sum())
        spread = math.sqrt(len(above)) * float(np.std(above - ratio * below)) / float(below.sum())
        reach = NormalDist().inv_cdf((1.0 + level) / 2) * spread
        return ratio - reach, ratio + reach
    sums = resampled_sums(np.column_stack([above, below]), np.arange(len(above)), _RESAMPLES)
    found = percentile_interval(sums[:, 0] / sums[:, 1], level)
    return found.low, found.high
