"""Calibration error: a written-out reference, equal values in one bin, and the band of a perfect forecaster."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from refusals import refuses
from scipy import stats
from sklearn.metrics import brier_score_loss

from moot.metrics.brier import brier_multiclass, brier_stated, brier_top_label
from moot.metrics.calibration_error import (
    calibration_null_band,
    dependence_inflation,
    expected_calibration_error,
    reliability_bins,
    reliability_null_bands,
)

RANDOM = np.random.default_rng(21)


def test_equal_frequency_without_ties_is_an_even_split() -> None:
    confidence = RANDOM.random(300)
    correct = RANDOM.random(300) < confidence**2
    order = np.argsort(confidence)
    expected = np.mean([abs(correct[part].mean() - confidence[part].mean()) for part in order.reshape(15, 20)])
    assert expected_calibration_error(confidence, correct) == pytest.approx(expected)


def test_equal_confidences_are_never_split() -> None:
    """90 cases at .9 and 10 at .5: split into bins of ten, chance alone would look like miscalibration."""
    confidence = [0.9] * 90 + [0.5] * 10
    correct = [True] * 81 + [False] * 9 + [True] * 5 + [False] * 5
    assert expected_calibration_error(confidence, correct, bins=10) == pytest.approx(0.0)
    shuffled = RANDOM.permutation(100)
    found = expected_calibration_error(np.array(confidence)[shuffled], np.array(correct)[shuffled], bins=10)
    assert found == pytest.approx(0.0)


def test_a_planted_miscalibration_is_outside_the_band_and_none_is_inside() -> None:
    confidence = RANDOM.beta(8, 2, 1000)
    band = calibration_null_band(confidence)
    inside = [expected_calibration_error(confidence, RANDOM.random(1000) < confidence) <= band.high for _ in range(200)]
    assert sum(inside) >= 185  # 97.5 % of 200 are 195
    overconfident = expected_calibration_error(confidence, RANDOM.random(1000) < confidence - 0.12)
    assert overconfident > band.high


def test_the_band_is_that_of_the_error_on_drawn_outcomes() -> None:
    confidence = np.round(RANDOM.random(60), 1)
    band = calibration_null_band(confidence, bins=5, replicates=4000, level=0.9, seed=2)
    drawn = [expected_calibration_error(confidence, RANDOM.random(60) < confidence, bins=5) for _ in range(4000)]
    assert band.mean == pytest.approx(np.mean(drawn), abs=0.003)
    assert (band.low, band.high) == pytest.approx(tuple(np.quantile(drawn, [0.05, 0.95])), abs=0.006)
    assert band == calibration_null_band(confidence, bins=5, replicates=4000, level=0.9, seed=2)
    assert band != calibration_null_band(confidence, bins=5, replicates=4000, level=0.9, seed=3)


@pytest.mark.parametrize("p", [0.9999, 0.0001])
def test_the_band_of_many_nearly_certain_cases_is_that_of_binomial_sums(p: float) -> None:
    """Their sums are too skewed for the normal approximation."""
    n, sums = 100_000, stats.binom(100_000, p)
    band = calibration_null_band(np.full(n, p), bins=1)
    errors = np.abs(sums.rvs(20_000, random_state=5) - n * p) / n
    assert band.mean == pytest.approx(errors.mean(), rel=0.05)
    assert band.high == pytest.approx(np.quantile(errors, 0.975), rel=0.1)
    [of_bin] = reliability_null_bands(np.full(n, p), bins=1)
    assert of_bin.low == pytest.approx(sums.ppf(0.025) / n, abs=1.5 / n)
    assert of_bin.high == pytest.approx(sums.ppf(0.975) / n, abs=1.5 / n)


def test_only_the_unlikely_outcomes_of_nearly_certain_cases_are_drawn() -> None:
    """All outcomes of all replicates, 800 million draws, would take more than half a minute of processor time."""
    began = time.process_time()
    band = calibration_null_band(1.0 - np.arange(400_000) * 1e-12)
    assert time.process_time() - began < 8
    assert 0.0 <= band.low <= band.high < 1e-5


def test_unknown_cases_are_left_out() -> None:
    known = expected_calibration_error([0.9, 0.6], [True, False], bins=2)
    assert expected_calibration_error([0.9, None, 0.6, 0.3], [True, True, False, None], bins=2) == known
    assert math.isnan(expected_calibration_error([None], [True]))
    assert math.isnan(expected_calibration_error([], []))
    assert math.isnan(calibration_null_band([None]).mean)
    assert calibration_null_band([0.5, None, 0.7]) == calibration_null_band([0.5, 0.7])


def test_bad_input_is_refused() -> None:
    refuses("at least one bin", expected_calibration_error, [0.5], [True], bins=0)
    refuses("equal length", expected_calibration_error, [0.5], [True, False])
    refuses(r"outside \[0, 1\]", expected_calibration_error, [50.0], [True])
    refuses("true, false or unknown", expected_calibration_error, [0.5], [0.5])
    refuses("a vector", calibration_null_band, np.ones((2, 2)))
    refuses("between 0 and 1", calibration_null_band, [0.5], level=95)
    refuses("at least one replicate", calibration_null_band, [0.5], replicates=0)


def test_reliability_bins_are_those_behind_the_error() -> None:
    confidence = np.round(RANDOM.random(400), 2)
    correct = [None if RANDOM.random() < 0.1 else bool(RANDOM.random() < c) for c in confidence]
    found = reliability_bins(confidence, correct, bins=10)
    n = sum(each.n for each in found)
    assert n == sum(each is not None for each in correct)
    error = sum(each.n / n * abs(each.accuracy - each.confidence) for each in found)
    assert error == pytest.approx(expected_calibration_error(confidence, correct, bins=10))
    assert [each.confidence for each in found] == sorted(each.confidence for each in found)
    assert reliability_bins([], []) == []


def test_the_band_does_not_depend_on_the_order_of_the_cases() -> None:
    """A resumed run records the same cases in another order."""
    confidence = np.random.default_rng(3).beta(5, 2, 72).round(3)
    shuffled = np.random.default_rng(4).permutation(confidence)
    assert calibration_null_band(confidence) == calibration_null_band(shuffled)


def test_brier_scores_are_scikit_learns() -> None:
    p = RANDOM.dirichlet(np.ones(5), size=300)
    truth = RANDOM.integers(5, size=300)
    expected = brier_score_loss(truth, p, labels=np.arange(5), scale_by_half=False)
    assert brier_multiclass(p, truth).mean() == pytest.approx(expected)
    correct = p.argmax(axis=1) == truth
    expected = brier_score_loss(correct, p.max(axis=1))
    assert brier_top_label(p, correct).mean() == pytest.approx(expected)


def test_a_stated_confidence_is_taken_as_it_is() -> None:
    confidence, correct = RANDOM.random(300), RANDOM.random(300) < 0.5
    assert brier_stated(confidence, correct).mean() == pytest.approx(brier_score_loss(correct, confidence))
    assert brier_stated(0.25, False) == 0.0625, "not that of 1 - c"
    assert np.isnan(brier_stated([0.5, math.nan], [None, True])).all()
    refuses("between 0 and 1", brier_stated, 1.5, True)


def test_unknown_has_no_brier_score() -> None:
    assert np.isnan(brier_multiclass([[0.5, 0.5], [0.7, 0.7]], [None, 0])).all()
    assert np.isnan(brier_top_label([[0.5, 0.5], [0.7, 0.7]], [None, True])).all()
    assert math.isnan(brier_multiclass([0.5, 0.5], math.nan))
    for wrong in (2, -1, 0.5):
        refuses("from 0 to 1", brier_multiclass, [0.5, 0.5], wrong)
    refuses("true, false or unknown", brier_top_label, [0.5, 0.5], 0.5)


def test_null_bands_of_a_diagram_are_the_quantiles_of_a_binomial_share() -> None:
    confidence = [0.3] * 50 + [0.8] * 50
    low, high = reliability_null_bands(confidence, bins=2, replicates=20_000, seed=1)
    for band, p in ((low, 0.3), (high, 0.8)):
        assert band.low == pytest.approx(stats.binom.ppf(0.025, 50, p) / 50, abs=0.021)
        assert band.high == pytest.approx(stats.binom.ppf(0.975, 50, p) / 50, abs=0.021)
        assert band.mean == pytest.approx(p, abs=0.01)
    assert [each.n for each in reliability_bins(confidence, [1] * 100, bins=2)] == [50, 50]


def test_the_bands_of_dependent_cases_are_wider() -> None:
    """Calibrated forecasts of 40 groups of 5 equal outcomes: one band in twenty may miss; of independent cases many."""
    random, groups = np.random.default_rng(6), np.repeat(np.arange(40), 5)
    outside = np.zeros(2)
    for _ in range(150):
        stated = np.round(0.5 + random.random(40) / 2, 2)[groups]
        right = (random.random(40)[groups] < stated).astype(float)
        error = expected_calibration_error(stated, right, bins=10)
        inflation = dependence_inflation(stated, right, groups)
        for place, factor in enumerate((1.0, inflation)):
            outside[place] += error > calibration_null_band(stated, bins=10, replicates=100, inflation=factor).high
    assert outside[0] / 150 > 0.5
    assert outside[1] / 150 <= 0.05
    alone = [reliability_null_bands(stated, bins=3, inflation=factor)[1] for factor in (1.0, 2.0)]
    assert alone[1].high - alone[1].mean == pytest.approx(2.0 * (alone[0].high - alone[0].mean))
    assert dependence_inflation(stated, right, np.arange(200)) == 1.0
