"""A run's distributions scored against the labels: the right figures, each over the cases with it; and labels to
review: exactly the confident contradictions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from not_none import not_none
from planted_records import Command, PlantedSession, Printed

import moot
from moot.deploy.results.figures.confidence import (
    BINS,
    ConsensusVerdict,
    Evaluation,
    ScoredDistribution,
    evaluate_distributions,
    evaluation_rows,
    score_distribution,
)
from moot.deploy.results.figures.label_audit import audit_labels
from moot.deploy.results.figures.summary import Summary, summarise
from moot.deploy.results.show import show
from moot.deploy.results.stats import LEAST_CASES

LABELS = ("a", "b", "c", "d")
CONSENSUS = {"distribution_from": "consensus"}


def verdict(
    gold: str | None, distribution: Mapping[str, float] | None, labels: tuple[str, ...] = LABELS
) -> ConsensusVerdict:
    likeliest = max(distribution, key=lambda label: distribution[label]) if distribution else None
    answer = None if likeliest == "(other)" else likeliest
    confidence = distribution[answer] if distribution and answer else None
    return ConsensusVerdict("id", "?", gold, answer, answer == gold, confidence, None, True, labels, distribution)


def judged(*verdicts: ConsensusVerdict, cases: int = 4) -> Evaluation:
    found = not_none(evaluate_distributions(verdicts, cases))
    return found


def test_the_figures_by_hand() -> None:
    found = judged(
        verdict("a", {"a": 0.7, "b": 0.2, "c": 0.1}),
        verdict("b", {"a": 0.6, "b": 0.4}),
        verdict("c", {"a": 0.2, "b": 0.2, "(other)": 0.6}),
    )
    assert found.accuracy_at_1.value == pytest.approx(1 / 3)
    assert not_none(found.accuracy_at_3).value == pytest.approx(2 / 3)
    assert found.mean_reciprocal_rank.value == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert found.brier_multiclass.value == pytest.approx((0.14 + 0.72 + 1.44) / 3)
    assert found.brier_top_label.value == pytest.approx((0.09 + 0.36 + 0.36) / 3)
    assert found.macro_f1.value == pytest.approx((2 / 3 + 0 + 0) / 3)
    assert (found.accuracy_at_1.n, found.accuracy_at_1.coverage) == (3, 0.75)


def test_what_cannot_be_scored_is_left_out_and_lowers_the_coverage() -> None:
    good = verdict("a", {"a": 1.0})
    found = judged(
        good,
        verdict(None, {"a": 1.0}),
        verdict("a", None),
        verdict("not a label", {"a": 1.0}),
        verdict("a", {"a": 0.5}),
        cases=10,
    )
    assert found.brier_multiclass.n == 1
    assert found.brier_multiclass.coverage == 0.1
    assert found == judged(good, cases=10)
    assert evaluate_distributions([], 3) is None
    assert evaluate_distributions([verdict(None, {"a": 1.0})], 3) is None


@pytest.mark.parametrize("cases", [LEAST_CASES - 1, LEAST_CASES])
def test_a_calibration_error_is_given_beside_a_calibrated_models_where_cases_are_enough(cases: int) -> None:
    found = judged(*[verdict("a", {"a": 0.7, "b": 0.3})] * cases, cases=cases)
    assert found.calibration_error.value == pytest.approx(0.3), "equal confidences share a bin"
    assert (found.calibration_null is None) == (cases < LEAST_CASES)
    shown = dict(evaluation_rows(found))[f"ECE, {BINS} equal-frequency bins"]
    assert shown.startswith("0.3 " if found.calibration_null else "too few cases: n = 9")


@pytest.fixture
def run(session: PlantedSession) -> Path:
    """Ten cases with a label: six with a consensus, one failed, one of votes, two open; and one without a label."""
    for i in range(10):
        session.case(f"c{i}", gold="a", labels=LABELS)
    session.case("free", gold=None, labels=LABELS)
    for i in range(6):
        session.verdict(f"c{i}", "a", "converged", distribution={"a": 0.8, "b": 0.2}, payload=CONSENSUS, confidence=0.8)
    session.verdict("c6", None, "failed", failure="quorum_failed")
    session.verdict("c7", "b", "judged", distribution={"b": 1.0}, payload={})
    session.verdict("free", "a", "converged", distribution={"a": 1.0}, payload=CONSENSUS)
    return session.plant()


def test_the_summary_has_each_figure_with_what_it_is_over(run: Path, printed: Printed) -> None:
    text = " ".join(printed(show, run, width=200).split())
    for expected in (
        "Acc@1 100.0 % (n = 6, coverage 60.0 %)",
        "Brier, top label (0 to 1) 0.04 (n = 6",
        "ECE, 15 equal-frequency bins too few cases: n = 6",
    ):
        assert expected in text, expected
    read = json.loads(printed(show, run, form="json"))["evaluation"]
    assert read["brier_multiclass"] == {"value": pytest.approx(0.08), "n": 6, "coverage": 0.6}
    assert Summary.model_validate_json(printed(show, run, form="json")) == summarise(run)


def test_shares_of_votes_are_not_judged_as_probabilities(tmp_path: Path, printed: Printed) -> None:
    folder = moot.run(task="sample", limit=4, engine="inline", out=tmp_path / "run").path
    assert summarise(folder).evaluation is None
    assert "Brier, all labels" not in printed(show, folder)


NAMED = ("a", "Other", "b")


def test_the_score_by_hand() -> None:
    found = score_distribution({"a": 0.5, "Other": 0.25, "(other)": 0.25}, NAMED, "Other")
    assert found == ScoredDistribution([0.5, 0.25, 0.0, 0.25], 1, 0.5**2 + 0.75**2 + 0.25**2)
    unnamed = score_distribution({"a": 1.0}, NAMED, "b")
    assert isinstance(unnamed, ScoredDistribution)
    assert unnamed.brier == 2.0


@pytest.mark.parametrize(
    ("distribution", "labels", "gold", "why"),
    [
        (None, NAMED, "a", "no distribution"),
        ({}, NAMED, None, "no distribution"),
        ({"a": 1.0}, NAMED, None, "no gold label"),
        ({"a": 1.0}, NAMED, "A", "gold outside the labels"),
        ({"a": 1.0}, (), "a", "gold outside the labels"),
        ({"a": 1.0}, NAMED, "(other)", "gold outside the labels"),
        ({"a": 0.5, "other": 0.5}, NAMED, "a", "no distribution over the labels"),
        ({"a": None, "b": 0.5}, NAMED, "a", "no distribution over the labels"),
        ({"a": 0.9, "b": 0.9}, NAMED, "a", "no distribution over the labels"),
    ],
)
def test_what_has_no_score_says_why(
    distribution: Mapping[str, float | None] | None, labels: tuple[str, ...], gold: str | None, why: str
) -> None:
    assert score_distribution(distribution, labels, gold) == why


EVIL = "Is it [bold red]x[/] \x1b[2J | <script>?" + " and so on" * 20
PAYLOAD = {"distribution_from": "consensus", "crit_mean": 0.75}


@pytest.fixture
def questionable(session: PlantedSession) -> Path:
    def add(case_id: str, answer: str | None = "No", gold: str | None = "Yes", **verdict: Any) -> None:
        session.case(case_id, gold=gold, question=EVIL)
        fields: Any = {"how": "converged", "confidence": 0.9, "payload": PAYLOAD} | verdict
        session.verdict(case_id, answer, **fields)

    add("listed")
    add("surer", confidence=0.95)
    add("at-the-bounds", confidence=0.8, payload=PAYLOAD | {"crit_mean": 0.7})
    add("agrees", answer="Yes")
    add("unsure", confidence=0.79)
    add("badly-argued", payload=PAYLOAD | {"crit_mean": 0.69})
    add("stalled", how="stalled")
    add("by-the-printed-rule", how="printed", payload=PAYLOAD | {"converged": True}, confidence=0.85)
    add("in-the-last-round", how="max_rounds", payload=PAYLOAD | {"converged": True}, confidence=0.84)
    add("swapped", how="printed", payload=PAYLOAD | {"converged": False})
    add("silent-at-the-end", how="max_rounds", payload=PAYLOAD | {"converged": None})
    add("silent-and-agrees", answer="Yes", how="max_rounds", payload=PAYLOAD | {"converged": None})
    add("ensemble", how="ensemble")
    add("no-label", gold=None)
    add("no-answer", answer=None, confidence=None)
    add("no-crit", payload=PAYLOAD | {"crit_mean": None})
    add("votes", payload={"distribution_from": "votes", "crit_mean": 0.9})
    add("failed", answer=None, how="failed", failure="quorum_failed")
    session.reply("listed", "opening/agent/0", 1)
    return session.plant(simulated=True)


def test_exactly_the_confident_contradictions_are_listed_the_surest_first(questionable: Path) -> None:
    found = audit_labels(questionable)
    assert [each.case_id for each in found.labels] == [
        "surer",
        "listed",
        "by-the-printed-rule",
        "in-the-last-round",
        "at-the-bounds",
    ]
    assert (found.labels[0].gold, found.labels[0].consensus, found.labels[0].crit_mean) == ("Yes", "No", 0.75)
    assert found.unknown == 2, "no-crit and silent-at-the-end"
    assert summarise(questionable).labels_questioned == 5
    assert [each.case_id for each in audit_labels(questionable, confidence=0.0, crit=0.72).labels] == [
        "surer",
        "listed",
        "by-the-printed-rule",
        "in-the-last-round",
        "unsure",
    ]
    assert not audit_labels(questionable, confidence=1.0).labels


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--crit", "0.5"], "--crit needs --questioned"),
        (["listed", "--questioned"], "--questioned is about a whole run: leave out the case"),
        (["--questioned", "--plot", "x.svg"], "leave out --plot"),
        (["--questioned", "--crit", "7"], "--crit 7: a number from 0 to 1 is expected"),
        (["--questioned", "--confidence", "nan"], "--confidence nan"),
    ],
)
def test_bounds_and_flags_that_make_no_sense_are_refused(
    questionable: Path, command: Command, flags: list[str], said: str
) -> None:
    code, _, err = command("show", str(questionable), *flags)
    assert (code, said in err) == (2, True), err


def test_the_command_says_how_many_of_which(questionable: Path, command: Command) -> None:
    code, out, _ = command("show", str(questionable), "--questioned", "--confidence", "0.94")
    assert (code, "1 of 9 cases" in " ".join(out.split())) == (0, True)
