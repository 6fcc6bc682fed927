"""Figures of a detection against scikit-learn, with abstentions, resampled by cluster, planted and null."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from moot.metrics.cluster_bootstrap import cluster_weights, interval_from, resampled_sums
from moot.metrics.detection import OUTCOMES, detection_figures, detection_outcomes, macro_f1

CASES = st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1, None])), min_size=1, max_size=60)


@given(CASES)
def test_is_that_of_scikit_learn_where_an_abstention_is_a_third_answer(cases: list[tuple[int, int | None]]) -> None:
    truth, called = [true for true, _ in cases], [2 if said is None else said for _, said in cases]
    found = detection_figures(detection_outcomes(truth, [said for _, said in cases]).sum(axis=0))
    precision, recall, f1, _ = precision_recall_fscore_support(truth, called, labels=[0, 1], zero_division=math.nan)
    for figures, expected in ((found.precision, precision), (found.recall, recall), (found.f1, f1)):
        assert figures.tolist() == pytest.approx(list(expected), nan_ok=True)
    assert float(found.accuracy) == pytest.approx(accuracy_score(truth, called))
    macro = f1_score(truth, called, labels=[0, 1], average="macro", zero_division=math.nan)
    assert float(found.macro_f1) == pytest.approx(macro, nan_ok=True)
    names = ["no", "yes"]
    said = [None if each is None else names[each] for _, each in cases]
    assert float(found.macro_f1) == pytest.approx(macro_f1([names[true] for true in truth], said, names), nan_ok=True)


@given(CASES)
def test_the_classes_change_places_when_their_numbers_do(cases: list[tuple[int, int | None]]) -> None:
    one = detection_figures(detection_outcomes(*zip(*cases, strict=True)).sum(axis=0))
    turned = [(1 - true, None if said is None else 1 - said) for true, said in cases]
    other = detection_figures(detection_outcomes(*zip(*turned, strict=True)).sum(axis=0))
    assert one.f1.tolist() == pytest.approx(other.f1[::-1].tolist(), nan_ok=True)
    assert one.precision.tolist() == pytest.approx(other.precision[::-1].tolist(), nan_ok=True)
    assert float(one.macro_f1) == pytest.approx(float(other.macro_f1), nan_ok=True)


@given(CASES)
def test_abstaining_instead_of_being_right_never_pays(cases: list[tuple[int, int | None]]) -> None:
    truth = [true for true, _ in cases]
    answered = detection_figures(detection_outcomes(truth, truth).sum(axis=0))
    some = [None if said is None else true for true, said in cases]
    left_open = detection_figures(detection_outcomes(truth, some).sum(axis=0))
    assert float(answered.accuracy) == 1.0
    assert float(left_open.accuracy) <= 1.0
    assert np.nan_to_num(left_open.precision, nan=1.0).tolist() == [1.0, 1.0]
    assert float(left_open.accuracy) == pytest.approx(sum(said is not None for said in some) / len(some))


def test_only_one_class_has_a_precision_of_1_and_no_figures_of_the_other() -> None:
    found = detection_figures(detection_outcomes([0, 0, 0, 0], [0, 0, 0, None]).sum(axis=0))
    assert (found.precision[0], found.recall[0]) == (1.0, 0.75)
    assert found.f1[0] == pytest.approx(2 * 0.75 / 1.75)
    assert np.isnan([found.precision[1], found.recall[1], found.f1[1]]).all()


def test_always_one_class_on_balanced_pairs_is_two_thirds() -> None:
    found = detection_figures(detection_outcomes([0, 1] * 50, [0] * 100).sum(axis=0))
    assert found.f1.tolist() == pytest.approx([2 / 3, 0.0])
    assert float(found.macro_f1) == pytest.approx(1 / 3)
    assert float(found.accuracy) == 0.5


def test_unknown_truth_is_left_out_and_nothing_is_not_a_number() -> None:
    known = detection_outcomes([None, 1], [1, 1])
    assert known.sum() == 1.0
    found = detection_figures(np.zeros(OUTCOMES))
    assert np.isnan([*found.f1, *found.recall, *found.precision, found.macro_f1, found.accuracy]).all()


def test_resamples_are_the_figures_of_the_drawn_cases() -> None:
    random = np.random.default_rng(3)
    truth, called = random.integers(2, size=80), random.integers(2, size=80)
    clusters = np.repeat(np.arange(20), 4)
    rows = detection_outcomes(truth, called)
    resampled = detection_figures(resampled_sums(rows, clusters, 6, seed=5))
    for place, weight in enumerate(cluster_weights(clusters, 6, seed=5)):
        drawn = np.repeat(np.arange(80), weight)
        expected = f1_score(truth[drawn], called[drawn], average=None, labels=[0, 1])
        assert resampled.f1[place].tolist() == pytest.approx(expected.tolist())


@pytest.mark.parametrize("rate", [0.5, 0.85], ids=["null", "planted"])
def test_intervals_by_cluster_hold_the_planted_value(rate: float) -> None:
    """Pairs of one question: both right or both wrong, so that intervals over cases would be too narrow."""
    held, trials = 0, 120
    for trial in range(trials):
        random = np.random.default_rng(trial)
        right = np.repeat(random.random(150) < rate, 2)
        truth = np.tile([0, 1], 150)
        rows = detection_outcomes(truth, np.where(right, truth, 1 - truth))
        clusters = np.repeat(np.arange(150), 2)
        observed = detection_figures(rows.sum(axis=0)).macro_f1
        resampled = detection_figures(resampled_sums(rows, clusters, 200)).macro_f1
        low, high = interval_from(resampled, observed, lowest=0.0)
        held += bool(low <= rate <= high)
    assert held >= 0.88 * trials


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="two vectors of one length"):
        detection_outcomes([0, 1], [0])
    with pytest.raises(ValueError, match="a class is 0, 1 or unknown"):
        detection_outcomes([0, 2], [0, 1])
    with pytest.raises(ValueError, match=r"counts of \(..., 6\) expected"):
        detection_figures([1, 2, 3])
