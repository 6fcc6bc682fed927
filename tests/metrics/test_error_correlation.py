"""Error correlation against numpy, its null and its plant, and what n raters are worth by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.metrics.cluster_bootstrap import cluster_weights, interval_from, resampled_sums
from moot.metrics.detection import effective_raters, error_correlation, error_pairs

ERRORS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=50)


@given(ERRORS)
def test_is_pearsons_of_the_indicators(errors: list[tuple[bool, bool]]) -> None:
    first, second = (np.array(column, float) for column in zip(*errors, strict=True))
    found = error_correlation(error_pairs(first, second).sum(axis=0))
    if np.ptp(first) and np.ptp(second):
        assert found == pytest.approx(np.corrcoef(first, second)[0, 1])
    else:
        assert math.isnan(float(found))
    assert found == pytest.approx(error_correlation(error_pairs(second, first).sum(axis=0)), nan_ok=True)


def test_resamples_are_the_correlation_of_the_drawn_cases() -> None:
    random = np.random.default_rng(1)
    first, second = random.random(90) < 0.4, random.random(90) < 0.3
    clusters = np.repeat(np.arange(30), 3)
    found = np.asarray(error_correlation(resampled_sums(error_pairs(first, second), clusters, 5, seed=7)))
    for rho, weight in zip(found, cluster_weights(clusters, 5, seed=7), strict=True):
        drawn = np.repeat(np.arange(90), weight)
        assert rho == pytest.approx(np.corrcoef(first[drawn], second[drawn])[0, 1])


@pytest.mark.parametrize("shared", [0.0, 0.5], ids=["null", "planted"])
def test_a_shared_cause_is_found_and_intervals_hold_it(shared: float) -> None:
    """With probability `shared` both errors are one and the same draw: that is their correlation."""
    held, trials = 0, 100
    for trial in range(trials):
        random = np.random.default_rng(trial)
        common, same = random.random(400) < 0.3, random.random(400) < shared
        first, second = (np.where(same, common, random.random(400) < 0.3) for _ in range(2))
        rows = error_pairs(first, second)
        observed = error_correlation(rows.sum(axis=0))
        low, high = interval_from(error_correlation(resampled_sums(rows, np.arange(400), 200)), observed)
        held += bool(low <= shared <= high)
    assert held >= 0.88 * trials


def test_unknown_errors_are_left_out_and_a_rater_that_never_errs_says_nothing() -> None:
    known = error_pairs([True, True, False, False], [True, False, False, False]).sum(axis=0)
    more = error_pairs([True, True, False, False, None, True], [True, False, False, False, True, None]).sum(axis=0)
    assert known.tolist() == more.tolist()
    assert math.isnan(float(error_correlation(error_pairs([False] * 3, [True, False, True]).sum(axis=0))))
    assert math.isnan(float(error_correlation([0, 0, 0, 0])))


@pytest.mark.parametrize(("rho", "raters"), [(0.0, 2), (0.3, 2), (0.5, 4), (1.0, 3)])
def test_effective_raters_have_the_variance_of_the_mean(rho: float, raters: int) -> None:
    random = np.random.default_rng(0)
    common, own = random.normal(size=(200_000, 1)), random.normal(size=(200_000, raters))
    means = (math.sqrt(rho) * common + math.sqrt(1 - rho) * own).mean(axis=1)
    assert effective_raters(rho, raters) == pytest.approx(1.0 / means.var(), rel=0.02)


def test_offsetting_errors_are_worth_more_and_without_variance_nothing_is_known() -> None:
    assert effective_raters(-0.5, 2) == 4.0
    assert math.isnan(effective_raters(-1.0, 2))
    assert math.isnan(effective_raters(math.nan, 2))
    assert effective_raters(0.7, 1) == 1.0


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="two vectors of one length"):
        error_pairs([True], [True, False])
    with pytest.raises(ValueError, match="true, false or unknown"):
        error_pairs([2, 1], [1, 0])
    with pytest.raises(ValueError, match=r"counts of \(..., 4\) expected"):
        error_correlation([1, 2])
    with pytest.raises(ValueError, match="at least one rater"):
        effective_raters(0.1, 0)
    with pytest.raises(ValueError, match=r"\[-1, 1\]"):
        effective_raters(1.5, 2)
