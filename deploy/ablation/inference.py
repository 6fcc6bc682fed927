"""Intervals and p-values of a grid's comparisons, where None is unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from moot.deploy.reading.text import Interval
from moot.metrics.bootstrap import bca_interval
from moot.metrics.significance import benjamini_hochberg


def bca(values: Sequence[float]) -> Interval | None:
    """The BCa bootstrap interval (95 %) of a mean over cases; None where it has none, as for one case."""
    found = bca_interval(values)
    return (found.low, found.high) if found.resamples else None


def adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """p-values after Benjamini and Hochberg, over those that are known."""
    return [known(p) for p in benjamini_hochberg(p_values).tolist()]


def known(value: float) -> float | None:
    """A figure of `moot.metrics`, where NaN is unknown."""
    return None if math.isnan(value) else value
