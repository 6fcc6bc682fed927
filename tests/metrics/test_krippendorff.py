"""Krippendorff's alpha: the published examples, the definition written out pair by pair, and what must not matter."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from moot.metrics.agreement import Level, bootstrap_alpha, krippendorff_alpha

Ratings = npt.NDArray[np.float64]

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
N = float("nan")

FOUR_OBSERVERS: Ratings = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
        [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
    ]
)
"""Krippendorff 2011, section C: four observers, twelve units, seven ratings missing."""

THREE_CODERS: Ratings = np.array(
    [
        [N, N, N, N, N, 3, 4, 1, 2, 1, 1, 3, 3, N, 3],
        [1, N, 2, 1, 3, 3, 4, 3, N, N, N, N, N, N, N],
        [N, N, 2, 1, 3, 4, 4, N, 2, 1, 1, 3, 3, N, 4],
    ]
)
"""Hayes and Krippendorff's three coders of fifteen units, as in many texts on alpha."""

some_ratings = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 5), st.integers(1, 12)),
    elements=st.sampled_from([1.0, 2.0, 3.0, 5.0, N]),
)
"""Two to five raters, up to twelve units, uneven levels, about one in five missing."""


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_four_observers(level: Level, printed: float) -> None:
    assert krippendorff_alpha(FOUR_OBSERVERS, level) == pytest.approx(printed, abs=5e-4)


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.691), ("ordinal", 0.807), ("interval", 0.811)])
def test_three_coders(level: Level, printed: float) -> None:
    assert krippendorff_alpha(THREE_CODERS, level) == pytest.approx(printed, abs=5e-4)


def test_two_observers_and_two_names() -> None:
    """Krippendorff 2011, section A."""
    binary = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
    assert krippendorff_alpha(binary, "nominal") == pytest.approx(0.095, abs=5e-4)


def pair_by_pair(ratings: Ratings, level: Level) -> float:
    """The definition: mean squared distance within units, over that of all pairs of pairable ratings."""
    units = [column[~np.isnan(column)] for column in ratings.T]
    units = [unit for unit in units if len(unit) >= 2]
    everything = np.concatenate(units) if units else np.array([])

    def ordinal(a: float, b: float) -> float:
        low, high = min(a, b), max(a, b)
        between = ((everything >= low) & (everything <= high)).sum()
        return float(between - ((everything == a).sum() + (everything == b).sum()) / 2) ** 2

    distances: dict[Level, Callable[[float, float], float]] = {
        "nominal": lambda a, b: float(a != b),
        "ordinal": ordinal,
        "interval": lambda a, b: (a - b) ** 2,
    }
    apart = distances[level]
    n = len(everything)
    within = sum(sum(apart(a, b) for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    across = sum(apart(a, b) for a, b in permutations(everything, 2))
    return 1 - (n - 1) * within / across if across else math.nan


@pytest.mark.parametrize("level", LEVELS)
@given(ratings=some_ratings)
def test_it_is_the_definition(level: Level, ratings: Ratings) -> None:
    assert krippendorff_alpha(ratings, level) == pytest.approx(pair_by_pair(ratings, level), nan_ok=True, abs=1e-9)


@pytest.mark.parametrize("level", LEVELS)
@given(ratings=some_ratings, data=st.data())
def test_who_and_in_what_order_does_not_matter(level: Level, ratings: Ratings, data: st.DataObject) -> None:
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


def test_two_levels_are_all_the_same_to_it() -> None:
    two = np.where(FOUR_OBSERVERS > 2, 1.0, np.where(np.isnan(FOUR_OBSERVERS), np.nan, 0.0))
    found = {krippendorff_alpha(two, level) for level in LEVELS}
    assert max(found) - min(found) < 1e-12


def test_what_is_undefined_is_unknown() -> None:
    for undefined in ([[1, 1], [1, 1]], [[1, N], [N, 2]], [[N], [N]], np.empty((2, 0))):
        for level in LEVELS:
            assert math.isnan(krippendorff_alpha(undefined, level))
    assert krippendorff_alpha([[1, 2, 3], [1, 2, 3]], "ordinal") == 1.0
    # Twelve units of one level and one disagreement: agreement is nearly whole, alpha is not.
    prevailing = [[1.0] * 12 + [2.0], [1.0] * 13]
    assert krippendorff_alpha(prevailing, "nominal") == pytest.approx(0.0, abs=1e-12)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="raters x units"):
        krippendorff_alpha([1.0, 2.0], "nominal")
    with pytest.raises(ValueError, match="infinite"):
        krippendorff_alpha([[1.0], [math.inf]], "nominal")
    with pytest.raises(ValueError, match="nominal, ordinal, interval"):
        krippendorff_alpha([[1.0], [2.0]], "ratio")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 units but clusters"):
        bootstrap_alpha([[1, 2], [1, 2]], "nominal", [0], 10)


@pytest.mark.parametrize("level", LEVELS)
def test_a_resample_is_alpha_of_the_units_drawn(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiplicities give what repeating the units would, ranks made anew; whether in one block or in many."""
    module = importlib.import_module("moot.metrics.agreement")
    drawn = np.random.default_rng(3).integers(0, 4, size=(40, FOUR_OBSERVERS.shape[1]))
    monkeypatch.setattr(module, "cluster_weights", lambda clusters, resamples, seed: drawn.astype(float))
    expected = [krippendorff_alpha(np.repeat(FOUR_OBSERVERS, times, axis=1), level) for times in drawn]
    for numbers in (2**21, 30):
        monkeypatch.setattr(module, "_NUMBERS", numbers)
        found = bootstrap_alpha(FOUR_OBSERVERS, level, np.arange(12), 40)
        assert found == pytest.approx(np.array(expected), nan_ok=True)


def test_resamples_keep_clusters_together_and_follow_the_seed() -> None:
    copied, clusters = np.repeat(FOUR_OBSERVERS, 6, axis=1), np.repeat(np.arange(12), 6)
    together = bootstrap_alpha(copied, "ordinal", clusters, 2000, seed=1)
    apart = bootstrap_alpha(copied, "ordinal", np.arange(72), 2000, seed=1)
    alone = bootstrap_alpha(FOUR_OBSERVERS, "ordinal", np.arange(12), 2000, seed=2)
    assert np.nanstd(together) == pytest.approx(np.nanstd(alone), rel=0.1)
    assert np.nanstd(apart) < 0.6 * np.nanstd(together)
    again = bootstrap_alpha(copied, "ordinal", clusters, 2000, seed=1)
    assert np.array_equal(together, again, equal_nan=True)


def test_it_is_that_of_the_package_of_this_name() -> None:
    package: Any = importlib.import_module("krippendorff")
    random = np.random.default_rng(11)
    for _ in range(50):
        ratings = random.integers(1, 5, size=(4, 20)).astype(np.float64)
        ratings[random.random(ratings.shape) < 0.2] = np.nan
        for level in LEVELS:
            expected = package.alpha(reliability_data=ratings, level_of_measurement=level)
            assert krippendorff_alpha(ratings, level) == pytest.approx(expected)
