"""Runs over claims: what summary, comparison and grid say of them in each form, from the record alone."""

from __future__ import annotations

from typing import Any

import pytest
from not_none import not_none
from planted_records import GridOf, PlantedSession, Printed

from moot.deploy.results.figures.comparison import compare, comparison_blocks
from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.report.render import report_markdown, show_report
from moot.deploy.results.show import show
from moot.deploy.studies.ablation.report import show_ablation
from moot.protocols.case import Reference
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED

OTHER = {SUPPORTED: HALLUCINATED, HALLUCINATED: SUPPORTED}


def planted_claim(session: PlantedSession, case_id: str, gold: str | None, answer: str | None, **verdict: Any) -> None:
    session.case(case_id, gold, labels=CLAIM_LABELS, reference=Reference(group=case_id[:2]))
    session.verdict(case_id, answer, **verdict)


def test_verdicts_that_say_nothing_more_or_something_else_are_read(session: PlantedSession, printed: Printed) -> None:
    odd: list[dict[str, Any]] = [
        {},
        {"verdict": "guilty", "p_judges": 0.4},
        {"p_judges": 7.0},
        {"classifier": "none", "first_stances": ["supports"]},
        {"value": [1, 2]},
        {"first_stances": {"debater/0": "maybe", "debater/1": "supports"}},
    ]
    for number, payload in enumerate(odd):
        gold = CLAIM_LABELS[number % 2]
        planted_claim(session, f"c{number}", gold, gold, payload=payload)
    planted_claim(session, "x1", SUPPORTED, "certainly")
    planted_claim(session, "x2", None, SUPPORTED)
    planted_claim(session, "x3", SUPPORTED, None, failure="quorum")
    session.case("x4", SUPPORTED, labels=CLAIM_LABELS)
    found = not_none(summarise(session.plant()).detection)
    assert (found.claims, found.failed, found.open, found.unlabelled) == (10, 1, 1, 1)
    assert found.whole is not None
    assert (found.whole.n, found.whole.detectors[0].abstained) == (7, 1)
    assert [each.by for each in found.whole.detectors] == ["verdict", "always supported", "always hallucinated"]
    assert (found.calibration, found.debaters) == ([], None)
    assert "1 failed, 1 without verdict, 1 without a label" in " ".join(printed(show, session.plant()).split())


def test_runs_over_claims_are_compared_by_f1(session: PlantedSession, printed: Printed) -> None:
    worse = session.new()
    for pair in range(30):
        for gold in CLAIM_LABELS:
            name = f"{pair:02d}-{gold}"
            planted_claim(session, name, gold, gold if pair % 6 else None)
            planted_claim(worse, name, gold, OTHER[gold] if pair % 3 == 0 else gold)
    found = compare([session.plant(), worse.plant()])
    first, second = found.rows
    assert first.macro_f1_vs_first is None
    one, other = (row.detectors[0].macro_f1.value or 0.0 for row in (not_none(first.claims), not_none(second.claims)))
    assert one == pytest.approx(2 * 25 / (2 * 25 + 5))
    assert other == pytest.approx(2 / 3)
    assert not_none(second.macro_f1_vs_first).value == pytest.approx(other - one)
    assert (first.accuracy, first.accuracy_answered, first.answered, first.scored) == (5 / 6, 1.0, 50, 60)
    text = printed(show_report, found, lambda: comparison_blocks(found))
    assert "always hallucinated" in text
    assert "always hallucinated" in report_markdown(comparison_blocks(found))


def claims_of(session: PlantedSession, wrong: set[str], trained_on: set[str]) -> PlantedSession:
    """Eight claims in four groups of two, all but the `wrong` ones right; some are known to the classifier."""
    for group in range(4):
        for gold in CLAIM_LABELS:
            name = f"{group:02d}-{gold}"
            said = {"p_hallucinated": 0.5, "trained_on": name in trained_on}
            shares = {gold: 0.25, OTHER[gold]: 0.75} if name in wrong else {gold: 1.0}
            answer = OTHER[gold] if name in wrong else gold
            planted_claim(session, name, gold, answer, payload={"classifier": said}, distribution=shares)
    return session


WRONG, KNOWN = {"00-supported", "01-supported", "02-hallucinated"}, {"00-supported", "01-supported", "03-supported"}


def test_claims_that_the_classifier_knows_are_in_no_accuracy_and_no_pair(
    session: PlantedSession, printed: Printed
) -> None:
    every = {f"{group:02d}-{gold}" for group in range(4) for gold in CLAIM_LABELS}
    runs: list[tuple[set[str], set[str]]] = [(WRONG, set()), (set(), KNOWN), (set(), every)]
    bare, run, whole = (claims_of(session.new(), wrong, trained_on).plant() for wrong, trained_on in runs)
    assert (summarise(bare).accuracy, summarise(bare).scored) == (5 / 8, 8)
    assert (summarise(run).accuracy, summarise(run).scored) == (1.0, 5)
    found = compare([bare, run, whole])
    pairs = [row.vs_first for row in found.rows[1:] if row.vs_first]
    assert [(each.n, each.only_first, each.difference) for each in pairs] == [(5, 1, 1 / 5), (0, 0, None)]
    assert [row.accuracy for row in found.rows] == [5 / 8, 1.0, None]
    [differing] = compare(bare, run, cases=True).cases or []
    assert differing.case_id == "02-hallucinated"
    assert "accuracy unknown" in " ".join(printed(show, whole).split())


def test_a_grid_says_which_claims_are_left_out_and_that_cases_are_in_groups(grid_of: GridOf, printed: Printed) -> None:
    grid = grid_of("k=x,y")
    for number, wrong in enumerate((WRONG, set[str]())):
        grid.plant(number, claims_of(grid.session.new(), wrong, KNOWN))
    found = grid.measured()
    base, other = found.cells
    assert (base.accuracy, base.scored, other.accuracy, base.trained_on) == (4 / 5, 5, 1.0, 3)
    against = not_none(other.vs_baseline)
    assert (against.accuracy.n, against.accuracy.only_first, against.left_out) == (5, 1, {"trained on": 3})
    brier = not_none(base.brier)
    assert brier.mean == pytest.approx(1.125 / 5)
    assert (brier.n, base.brier_left_out) == (5, {"trained on": 3})
    for form in ("text", "md"):
        flat = " ".join(printed(show_ablation, found, form).split())
        assert flat.count("every cell: 3 claims left out: its classifier was trained on 3 of them") == 1
        assert flat.count("5 in 4 groups") == 2, "accuracy and Brier score"
