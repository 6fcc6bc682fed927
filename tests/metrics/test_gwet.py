"""Raw agreement, AC1 and AC2: Gwet's worked examples, his definition unit by unit, and what must not matter."""

from __future__ import annotations

import importlib
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import cohen_kappa_score

from moot.metrics.agreement import (
    Weights,
    agreement_weights,
    bootstrap_ac2,
    bootstrap_raw_agreement,
    gwet_ac2,
    krippendorff_alpha,
    raw_agreement,
)

Ratings = npt.NDArray[np.float64]

N = float("nan")
WEIGHTS: tuple[Weights, ...] = ("identity", "ordinal", "quadratic", "linear")
LEVELS = [1.0, 2.0, 3.0, 5.0]


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

some_ratings = hnp.arrays(
    np.float64, st.tuples(st.integers(2, 5), st.integers(1, 12)), elements=st.sampled_from([*LEVELS, N])
)


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
def test_it_is_the_definition(weights: Weights, ratings: Ratings) -> None:
    agreement, coefficient = unit_by_unit(ratings, LEVELS, weights)
    assert raw_agreement(ratings, weights, LEVELS) == pytest.approx(agreement, nan_ok=True, abs=1e-12)
    assert gwet_ac2(ratings, LEVELS, weights) == pytest.approx(coefficient, nan_ok=True, abs=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
@given(ratings=some_ratings, data=st.data())
def test_who_and_in_what_order_does_not_matter(weights: Weights, ratings: Ratings, data: st.DataObject) -> None:
    raters = np.array(data.draw(st.permutations(range(len(ratings)))))
    units = np.array(data.draw(st.permutations(range(ratings.shape[1]))))
    mixed = np.vstack([ratings[np.ix_(raters, units)], np.full((1, len(units)), np.nan)])
    unrated = np.hstack([mixed, np.full((len(mixed), 1), np.nan)])
    expected = gwet_ac2(ratings, LEVELS, weights)
    assert gwet_ac2(unrated, LEVELS, weights) == pytest.approx(expected, nan_ok=True)
    assert gwet_ac2(unrated, LEVELS[::-1], weights) == pytest.approx(expected, nan_ok=True)
    assert raw_agreement(unrated, weights, LEVELS) == pytest.approx(
        raw_agreement(ratings, weights, LEVELS), nan_ok=True
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


def test_what_is_undefined_is_unknown() -> None:
    for undefined in ([[1.0, N], [N, 2.0]], [[N], [N]], np.empty((2, 0))):
        assert math.isnan(raw_agreement(undefined))
        assert math.isnan(gwet_ac2(undefined, [1, 2], "identity"))
    assert gwet_ac2([[1, 1], [1, 1]], [1, 2], "identity") == 1.0  # where alpha is undefined


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="none of the levels 1, 2"):
        gwet_ac2([[1.0], [3.0]], [1, 2], "identity")
    with pytest.raises(ValueError, match="at least two categories"):
        gwet_ac2([[1.0], [1.0]], [1], "identity")
    with pytest.raises(ValueError, match="listed once"):
        gwet_ac2([[1.0], [1.0]], [1, 1], "identity")
    with pytest.raises(ValueError, match="need the categories"):
        raw_agreement([[1.0], [1.0]], "linear")
    with pytest.raises(ValueError, match="quadratic"):
        gwet_ac2([[1.0], [1.0]], [1, 2], "cubic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 units but clusters"):
        bootstrap_ac2([[1, 2], [1, 2]], [1, 2], "identity", [0], 10)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_resample_is_that_of_the_units_drawn(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(3).integers(0, 3, size=(30, 12))
    module = importlib.import_module("moot.metrics.agreement")
    monkeypatch.setattr(module, "cluster_weights", lambda clusters, resamples, seed: drawn.astype(float))
    categories = [1, 2, 3, 4, 5]
    repeated = [np.repeat(FOUR_RATERS, times, axis=1) for times in drawn]
    coefficients = bootstrap_ac2(FOUR_RATERS, categories, weights, np.arange(12), 30)
    assert coefficients == pytest.approx(np.array([gwet_ac2(each, categories, weights) for each in repeated]))
    agreements = bootstrap_raw_agreement(FOUR_RATERS, np.arange(12), 30, 0, weights, categories)
    assert agreements == pytest.approx(np.array([raw_agreement(each, weights, categories) for each in repeated]))
