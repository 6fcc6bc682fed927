"""What is said of claims: figures against scikit-learn, what is left out, what is trivial, calibration, errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from not_none import not_none
from sklearn.metrics import brier_score_loss, f1_score, precision_score, recall_score

from moot.deploy.results.figures.claim_blocks import detection_blocks, detection_rows
from moot.deploy.results.figures.claims import (
    ALWAYS,
    BARE,
    BINS,
    VERDICT,
    Claim,
    claim_set,
    macro_f1_difference,
    measure_detection,
)
from moot.deploy.results.report.blocks import Note
from moot.deploy.results.stats import IntervalEstimate
from moot.deploy.studies.training.card import HeldOutCases
from moot.metrics.calibration_error import expected_calibration_error
from moot.metrics.jackknife import LEAST_CLUSTERS
from moot.metrics.significance import wilson_interval
from moot.protocols.ceda.stance import Stance
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED

OTHER = {SUPPORTED: HALLUCINATED, HALLUCINATED: SUPPORTED}


def pairs(n: int, right: float, seed: int = 0, bare: float | None = None) -> list[Claim]:
    """Balanced pairs of claims, each right with a probability, and the judges' alone with another."""
    random = np.random.default_rng(seed)

    def said(gold: str, p: float) -> str:
        return gold if random.random() < p else OTHER[gold]

    return [
        Claim(
            case_id=f"q{pair:03d}-{gold}",
            gold=gold,
            group=f"q{pair:03d}",
            answer=said(gold, right),
            judged=bare is not None,
            bare=None if bare is None else said(gold, bare),
        )
        for pair in range(n)
        for gold in CLAIM_LABELS
    ]


def test_both_classes_have_the_figures_of_scikit_learn() -> None:
    claims = pairs(60, 0.7)
    (verdict, *_) = claim_set(claims).detectors
    gold, answers = [claim.gold for claim in claims], [claim.answer for claim in claims]
    for label, found in ((SUPPORTED, verdict.supported), (HALLUCINATED, verdict.hallucinated)):
        for figure, score in ((found.f1, f1_score), (found.recall, recall_score), (found.precision, precision_score)):
            assert figure.value == pytest.approx(score(gold, answers, pos_label=label))
            low, high = not_none(figure.interval)
            assert low < not_none(figure.value) < high
        assert found.n == 60
    assert verdict.macro_f1.value == pytest.approx(f1_score(gold, answers, average="macro"))
    assert verdict.accuracy.value == pytest.approx(np.mean([g == a for g, a in zip(gold, answers, strict=True)]))


def test_trivial_answers_are_compared_with_the_verdict_on_the_same_claims() -> None:
    found = claim_set(pairs(50, 0.8))
    always, never = (not_none(found.by(ALWAYS[label])) for label in CLAIM_LABELS)
    assert [each.by for each in found.detectors] == [VERDICT, *ALWAYS.values()]
    assert always.supported.f1.value == never.hallucinated.f1.value == pytest.approx(2 / 3)
    assert (always.hallucinated.f1.value, always.accuracy.value) == (0.0, 0.5)
    assert always.macro_f1.value == pytest.approx(1 / 3)
    assert found.gain is None


def test_a_claim_left_open_is_a_miss_and_no_false_alarm() -> None:
    claims = [replace(claim, answer=None if claim.gold == HALLUCINATED else claim.gold) for claim in pairs(20, 1.0)]
    (verdict, *_) = claim_set(claims).detectors
    assert verdict.abstained == 20
    assert (verdict.supported.f1.value, verdict.supported.precision.value) == (1.0, 1.0)
    assert (verdict.hallucinated.recall.value, verdict.hallucinated.precision.value) == (0.0, None)
    assert (verdict.macro_f1.value, verdict.accuracy.value) == (0.5, 0.5)


def test_the_gain_over_the_judges_is_paired() -> None:
    better, null = claim_set(pairs(200, 0.9, bare=0.65)), claim_set(pairs(200, 0.75, bare=0.75))
    bare = not_none(better.by(BARE))
    assert bare.macro_f1.value == pytest.approx(0.65, abs=0.06)
    gain, none = not_none(better.gain), not_none(not_none(null.gain).interval)
    assert gain.value == pytest.approx((better.detectors[0].macro_f1.value or 0) - (bare.macro_f1.value or 0))
    assert not_none(gain.interval)[0] > 0.1
    assert none[0] < 0.0 < none[1]
    same = claim_set([replace(claim, judged=True, bare=claim.answer) for claim in pairs(30, 0.8)])
    assert (not_none(same.gain).value, not_none(same.gain).interval) == (0.0, None)


def test_intervals_are_by_group() -> None:
    """Each claim four times in one group is no more evidence than once; alone it would be."""
    once = [replace(claim, group=claim.case_id) for claim in pairs(40, 0.7)]
    copies = [replace(claim, case_id=f"{claim.case_id}-{copy}") for claim in once for copy in range(4)]
    apart = [replace(claim, group=claim.case_id) for claim in copies]
    ends = [claim_set(claims).detectors[0].macro_f1.interval for claims in (once, copies, apart)]
    assert ends[0] is not None
    assert ends[1] == pytest.approx(ends[0])
    assert not_none(ends[2])[1] - not_none(ends[2])[0] < 0.6 * (ends[0][1] - ends[0][0])
    assert [claim_set(claims).groups for claims in (once, copies, apart)] == [80, 80, 320]


@pytest.mark.parametrize(("groups", "given"), [(LEAST_CLUSTERS - 1, False), (LEAST_CLUSTERS, True)])
def test_too_few_groups_have_figures_without_an_interval(groups: int, given: bool) -> None:
    """The first claim is wrong and has a stance and a probability like the others: everything varies."""
    claims = [
        replace(
            claim,
            answer=claim.gold if number else OTHER[str(claim.gold)],
            bare=OTHER[SUPPORTED] if number % 3 else SUPPORTED,
            judged=True,
            p_judges=0.1 * (number % 7),
            stances={"debater/0": "supports", "debater/1": "supports" if number % 3 else "denies"},
        )
        for number, claim in enumerate(pairs(groups, 1.0))
    ]
    found = measure_detection(claims)
    assert found.whole is not None
    verdict, always = found.whole.detectors[0], found.whole.by(ALWAYS[SUPPORTED])
    two = [
        {claim.case_id: each for claim, each in zip(claims, run, strict=True)} for run in (claims, pairs(groups, 0.5))
    ]
    figures = [verdict.macro_f1, verdict.accuracy, verdict.hallucinated.f1, verdict.hallucinated.recall]
    figures += [verdict.supported.recall, found.whole.gain or IntervalEstimate(), found.calibration[0].brier]
    figures += [not_none(found.debaters).rho, macro_f1_difference(*two)]
    assert None not in [each.value for each in figures]
    assert [each.interval is not None for each in figures] == [given] * len(figures)
    assert not_none(always).accuracy.interval is None


def test_only_groups_with_a_claim_that_enters_a_figure_are_behind_it() -> None:
    """Of 20 groups 3 have a hallucinated claim: enough for the accuracy, too few for that class's recall."""
    claims = [claim for claim in pairs(20, 0.6) if claim.gold == SUPPORTED or claim.group < "q003"]
    verdict = claim_set(claims).detectors[0]
    assert verdict.hallucinated.recall.value is not None
    assert verdict.hallucinated.recall.interval is None
    assert None not in (verdict.accuracy.interval, verdict.supported.recall.interval, verdict.macro_f1.interval)


def test_the_accuracy_of_independent_claims_has_the_interval_of_a_summary() -> None:
    apart = [replace(claim, group=claim.case_id) for claim in pairs(10, 0.6)]
    verdict, *_, trivial = claim_set(apart).detectors
    for found in (verdict, trivial):
        ends = wilson_interval(round(20 * not_none(found.accuracy.value)), 20)
        assert found.accuracy.interval == (ends.low, ends.high)
    assert claim_set(pairs(10, 0.6)).detectors[0].accuracy.interval != verdict.accuracy.interval


def test_texts_say_that_claims_are_too_few_for_calibration_and_correlation() -> None:
    claims = [
        replace(claim, p_judges=0.1 * number, stances={"debater/0": "supports", "debater/1": "supports"})
        for number, claim in enumerate(pairs(3, 1.0))
    ]
    found = measure_detection(claims)
    assert [each.calibration_null for each in found.calibration] == [None]
    text = " ".join(value for _, value in detection_rows(found, None))
    text += " ".join(block.text for block in detection_blocks(found) if isinstance(block, Note))
    assert text.count("too few cases: n = 6") == 2


def test_what_cannot_count_is_left_out_and_counted() -> None:
    claims = pairs(10, 1.0)
    claims[0] = replace(claims[0], trained_on="claim", answer=OTHER[str(claims[0].gold)])
    claims[1] = replace(claims[1], gold=None)
    claims[2] = replace(claims[2], state="failed", answer=None)
    claims[3] = replace(claims[3], state="withdrawn", answer=None)
    found = measure_detection(claims)
    assert (found.claims, found.finished, found.failed, found.open, found.withdrawn) == (20, 18, 1, 1, 1)
    assert (found.unlabelled, found.trained_on) == (1, 1)
    assert not_none(found.whole).n == 16
    assert not_none(found.whole).detectors[0].accuracy.value == 1.0
    nothing = measure_detection([replace(claim, gold=None) for claim in claims])
    assert (nothing.whole, nothing.by_category, nothing.calibration, nothing.debaters) == (None, [], [], None)


def test_calibration_is_of_being_hallucinated() -> None:
    random = np.random.default_rng(5)
    claims = []
    for number in range(400):
        p = float(random.random())
        gold = HALLUCINATED if random.random() < p else SUPPORTED
        given = None if number % 10 == 0 else p
        claims.append(Claim(case_id=f"c{number}", gold=gold, group=f"c{number}", p_classifier=given, p_judges=1 - p))
    classifier, judges = measure_detection(claims).calibration
    classified = [claim for claim in claims if claim.p_classifier is not None]
    truth = [claim.gold == HALLUCINATED for claim in classified]
    stated = [claim.p_classifier or 0.0 for claim in classified]
    assert (classifier.source, classifier.n, classifier.unknown) == ("classifier", 360, 40)
    assert classifier.brier.value == pytest.approx(brier_score_loss(truth, stated))
    assert classifier.calibration_error == pytest.approx(expected_calibration_error(stated, truth, bins=BINS))
    assert not_none(classifier.calibration_error) < not_none(classifier.calibration_null)[1]
    assert classifier.brier_of_share == pytest.approx(np.var(truth))
    assert sum(each.n for each in classifier.bins) == 360
    assert judges.source == "judges"
    assert not_none(judges.calibration_error) > not_none(judges.calibration_null)[1]
    assert (judges.brier.value or 0.0) > judges.brier_of_share


@pytest.mark.parametrize(("shared", "least", "most"), [(0.0, -0.1, 0.1), (1.0, 0.999, 1.0)])
def test_debaters_errors_are_those_of_their_first_stances(shared: float, least: float, most: float) -> None:
    random = np.random.default_rng(8)
    claims = []
    for claim in pairs(300, 1.0):
        right: Stance = "supports" if claim.gold == SUPPORTED else "denies"
        wrong: Stance = "denies" if right == "supports" else "supports"
        first = random.random() < 0.3
        second = first if random.random() < shared else random.random() < 0.3
        stances = {"debater/0": wrong if first else right, "debater/1": wrong if second else right}
        claims.append(replace(claim, stances=stances))
    claims.append(replace(claims[0], case_id="unknown", stances={"debater/0": None, "debater/1": "supports"}))
    found = not_none(measure_detection(claims).debaters)
    assert found.n == 600
    assert found.error_rates == pytest.approx((0.3, 0.3), abs=0.06)
    assert least <= not_none(found.rho.value) <= most
    assert found.effective_debaters.value == pytest.approx(2 / (1 + not_none(found.rho.value)))
    if found.rho.interval is not None:
        assert found.effective_debaters.interval == pytest.approx(
            (2 / (1 + found.rho.interval[1]), 2 / (1 + found.rho.interval[0]))
        )


def test_nothing_is_known_of_errors_when_one_debater_never_errs() -> None:
    claims = [
        replace(c, stances={"debater/0": "supports" if c.gold == SUPPORTED else "denies", "debater/1": "supports"})
        for c in pairs(20, 1.0)
    ]
    found = not_none(measure_detection(claims).debaters)
    assert found.error_rates == (0.0, 0.5)
    assert (found.rho.value, found.effective_debaters.value) == (None, None)
    alone = [replace(claim, stances={"debater/0": "supports"}) for claim in claims]
    assert measure_detection(alone).debaters is None


def test_seconds_are_of_every_finished_claim() -> None:
    claims = [replace(claim, wall_s=float(number)) for number, claim in enumerate(pairs(5, 1.0), start=1)]
    claims[9] = replace(claims[9], wall_s=None)
    found = not_none(measure_detection(claims).seconds)
    assert (found.n, found.mean, found.median) == (9, 5.0, 5.0)
    assert found.p90 == pytest.approx(8.2)
    assert measure_detection(pairs(3, 1.0)).seconds is None


def test_two_runs_are_compared_on_the_claims_of_both() -> None:
    good, poor = ({c.case_id: c for c in pairs(150, right, seed)} for right, seed in ((0.9, 1), (0.7, 2)))
    del poor["q000-supported"]
    found = macro_f1_difference(good, poor)
    shared = sorted(good.keys() & poor.keys())
    scores = [
        f1_score([each[i].gold for i in shared], [each[i].answer for i in shared], average="macro")
        for each in (good, poor)
    ]
    assert found.value == pytest.approx(scores[0] - scores[1])
    assert 0.0 < not_none(found.interval)[0] < not_none(found.value) < not_none(found.interval)[1]
    assert macro_f1_difference(good, good).value == 0.0
    one_class = {name: claim for name, claim in good.items() if claim.gold == SUPPORTED}
    assert macro_f1_difference(one_class, good).value is None


def test_no_value_that_cannot_occur_is_in_an_interval_of_the_macro_f1() -> None:
    """Without the only hallucinated claim, which is missed, the macro F1 would be 1: there is no interval."""
    claims = [
        Claim(case_id=str(i), gold=CLAIM_LABELS[i == 0], group=str(i), answer=SUPPORTED, judged=True) for i in range(12)
    ]
    verdict = claim_set(claims).detectors[0]
    assert verdict.macro_f1.value == pytest.approx(11 / 23)
    assert verdict.macro_f1.interval is None


def test_where_all_are_right_so_many_groups_still_leave_room_for_doubt() -> None:
    claims = [replace(claim, judged=True, bare=None) for claim in pairs(20, 1.0)]
    verdict, judges, always, _ = claim_set(claims).detectors
    ends = wilson_interval(20, 20)
    for share in (verdict.accuracy, verdict.supported.recall, verdict.hallucinated.precision):
        assert (share.value, share.interval) == (1.0, (ends.low, ends.high))
    assert judges.accuracy.value == 0.0
    assert judges.accuracy.interval == pytest.approx((0.0, 1.0 - ends.low))
    assert verdict.supported.f1.interval is None  # no share
    one_class = claim_set([claim for claim in claims if claim.gold == SUPPORTED])
    figures = one_class.detectors[0].supported
    assert (one_class.only, one_class.detectors[0].macro_f1.value) == (SUPPORTED, None)
    assert (figures.recall.interval, figures.precision.interval) == ((ends.low, ends.high), None)
    assert (always.supported.recall.value, always.supported.recall.interval) == (1.0, None)
    outcome, groups = np.array([float(c.gold == HALLUCINATED) for c in claims]), np.array([c.group for c in claims])
    trained = HeldOutCases(outcome, groups, np.arange(40) // 2).of_answers("x", outcome)
    assert (trained.accuracy.low, trained.accuracy.high) == verdict.accuracy.interval
