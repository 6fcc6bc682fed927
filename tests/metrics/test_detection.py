"""Figures of a detection, and of errors that go together: scikit-learn's and numpy's, by cluster, planted and null."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support, roc_auc_score

from moot.metrics.cluster_bootstrap import cluster_weights
from moot.metrics.detection import (
    OUTCOMES,
    auroc,
    detection_figures,
    detection_outcomes,
    effective_raters,
    error_correlation,
    error_pairs,
    macro_f1,
    resampled_figures,
)
from moot.metrics.jackknife import coefficient_interval, left_out_sums

CASES = st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1, None])), min_size=1, max_size=60)
LABELS = ["flu", "cold", "dengue", "measles"]


@given(
    st.lists(
        st.tuples(st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6)), st.booleans()), min_size=2
    ).filter(lambda pairs: len({positive for _, positive in pairs}) == 2)
)
def test_auroc_is_scikit_learns(pairs: list[tuple[float, bool]]) -> None:
    score, positive = zip(*pairs, strict=True)
    assert auroc(score, positive) == pytest.approx(float(roc_auc_score(positive, score)), abs=1e-12)
    unknown = [*score, None, 1.0, math.nan], [*positive, True, None, False]
    assert auroc(*unknown) == auroc(score, positive)


def test_auroc_of_one_class_is_unknown() -> None:
    for score, positive in (([], []), ([0.1, 0.2], [True, True]), ([0.1, math.nan], [True, False])):
        assert math.isnan(auroc(score, positive))
    assert auroc([-math.inf, math.inf], [False, True]) == 1.0
    for wrong in ([True], [0, 2]):
        refuses(r"length|0, 1 or unknown", auroc, [0.1, 0.2], wrong)


@pytest.mark.parametrize("seed", range(3))
def test_macro_f1_is_scikit_learns(seed: int) -> None:
    random = np.random.default_rng(seed)
    truth = [LABELS[i] for i in random.choice(4, size=80, p=[0.6, 0.3, 0.1, 0.0])]
    # With an odd seed a label is answered that is nowhere true: its F1 is 0, not unknown.
    predicted = [*(LABELS[i] for i in random.integers(3 + seed % 2, size=70)), *["none of these"] * 10]
    expected = f1_score(truth, predicted, labels=LABELS, average="macro", zero_division=math.nan)
    assert macro_f1(truth, predicted, LABELS) == pytest.approx(expected)
    assert macro_f1(truth, [*predicted[:70], *[None] * 10], LABELS) == pytest.approx(expected)
    assert macro_f1([*truth, None], [*predicted, "flu"], LABELS) == pytest.approx(expected)


def test_macro_f1_of_nothing_is_unknown_and_an_abstention_is_wrong() -> None:
    assert macro_f1(["flu"] * 4, [None] * 4, LABELS) == 0.0
    assert math.isnan(macro_f1([None], ["cold"], LABELS))
    refuses("1 true labels but 2 answers", macro_f1, ["flu"], ["flu", "flu"], LABELS)
    refuses("twice", macro_f1, ["flu"], ["flu"], ["flu", "flu"])
    refuses("'gout' is not one of the labels", macro_f1, ["gout"], ["flu"], LABELS)


@given(CASES)
def test_figures_are_scikit_learns_where_an_abstention_is_a_third_answer(cases: list[tuple[int, int | None]]) -> None:
    truth, called = [true for true, _ in cases], [2 if said is None else said for _, said in cases]
    found = detection_figures(detection_outcomes(truth, [said for _, said in cases]).sum(axis=0))
    precision, recall, f1, _ = precision_recall_fscore_support(truth, called, labels=[0, 1], zero_division=math.nan)
    for figures, expected in ((found.precision, precision), (found.recall, recall), (found.f1, f1)):
        assert figures.tolist() == pytest.approx(list(expected), nan_ok=True)
    assert float(found.accuracy) == pytest.approx(accuracy_score(truth, called))
    macro = f1_score(truth, called, labels=[0, 1], average="macro", zero_division=math.nan)
    assert float(found.macro_f1) == pytest.approx(macro, nan_ok=True)


def test_unknown_truth_is_left_out_and_nothing_is_not_a_number() -> None:
    assert detection_outcomes([None, 1], [1, 1]).sum() == 1.0
    found = detection_figures(np.zeros(OUTCOMES))
    assert np.isnan([*found.f1, *found.recall, *found.precision, found.macro_f1, found.accuracy]).all()
    refuses("two vectors of equal length", detection_outcomes, [0, 1], [0])
    refuses("a class must be 0, 1 or unknown", detection_outcomes, [0, 2], [0, 1])
    refuses(r"counts of \(..., 6\) expected", detection_figures, [1, 2, 3])


@pytest.mark.parametrize("rate", [0.5, 0.85], ids=["null", "planted"])
def test_intervals_by_cluster_cover_the_planted_value(rate: float) -> None:
    """Pairs of one question: both right or both wrong, so that intervals over cases would be too narrow."""
    held, trials = 0, 120
    for trial in range(trials):
        random = np.random.default_rng(trial)
        right = np.repeat(random.random(150) < rate, 2)
        truth = np.tile([0, 1], 150)
        rows = detection_outcomes(truth, np.where(right, truth, 1 - truth))
        clusters = np.repeat(np.arange(150), 2)
        observed = detection_figures(rows.sum(axis=0)).macro_f1
        left_out = detection_figures(left_out_sums(rows, clusters)).macro_f1
        low, high = coefficient_interval(left_out, observed, lowest=0.0)
        held += bool(low <= rate <= high)
    assert held >= 0.88 * trials


def test_a_resample_without_one_of_the_classes_has_no_macro_f1() -> None:
    """One case in six is of class 1 and missed: the macro F1 of any such data lies below one half."""
    y = [1, 0, 0, 0, 0, 0]
    outcomes = detection_outcomes(y, [0] * 6)
    weights = cluster_weights(np.arange(6), 400)
    found = resampled_figures(outcomes.sum(axis=0), weights @ outcomes)
    without = weights[:, 0] == 0
    assert 50 < without.sum() < 250
    np.testing.assert_array_equal(np.isnan(found.macro_f1), without)
    assert np.nanmax(found.macro_f1) <= 0.5
    both = np.stack([outcomes, detection_outcomes(y, y)])
    several = resampled_figures(both.sum(axis=1), np.einsum("rn,dnk->rdk", weights, both))
    np.testing.assert_array_equal(several.macro_f1[:, 0], found.macro_f1)
    np.testing.assert_array_equal(several.macro_f1[:, 1], np.where(without, np.nan, 1.0))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=50))
def test_error_correlation_is_pearsons_of_the_indicators(errors: list[tuple[bool, bool]]) -> None:
    first, second = (np.array(column, float) for column in zip(*errors, strict=True))
    known = error_pairs([*first, None, True], [*second, True, None])
    found = error_correlation(known.sum(axis=0))
    if np.ptp(first) and np.ptp(second):
        assert found == pytest.approx(np.corrcoef(first, second)[0, 1])
    else:
        assert math.isnan(float(found))
    drawn = np.random.default_rng(1).integers(0, 3, len(known))
    assert error_correlation(drawn @ known) == pytest.approx(
        error_correlation(np.repeat(known, drawn, axis=0).sum(axis=0)), nan_ok=True
    )


@pytest.mark.parametrize("shared", [0.0, 0.5], ids=["null", "planted"])
def test_a_shared_cause_is_detected_and_intervals_cover_it(shared: float) -> None:
    """With probability `shared` both errors are one and the same draw: that is their correlation."""
    held, trials = 0, 100
    for trial in range(trials):
        random = np.random.default_rng(trial)
        common, same = random.random(400) < 0.3, random.random(400) < shared
        first, second = (np.where(same, common, random.random(400) < 0.3) for _ in range(2))
        rows = error_pairs(first, second)
        observed = error_correlation(rows.sum(axis=0))
        low, high = coefficient_interval(error_correlation(left_out_sums(rows, np.arange(400))), observed)
        held += bool(low <= shared <= high)
    assert held >= 0.88 * trials


@pytest.mark.parametrize(("rho", "raters"), [(0.0, 2), (0.3, 2), (0.5, 4), (1.0, 3)])
def test_effective_raters_have_the_variance_of_the_mean(rho: float, raters: int) -> None:
    random = np.random.default_rng(0)
    common, own = random.normal(size=(200_000, 1)), random.normal(size=(200_000, raters))
    means = (math.sqrt(rho) * common + math.sqrt(1 - rho) * own).mean(axis=1)
    assert effective_raters(rho, raters) == pytest.approx(1.0 / means.var(), rel=0.02)


def test_without_variance_nothing_is_known_of_raters() -> None:
    assert effective_raters(-0.5, 2) == 4.0
    assert math.isnan(effective_raters(-1.0, 2))
    assert math.isnan(effective_raters(math.nan, 2))
    refuses("true, false or unknown", error_pairs, [2, 1], [1, 0])
    refuses(r"counts of \(..., 4\) expected", error_correlation, [1, 2])
    refuses(r"\[-1, 1\]", effective_raters, 1.5, 2)
