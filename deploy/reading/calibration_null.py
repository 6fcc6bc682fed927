"""What a perfectly calibrated forecaster would be found to score, beside a measured calibration error."""

from __future__ import annotations

from collections.abc import Sequence

from moot.deploy.reading.rounds.over_cases import LEAST_CASES
from moot.deploy.reading.text import Interval, number
from moot.metrics.calibration_error import calibration_null_band
from moot.metrics.distribution import Floats


def calibration_null(confidences: Sequence[float] | Floats, bins: int) -> Interval | None:
    """95 % of perfectly calibrated forecasters with these confidences would be found between these.

    None with fewer than `LEAST_CASES`: the band then spans nearly all that can be measured.

    Args:
        confidences: `(n,)`, in [0, 1].
        bins: of the calibration error that it stands beside.
    """
    if len(confidences) < LEAST_CASES:
        return None
    band = calibration_null_band(confidences, bins=bins)
    return band.low, band.high


def in_words(found: Interval | None) -> str:
    """The band, or that there are too few cases for one.

    >>> in_words((0.043, 0.267)), in_words(None)
    ('0.043 to 0.267 (95 %)', 'too few cases')
    """
    return "too few cases" if found is None else f"{number(found[0])} to {number(found[1])} (95 %)"
