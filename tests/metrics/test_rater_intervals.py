"""Intervals of agreement: they cover what they say they cover, and clusters widen them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from moot.metrics.agreement import (
    ac2_interval,
    alpha_interval,
    bootstrap_ac2,
    bootstrap_alpha,
    gwet_ac2,
    krippendorff_alpha,
    percentile_interval,
    rater_interval,
    raw_agreement,
    raw_agreement_interval,
)

Ratings = npt.NDArray[np.float64]

CATEGORIES = [1.0, 2.0, 3.0]


def judged(random: np.random.Generator, cases: int, units_per_case: int) -> Ratings:
    """Three raters of 1 to 3, right about three times in four; the truth of a case's units is the same."""
    truth = np.repeat(random.choice(CATEGORIES, p=[0.1, 0.3, 0.6], size=cases), units_per_case)
    missed = random.random((3, len(truth))) < 0.25
    found = np.where(missed, random.choice(CATEGORIES, size=missed.shape), truth)
    return np.where(random.random(found.shape) < 0.1, np.nan, found)


def test_intervals_hold_the_population_s_value_about_as_often_as_they_say() -> None:
    random = np.random.default_rng(5)
    population = judged(random, 100_000, 2)
    alpha, ac2 = krippendorff_alpha(population, "ordinal"), gwet_ac2(population, CATEGORIES, "ordinal")
    cases = np.repeat(np.arange(80), 2)
    held = np.zeros(3)
    for seed in range(120):
        ratings = judged(random, 80, 2)
        intervals = (
            alpha_interval(ratings, "ordinal", cases, resamples=200, seed=seed),
            ac2_interval(ratings, CATEGORIES, "ordinal", cases, resamples=200, seed=seed),
            # As if the two units of a case told two stories.
            alpha_interval(ratings, "ordinal", np.arange(160), resamples=200, seed=seed),
        )
        truths = (alpha, ac2, alpha)
        held += [found.low <= truth <= found.high for truth, found in zip(truths, intervals, strict=True)]
    by_case, of_ac2, by_unit = held / 120
    assert 0.9 <= by_case <= 0.99
    assert 0.9 <= of_ac2 <= 0.99
    assert by_unit < by_case


def test_the_quick_ways_are_the_general_one() -> None:
    """The same clusters drawn by another generator: ends within the resamples' own noise."""
    ratings = judged(np.random.default_rng(6), 60, 2)
    cases = np.repeat(np.arange(60), 2)
    pairs = [
        (
            alpha_interval(ratings, "ordinal", cases, resamples=2000),
            rater_interval(lambda drawn: krippendorff_alpha(drawn, "ordinal"), ratings, cases, resamples=2000),
        ),
        (
            ac2_interval(ratings, CATEGORIES, "quadratic", cases, resamples=2000),
            rater_interval(lambda drawn: gwet_ac2(drawn, CATEGORIES, "quadratic"), ratings, cases, resamples=2000),
        ),
        (
            raw_agreement_interval(ratings, cases, resamples=2000),
            rater_interval(raw_agreement, ratings, cases, resamples=2000),
        ),
    ]
    for quick, general in pairs:
        assert quick.resamples == general.resamples == 2000
        width = general.high - general.low
        assert quick.low == pytest.approx(general.low, abs=0.1 * width)
        assert quick.high == pytest.approx(general.high, abs=0.1 * width)


def test_the_interval_is_that_of_the_resamples() -> None:
    ratings = judged(np.random.default_rng(7), 50, 1)
    drawn = bootstrap_alpha(ratings, "nominal", np.arange(50), 500, 3)
    found = alpha_interval(ratings, "nominal", np.arange(50), resamples=500, seed=3)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))
    drawn = bootstrap_ac2(ratings, CATEGORIES, "linear", np.arange(50), 500, 3)
    found = ac2_interval(ratings, CATEGORIES, "linear", np.arange(50), resamples=500, seed=3)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


def test_resamples_without_a_value_are_counted_out() -> None:
    """One unit of twenty is on the other level: a third of the draws miss it, and alpha with it."""
    ratings = [[1.0] * 19 + [2.0], [1.0] * 19 + [2.0]]
    found = alpha_interval(ratings, "nominal", np.arange(20), resamples=1000)
    assert 560 < found.resamples < 720
    assert (found.low, found.high) == (1.0, 1.0)
    nothing = percentile_interval([math.nan, math.nan])
    assert (math.isnan(nothing.low), nothing.resamples) == (True, 0)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        percentile_interval([1.0], 95.0)
    with pytest.raises(ValueError, match="a cluster per unit"):
        rater_interval(raw_agreement, [[1.0, 2.0]], [0])
