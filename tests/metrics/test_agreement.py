"""Agreement of raters: published examples, the definitions pair by pair, other packages, and intervals that cover."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refuses
from sklearn.metrics import cohen_kappa_score

from moot.metrics.agreement import (
    Level,
    Weights,
    ac2_interval,
    agreement_weights,
    alpha_interval,
    gwet_ac2,
    krippendorff_alpha,
    rater_interval,
    raw_agreement,
    raw_agreement_interval,
)
from moot.metrics.jackknife import coefficient_interval

Ratings = npt.NDArray[np.float64]

N = float("nan")
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
WEIGHTS: tuple[Weights, ...] = ("identity", "ordinal", "quadratic", "linear")
CATEGORIES = [1.0, 2.0, 3.0, 5.0]


def of_table(table: list[list[int]]) -> Ratings:
    """Two raters' ratings 1 to k from their contingency table, the first rater's in rows."""
    cells = [(i + 1, j + 1) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    return np.array(cells, dtype=np.float64).T


FOUR_RATERS: Ratings = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, N],
        [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 3],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
    ]
)
"""Gwet 2014, page 120; the last unit has one rating, which counts for prevalence only."""

FIVE_OBSERVERS: Ratings = np.array(
    [
        [1, 1, 2, N, 0, 0, 1, 1, 2, 2, N, 0, 1, 3, 1],
        [1, 1, 3, 0, 0, 0, 0, N, 2, 1, 1, 0, 2, 3, 1],
        [2, 0, 3, 0, 0, 0, 2, 2, 2, 1, 0, 0, 2, 2, 1],
        [N, 1, 3, N, N, N, N, 0, N, 1, 0, 0, 2, 2, N],
        [2, N, N, 0, 0, 0, 1, N, 2, N, N, N, N, 3, 1],
    ]
)
"""Gwet 2014, page 125."""

ABSTRACTORS = of_table([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
"""Gwet 2014: 100 records, two abstractors, three kinds of pregnancy."""

DIAGNOSES = of_table([[40, 6, 4, 15], [4, 25, 1, 5], [4, 2, 21, 9], [17, 13, 12, 45]])
"""Gwet 2014: 223 patients, clinical and research diagnosis, four disorders."""

THREE_CODERS: Ratings = np.array(
    [
        [N, N, N, N, N, 3, 4, 1, 2, 1, 1, 3, 3, N, 3],
        [1, N, 2, 1, 3, 3, 4, 3, N, N, N, N, N, N, N],
        [N, N, 2, 1, 3, 4, 4, N, 2, 1, 1, 3, 3, N, 4],
    ]
)
"""Hayes and Krippendorff's three coders of fifteen units, as in many texts on alpha."""

some_ratings = hnp.arrays(
    np.float64, st.tuples(st.integers(2, 5), st.integers(1, 12)), elements=st.sampled_from([*CATEGORIES, N])
)
"""Two to five raters, up to twelve units, uneven levels, about one in five missing."""


@pytest.mark.parametrize(
    ("ratings", "levels", "weights", "agreement", "coefficient"),
    [
        (FOUR_RATERS, 5, "identity", 0.8182, 0.7754),
        (FOUR_RATERS, 5, "ordinal", 0.968, 0.899),
        (FOUR_RATERS, 5, "quadratic", 0.975, 0.914),
        (FOUR_RATERS, 5, "linear", 0.939, 0.859),
        (ABSTRACTORS, 3, "identity", 0.89, 0.8493),
        (ABSTRACTORS, 3, "ordinal", None, 0.925),
        (ABSTRACTORS, 3, "quadratic", None, 0.940),
        (ABSTRACTORS, 3, "linear", None, 0.900),
        (DIAGNOSES, 4, "identity", None, 0.456),
        (DIAGNOSES, 4, "ordinal", None, 0.324),
        (DIAGNOSES, 4, "quadratic", None, 0.299),
        (DIAGNOSES, 4, "linear", None, 0.377),
        (FIVE_OBSERVERS + 1.0, 4, "identity", 0.616, 0.497),
    ],
)
def test_gwets_examples(
    ratings: Ratings, levels: int, weights: Weights, agreement: float | None, coefficient: float
) -> None:
    """As his own software prints them, to three or four digits."""
    categories = list(range(1, levels + 1))
    assert gwet_ac2(ratings, categories, weights) == pytest.approx(coefficient, abs=6e-4)
    if agreement is not None:
        assert raw_agreement(ratings, weights, categories) == pytest.approx(agreement, abs=6e-4)


def unit_by_unit(ratings: Ratings, categories: list[float], weights: Weights) -> tuple[float, float]:
    """Raw agreement and AC2 by going through pairs of raters."""
    worth = agreement_weights(categories, weights)
    units = [[categories.index(value) for value in column if not math.isnan(value)] for column in ratings.T]
    paired = [
        np.mean([worth[a, b] for i, a in enumerate(unit) for j, b in enumerate(unit) if i != j])
        for unit in units
        if len(unit) >= 2
    ]
    if not paired:
        return math.nan, math.nan
    shares = np.mean([np.bincount(unit, minlength=len(categories)) / len(unit) for unit in units if unit], axis=0)
    k = len(categories)
    chance = worth.sum() / (k * (k - 1)) * float((shares * (1 - shares)).sum())
    agreement = float(np.mean(paired))
    return agreement, (agreement - chance) / (1 - chance)


@pytest.mark.parametrize("weights", WEIGHTS)
@given(ratings=some_ratings)
def test_raw_agreement_and_ac2_are_their_definitions(weights: Weights, ratings: Ratings) -> None:
    agreement, coefficient = unit_by_unit(ratings, CATEGORIES, weights)
    assert raw_agreement(ratings, weights, CATEGORIES) == pytest.approx(agreement, nan_ok=True, abs=1e-12)
    assert gwet_ac2(ratings, CATEGORIES, weights) == pytest.approx(coefficient, nan_ok=True, abs=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
@given(ratings=some_ratings, data=st.data())
def test_who_and_in_what_order_does_not_matter_to_ac2(weights: Weights, ratings: Ratings, data: st.DataObject) -> None:
    raters = np.array(data.draw(st.permutations(range(len(ratings)))))
    units = np.array(data.draw(st.permutations(range(ratings.shape[1]))))
    mixed = np.vstack([ratings[np.ix_(raters, units)], np.full((1, len(units)), np.nan)])
    unrated = np.hstack([mixed, np.full((len(mixed), 1), np.nan)])
    expected = gwet_ac2(ratings, CATEGORIES, weights)
    assert gwet_ac2(unrated, CATEGORIES, weights) == pytest.approx(expected, nan_ok=True)
    assert gwet_ac2(unrated, CATEGORIES[::-1], weights) == pytest.approx(expected, nan_ok=True)
    assert raw_agreement(unrated, weights, CATEGORIES) == pytest.approx(
        raw_agreement(ratings, weights, CATEGORIES), nan_ok=True
    )


@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_fall_from_one_to_zero_with_distance(weights: Weights) -> None:
    worth = agreement_weights([0, 1, 3, 4], weights)
    assert np.array_equal(worth, worth.T)
    assert np.diag(worth).tolist() == [1.0] * 4
    assert worth[0, -1] == 0.0
    assert (np.diff(worth[0]) <= 0.0).all()
    by_value = {"linear": [1.0, 0.75, 0.25, 0.0], "quadratic": [1.0, 1 - 1 / 16, 1 - 9 / 16, 0.0]}
    by_order = {"identity": [1.0, 0.0, 0.0, 0.0], "ordinal": [1.0, 1 - 1 / 6, 1 - 3 / 6, 0.0]}
    assert worth[0].tolist() == pytest.approx({**by_value, **by_order}[weights])


def test_prevalence_takes_alpha_and_kappa_away_but_not_ac1() -> None:
    """95 of 100 agree; nearly everything is on one level."""
    ratings = of_table([[95, 3], [2, 0]])
    assert raw_agreement(ratings) == 0.95
    assert krippendorff_alpha(ratings, "nominal") < 0.0
    assert cohen_kappa_score(ratings[0], ratings[1]) < 0.0
    assert 0.94 < gwet_ac2(ratings, [1, 2], "identity") < 0.95
    balanced = of_table([[48, 3], [2, 47]])
    found = [gwet_ac2(balanced, [1, 2], "identity"), krippendorff_alpha(balanced, "nominal")]
    assert found == pytest.approx([0.9, 0.9], abs=0.01)


def test_a_category_that_nobody_used_counts() -> None:
    ratings = [[1, 2, 1, 2], [1, 2, 2, 1]]
    assert gwet_ac2(ratings, [1, 2], "identity") == pytest.approx(0.0)
    assert gwet_ac2(ratings, [1, 2, 3], "identity") == pytest.approx((0.5 - 0.25) / 0.75)


@pytest.mark.parametrize(
    ("ratings", "printed"), [(FOUR_RATERS, (0.743, 0.815, 0.849)), (THREE_CODERS, (0.691, 0.807, 0.811))]
)
def test_krippendorffs_examples(ratings: Ratings, printed: tuple[float, ...]) -> None:
    assert [krippendorff_alpha(ratings, level) for level in LEVELS] == pytest.approx(printed, abs=5e-4)


@pytest.mark.parametrize("level", LEVELS)
@given(ratings=some_ratings, data=st.data())
def test_who_and_in_what_order_does_not_matter_to_alpha(level: Level, ratings: Ratings, data: st.DataObject) -> None:
    units = np.array(data.draw(st.permutations(range(ratings.shape[1]))))
    mixed = ratings[:, units].copy()
    for unit in range(mixed.shape[1]):  # alpha does not know which rater gave which rating of a unit
        mixed[:, unit] = mixed[np.array(data.draw(st.permutations(range(len(mixed))))), unit]
    expected = krippendorff_alpha(ratings, level)
    assert krippendorff_alpha(mixed, level) == pytest.approx(expected, nan_ok=True)
    silent = np.vstack([mixed, np.full((1, mixed.shape[1]), np.nan)])
    alone = np.hstack([silent, np.full((len(silent), 1), np.nan)])
    alone[0, -1] = 9.0  # a unit with one rating says nothing of agreement
    assert krippendorff_alpha(alone, level) == pytest.approx(expected, nan_ok=True)


@given(ratings=some_ratings)
def test_what_each_level_of_measurement_may_not_see(ratings: Ratings) -> None:
    """Names may be exchanged, ordered levels stretched, numbers shifted and scaled."""
    exchanged = np.select([ratings == 1.0, ratings == 5.0], [5.0, 1.0], ratings)
    for level, same in (("nominal", exchanged), ("ordinal", ratings**3), ("interval", 1e6 + 0.1 * ratings)):
        expected = krippendorff_alpha(ratings, level)  # type: ignore[arg-type]
        assert krippendorff_alpha(same, level) == pytest.approx(expected, nan_ok=True, abs=1e-6)  # type: ignore[arg-type]


def test_alpha_is_that_of_the_package_of_this_name() -> None:
    package: Any = importlib.import_module("krippendorff")
    random = np.random.default_rng(11)
    for _ in range(50):
        ratings = random.integers(1, 5, size=(4, 20)).astype(np.float64)
        ratings[random.random(ratings.shape) < 0.2] = np.nan
        for level in LEVELS:
            expected = package.alpha(reliability_data=ratings, level_of_measurement=level)
            assert krippendorff_alpha(ratings, level) == pytest.approx(expected)


def test_what_is_undefined_is_unknown() -> None:
    for undefined in ([[1.0, N], [N, 2.0]], [[N], [N]], np.empty((2, 0))):
        assert math.isnan(raw_agreement(undefined))
        assert math.isnan(gwet_ac2(undefined, [1, 2], "identity"))
        assert all(math.isnan(krippendorff_alpha(undefined, level)) for level in LEVELS)
    assert math.isnan(krippendorff_alpha([[1, 1], [1, 1]], "nominal"))
    assert gwet_ac2([[1, 1], [1, 1]], [1, 2], "identity") == 1.0


def test_bad_input_is_refused() -> None:
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("not one of the levels 1, 2", lambda: gwet_ac2([[1.0], [3.0]], [1, 2], "identity")),
        ("at least two categories", lambda: gwet_ac2([[1.0], [1.0]], [1], "identity")),
        ("listed twice", lambda: gwet_ac2([[1.0], [1.0]], [1, 1], "identity")),
        ("require the categories", lambda: raw_agreement([[1.0], [1.0]], "linear")),
        ("quadratic", lambda: gwet_ac2([[1.0], [1.0]], [1, 2], "cubic")),  # type: ignore[arg-type]
        ("2 units but clusters", lambda: ac2_interval([[1, 2], [1, 2]], [1, 2], "identity", [0])),
        ("raters x units", lambda: krippendorff_alpha([1.0, 2.0], "nominal")),
        ("infinite", lambda: krippendorff_alpha([[1.0], [math.inf]], "nominal")),
        ("nominal, ordinal, interval", lambda: krippendorff_alpha([[1.0], [2.0]], "ratio")),  # type: ignore[arg-type]
        ("2 units but clusters", lambda: alpha_interval([[1, 2], [1, 2]], "nominal", [0])),
        ("a cluster per unit", lambda: rater_interval(raw_agreement, [[1.0, 2.0]], [0])),
    ]
    for match, call in wrong:
        refuses(match, call)


def test_what_is_left_out_are_whole_clusters_and_ranks_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each interval is that of the coefficients of the units left, in one block of weights or in many."""
    random, levels = np.random.default_rng(3), [1, 2, 3, 4, 5]
    ratings = random.integers(1, 6, size=(4, 30)).astype(float)
    ratings[1:] = np.where(random.random((3, 30)) < 0.6, ratings[0], ratings[1:])
    ratings[2, 4] = np.nan
    cases = np.arange(30) % 12
    kept = [ratings[:, cases != case] for case in range(12)]

    def same(found: tuple[float, float], statistic: Callable[[Ratings], float], lowest: float = -1.0) -> None:
        expected = coefficient_interval([statistic(some) for some in kept], statistic(ratings), lowest=lowest)
        assert found == pytest.approx(tuple(map(float, expected)))

    for each in WEIGHTS:
        same(ac2_interval(ratings, levels, each, cases), partial(gwet_ac2, categories=levels, weights=each))
        found = raw_agreement_interval(ratings, cases, weights=each, categories=levels)
        same(found, partial(raw_agreement, weights=each, categories=levels), 0.0)
    same(rater_interval(raw_agreement, ratings, cases, lowest=0.0), raw_agreement, 0.0)
    for numbers in (2**21, 30):
        monkeypatch.setattr(importlib.import_module("moot.metrics.agreement"), "_MAX_ELEMENTS", numbers)
        for level in LEVELS:
            same(alpha_interval(ratings, level, cases), partial(krippendorff_alpha, level=level))


def judged(random: np.random.Generator, cases: int, units_per_case: int) -> Ratings:
    """Three raters of 1 to 3, right about three times in four; the truth of a case's units is the same."""
    truth = np.repeat(random.choice([1.0, 2.0, 3.0], p=[0.1, 0.3, 0.6], size=cases), units_per_case)
    missed = random.random((3, len(truth))) < 0.25
    found = np.where(missed, random.choice([1.0, 2.0, 3.0], size=missed.shape), truth)
    return np.where(random.random(found.shape) < 0.1, np.nan, found)


def test_intervals_cover_the_population_s_value_at_the_nominal_rate() -> None:
    random = np.random.default_rng(5)
    population = judged(random, 100_000, 2)
    alpha, ac2 = krippendorff_alpha(population, "ordinal"), gwet_ac2(population, [1.0, 2.0, 3.0], "ordinal")
    cases = np.repeat(np.arange(80), 2)
    held = np.zeros(3)
    for _ in range(120):
        ratings = judged(random, 80, 2)
        intervals = (
            alpha_interval(ratings, "ordinal", cases),
            ac2_interval(ratings, [1.0, 2.0, 3.0], "ordinal", cases),
            # As if the two units of a case told two stories.
            alpha_interval(ratings, "ordinal", np.arange(160)),
        )
        truths = (alpha, ac2, alpha)
        held += [found[0] <= truth <= found[1] for truth, found in zip(truths, intervals, strict=True)]
    by_case, of_ac2, by_unit = held / 120
    assert 0.9 <= by_case <= 0.99
    assert 0.9 <= of_ac2 <= 0.99
    assert by_unit < by_case


def test_a_coefficient_that_hangs_on_one_unit_has_no_interval() -> None:
    """One unit of twenty is on the other level: without it there is no alpha."""
    ratings = [[1.0] * 19 + [2.0], [1.0] * 19 + [2.0]]
    assert np.isnan(alpha_interval(ratings, "nominal", np.arange(20))).all()
    assert np.isnan(rater_interval(lambda some: krippendorff_alpha(some, "nominal"), ratings, np.arange(20))).all()
