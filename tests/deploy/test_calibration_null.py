"""The band beside a calibration error: of a few cases it spans nearly everything, so none is shown."""

from __future__ import annotations

import pytest

from moot.deploy.reading.calibration_null import calibration_null, in_words
from moot.deploy.reading.rounds.over_cases import LEAST_CASES
from moot.deploy.reading.summaries.confidence import ConfidenceFigures, confidence_rows
from moot.metrics.calibration_error import calibration_null_band


@pytest.mark.parametrize("n", [1, 3, LEAST_CASES - 1])
def test_of_too_few_cases_there_is_none(n: int) -> None:
    assert calibration_null([0.8] * n, 15) is None


def test_of_enough_cases_it_is_the_metrics_own() -> None:
    band = calibration_null_band([0.8] * LEAST_CASES, bins=15)
    assert calibration_null([0.8] * LEAST_CASES, 15) == (band.low, band.high)


def test_the_calibration_error_is_shown_without_it() -> None:
    found = ConfidenceFigures(source="judge", n=2, brier=0.1, calibration_error=0.25, calibration_null=None)
    (said,) = (words for name, words in confidence_rows([found]) if name.startswith("ECE"))
    assert said.startswith("0.25;")
    assert said.endswith(in_words(None))
