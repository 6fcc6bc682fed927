"""The protocols' parts of a report: their charts hold the numbers of the record; a run without such events has none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pytest
from gated_cases import gate
from planted_records import InlineRun, PlantedSession

from moot.deploy.results.figures.confidence_trajectories import trajectories
from moot.deploy.results.figures.judged_reasoning import judged_reasoning
from moot.deploy.results.figures.judged_replies import extract_features, replies_of_runs, strata
from moot.deploy.results.figures.rounds import FIGURES, dynamics_of
from moot.deploy.results.figures.token_confidence import AnalysisSettings, divergence_tables, signal_pairs_table
from moot.deploy.results.protocols.ceda import ceda
from moot.deploy.results.protocols.evince import evince
from moot.deploy.results.protocols.selene import selene
from moot.deploy.results.protocols.socrasynth import socrasynth
from moot.deploy.results.record import RunRecord
from moot.deploy.results.report.blocks import Block, Chart, Note, Series, Table
from moot.deploy.results.report.html import blocks_html, report_html
from moot.protocols.socrasynth.closing_events import JudgeScoreSheet, MissingMarks, PanelJudged, SideTotals

PARTS = (selene, evince, socrasynth, judged_reasoning, ceda)


def charts(blocks: Iterable[Block]) -> dict[str, Chart]:
    """The charts by name."""
    return {block.name: block for block in blocks if isinstance(block, Chart)}


def by_name(chart: Chart) -> Mapping[str, Series]:
    """The series by name."""
    return {series.name: series for series in chart.series}


def judged(answer: str, *scores: float) -> dict[str, Any]:
    """A candidate with a mean score on each variant of the evidence."""
    return {"answer": answer, "variant_scores": list(scores), "judgments": []}


def test_no_part_has_anything_to_say_of_a_run_without_its_events(session: PlantedSession) -> None:
    session.case("a")
    session.verdict("a")
    run = RunRecord(session.plant())
    assert [list(part(run)) for part in PARTS] == [[] for _ in PARTS]


def test_the_gates_plane_has_each_case_under_what_became_of_it(session: PlantedSession) -> None:
    planted = {
        "right": (gate(0.1, 0.2), "Yes"),
        "wrong": (gate(0.2, 0.1), "No"),
        "far": (gate(0.5, 0.1, skip=False, reasons=["disagreement"]), "Yes"),
        "failed": (gate(0.6, 0.3, skip=False, reasons=["disagreement", "not_unanimous"]), None),
        "unknown": (gate(0.6, None, skip=False, reasons=["not_unanimous"]), "Yes"),
    }
    for case_id, (data, answer) in planted.items():
        session.case(case_id)
        session.event(case_id, "gate", "gate", data)
        how, failure = ("judged", "") if answer else ("failed", "quorum")
        session.verdict(case_id, answer, "skipped" if data["skip"] else how, failure=failure)
    blocks = list(selene(RunRecord(session.plant())))
    plane = charts(blocks)["gate-plane"]
    found = {name: (*series.x, *series.y, *series.cases) for name, series in by_name(plane).items()}
    assert found == {
        "skipped, right (1)": (0.1, 0.2, "right"),
        "skipped, wrong (1)": (0.2, 0.1, "wrong"),
        "debated, right (1)": (0.5, 0.1, "far"),
        "debated, not scored (1)": (0.6, 0.3, "failed"),
    }
    assert [(guide.x, guide.y) for guide in plane.guides] == [(0.35, None), (None, 0.25)]
    assert "not shown: 1 case." in plane.note
    (reasons,) = (block for block in blocks if isinstance(block, Table))
    assert [row[1] for row in reasons.rows] == ["2", "2"]
    (said,) = (block.text for block in blocks if isinstance(block, Note))
    assert "skipped 2 of 5 cases" in said
    assert "50.0 % [9.5, 90.5] (n = 2) of the skipped" in said


def test_a_run_without_a_gate_says_how_many_cases_have_a_verdict(session: PlantedSession) -> None:
    for case_id in ("a", "b"):
        session.case(case_id)
        session.event(case_id, "gate", "gate", gate(0.5, 0.1, skip=False, reasons=["always"], when="always"))
    session.verdict("a", "Yes", "unanimous")
    blocks = list(selene(RunRecord(session.plant())))
    assert isinstance(blocks[1], Note)
    assert blocks[1].text.startswith("There was no gate: all 2 cases were debated. 1 of the 2 have a verdict. Right: ")
    assert "kipped" not in f"{(plane := charts(blocks)['gate-plane']).title} {plane.note}"


@pytest.mark.parametrize(
    ("bindings", "why"),
    [
        ({"agent": [{"top_logprobs": None}], "judge": []}, "(this run requested no token probabilities)"),
        ({"agent": [{"top_logprobs": 5}]}, "(no token probabilities)"),
        ({}, "(no token probabilities)"),
    ],
)
def test_without_token_probabilities_the_plane_is_of_stated_confidence(
    session: PlantedSession, bindings: dict[str, Any], why: str
) -> None:
    session.case("a")
    session.event("a", "gate", "gate", gate(0.1, None, c=0.7))
    session.verdict("a")
    plane = charts(selene(RunRecord(session.plant(bindings=bindings))))["gate-plane"]
    assert f"M is unknown {why}" in plane.note
    assert [list(series.y) for series in plane.series] == [[0.7]]
    assert [(guide.x, guide.y) for guide in plane.guides] == [(0.35, None)]


def test_scores_by_variant_are_means_over_the_candidates_of_debates(session: PlantedSession) -> None:
    for number, right in enumerate((0.8, 0.6)):
        case_id = f"c{number}"
        session.case(case_id)
        session.event(case_id, "judging", "judge", {"candidates": [judged("Yes", right, 1.0), judged("No", 0.1, 0.3)]})
        session.event(case_id, "judging", "audit/judge", {"branch": "audit", "candidates": [judged("Yes", 0.0, 0.0)]})
        session.verdict(case_id)
    session.case("skipped")
    session.event("skipped", "judging", "judge/consensus", {"branch": "skip", "candidates": [judged("Yes", 0.0)]})
    session.verdict("skipped")
    found = by_name(charts(selene(RunRecord(session.plant())))["judge-scores"])
    assert {name: list(series.y) for name, series in found.items()} == {
        "right answers (n = 2 cases)": [0.7, 1.0],
        "wrong answers (n = 2 cases)": [0.1, 0.3],
    }


def test_a_run_that_was_made_has_its_cases_in_the_plane(inline_run: InlineRun) -> None:
    run = RunRecord(inline_run("selene"))
    plane = charts(selene(run))["gate-plane"]
    shown = [case_id for series in plane.series for case_id in series.cases]
    assert sorted(shown) == sorted(run.by_case)


def planted_rounds(session: PlantedSession, cases: int) -> RunRecord:
    """Debates whose sides state more and more alike; those with an odd number hold one round less."""
    for number in range(cases):
        case_id = f"c{number}"
        session.case(case_id)
        session.evince(
            case_id,
            [(0.9 - 0.3 * held, {"Yes": 1.0}, {"Yes": 0.4 + 0.2 * held, "No": 0.6 - 0.2 * held}) for held in range(3)][
                : 3 - number % 2
            ],
            crit=[(0.5, 0.7)] * 3,
        )
        session.verdict(case_id)
    return RunRecord(session.plant())


def test_rounds_of_many_debates_are_means_with_intervals(session: PlantedSession) -> None:
    run = planted_rounds(session, 20)
    found = charts(evince(run))
    assert list(found) == [f"rounds-{name}" for name in FIGURES if name != "changed"]
    dynamics = dynamics_of(run)
    assert dynamics is not None
    jsd = by_name(found["rounds-divergence"])["JSD"]
    assert list(jsd.y) == [each.measured["jsd"].mean for each in dynamics.rounds]
    assert list(jsd.low) == [each.measured["jsd"].low for each in dynamics.rounds]
    assert list(by_name(found["rounds-contentiousness"])["kappa"].y) == pytest.approx([0.9, 0.6, 0.3])
    assert list(by_name(found["rounds-quality"])["CRIT"].y) == pytest.approx([6.0] * 3)
    assert "(20, 20, 10)" in found["rounds-divergence"].note
    assert "Later rounds are of fewer and other cases" in found["rounds-divergence"].note


def test_a_mean_of_few_cases_is_in_no_line_and_changes_are_of_the_same_cases(session: PlantedSession) -> None:
    run = planted_rounds(session, 12)
    blocks = list(evince(run))
    kappa = by_name(charts(blocks)["rounds-contentiousness"])["kappa"]
    assert list(kappa.y) == [pytest.approx(0.9), pytest.approx(0.6), None]
    (changes,) = (block for block in blocks if isinstance(block, Table) and "same cases" in block.title)
    (row,) = (row for row in changes.rows if row[0] == "kappa")
    assert [row[i] for i in (1, 2, 3, 5)] == ["0.9", "0.45", "-0.45", "12"]


def test_rounds_of_few_debates_are_drawn_one_by_one(session: PlantedSession) -> None:
    kappa = charts(evince(planted_rounds(session, 3)))["rounds-kappa"]
    lines = by_name(kappa)
    assert {name: len(line.x) for name, line in lines.items()} == {"c0": 3, "c1": 2, "c2": 3}
    assert list(lines["c0"].y) == pytest.approx([0.9, 0.6, 0.3])
    assert set(kappa.series[1].cases) == {"c1"}


def sheet(judge: str, order: Literal[1, 2], a: float, b: float, *missing: MissingMarks) -> JudgeScoreSheet:
    """A judge's marks in one order, over one topic."""
    winner = "tie" if a == b else "A" if a > b else "B"
    totals = SideTotals(A=a, B=b)
    return JudgeScoreSheet(
        order=order, judge=judge, scores=[[a, b]], totals=totals, winner=winner, rationales=[], missing=list(missing)
    )


def test_a_panel_is_shown_in_both_orders(session: PlantedSession) -> None:
    gone = MissingMarks(topic=1, why="it failed")
    sheets = [
        *(sheet("judge/0", 1, 8.0, 5.0), sheet("judge/0", 2, 6.0, 5.0)),
        *(sheet("judge/1", 1, 8.0, 5.0), sheet("judge/1", 2, 4.0, 6.0)),
        *(sheet("judge/2", 1, 5.0, 5.0), sheet("judge/2", 2, 4.0, 6.0)),
        *(sheet("judge/3", 1, 8.0, 5.0), sheet("judge/3", 2, 4.0, 6.0, gone)),
    ]
    totals = SideTotals(A=6.0, B=5.0)
    panel = PanelJudged(
        path="panel", topics=["t"], orders=sheets, winner="A", totals=totals, position_bias={}, missing=1, models={},
        not_independent=[],
    )  # fmt: skip
    session.case("s", gold=None)
    held: dict[str, Any] = {
        "topics": ["t"],
        "crit": {},
        "gamma": None,
        "finished": [],
        "conceded": [],
        "asked": [],
        "left_out": {},
    }
    for number in (0, 1):
        data = {"round": number, "kappa": 0.9 - 0.3 * number, "failed": {}, **held}
        session.event("s", "round", f"round/{number}", data)
    session.event("s", "panel", "panel", panel.as_event().data)
    session.verdict("s", None, "plateau")
    blocks = list(socrasynth(RunRecord(session.plant())))
    found = charts(blocks)
    assert {name: (*series.x, *series.y) for name, series in by_name(found["panel-orders"]).items()} == {
        "same winner (1)": (3.0, 1.0),
        "other winner (1)": (3.0, -2.0),
        "a tie in one order (1)": (0.0, -2.0),
    }
    assert list(found["contentiousness-stages"].series[0].y) == pytest.approx([0.9, 0.6])
    assert any("without a mark in one order: 1" in block.text for block in blocks if isinstance(block, Note))


def test_debates_and_single_answers_are_shown_side_by_side(session: PlantedSession) -> None:
    held: dict[str, Any] = {"topics": ["t"], "crit": {}, "gamma": None, "asked": [], "left_out": {}}
    held |= {"finished": [], "conceded": []}
    for case_id, better, totals in (("a", "debate", {"A": 7.0, "B": 5.0}), ("b", None, None)):
        session.case(case_id, gold=None)
        session.event(case_id, "round", "round/0", {"round": 0, "kappa": 0.9, "failed": {}, **held})
        compared: dict[str, Any] = {"winner": better, "topics": ["t", "u"], "by_topic": [better, "tie"]}
        words: dict[str, Any] = {"words": {"debate": 1200, "answer": 300}} if totals else {"why": "no answer: refused"}
        session.event(case_id, "versus", "versus", compared | words | {"totals": totals})
        payload: dict[str, Any] = {"winner": None, "position_bias": {}, "joint": None}
        payload |= {"versus": better, "versus_topics": compared["by_topic"]}
        session.verdict(case_id, None, "plateau", payload=payload)
    blocks = list(socrasynth(RunRecord(session.plant())))
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert list(table.rows) == [
        ("a", "7", "5", "debate", "debate 1, answer 0, tie 1, none 0", "1,200", "300"),
        ("b", "unknown", "unknown", "unknown", "debate 0, answer 0, tie 1, none 1", "-", "-"),
    ]
    (said,) = (block.text for block in blocks if isinstance(block, Note) and "single answer" in block.text)
    assert "debate 1, answer 0, tie 0, none 1. By topic: debate 1, answer 0, tie 2, none 1." in said


def test_topics_name_their_case_which_a_page_links() -> None:
    table = Table("t", ("case", "topics"), [("a/b c", "one; two")], case_column=0)
    assert '<a href="#case=a/b%20c">a/b c</a>' in report_html("t", [table], {"cases": {}})
    assert "<a href" not in blocks_html([table])


def test_judged_replies_are_shown_as_the_analysis_counts_them(inline_run: InlineRun) -> None:
    run = RunRecord(inline_run("constructor-auditor"))
    blocks = list(judged_reasoning(run))
    found = charts(blocks)
    replies, settings = replies_of_runs([run.folder]), AnalysisSettings()
    roles = strata(replies)
    for place, each in enumerate(trajectories(replies, roles)):
        outer, inner, mean = found[f"bands-{place + 1}"].series
        assert (list(outer.low), list(inner.high)) == (each.bands.low_10.tolist(), each.bands.high_75.tolist())
        assert list(mean.y) == each.bands.mean.tolist()
    (said,) = (block.text for block in blocks if isinstance(block, Note) and "Spearman" in block.text)
    assert "reasoning: the sum of 3 scores, 3 to 9; 0 if flagged" in said
    measured = extract_features(replies)
    pairs = signal_pairs_table(measured, roles, settings).rows
    for row in (row for row in pairs if row["pair"] == "(Q, mu)"):
        ends = f"[{row['spearman_low']:+.2f}, {row['spearman_high']:+.2f}] (n = {row['n']})"
        assert f"{row['role']} {row['spearman']:+.2f} {ends}" in said
    counted, listed = divergence_tables(measured, strata(replies, "domain"), settings)
    shown = [value for place in (1, 2) for value in found[f"divergences-{place}"].series[0].y]
    assert shown == [row["prevalence"] for row in counted.rows]
    for scores, role in zip((found["scores-1"], found["scores-2"]), roles, strict=True):
        assert [series.name.partition(" (")[0].replace(" ", "_") for series in scores.series] == list(replies.scores)
        assert all(sum(y or 0.0 for y in series.y) == pytest.approx(1.0) for series in scores.series)
        assert f"(n = {len(role.rows)})" in scores.series[0].name
    signals = found["signals-1"]
    assert len({case for series in signals.series for case in series.cases}) == len(roles[0].rows)
    (cases,) = (block for block in blocks if isinstance(block, Table))
    assert [row[3] for row in cases.rows] == [row["case"] for row in listed.rows]
    assert cases.case_column == 3


def test_claims_are_shown_with_stances_by_message_and_evidence_with_its_place(session: PlantedSession) -> None:
    shown = {"debater/0": ["E1"], "debater/1": ["E1"]}
    for number, (gold, answer, stances) in enumerate(
        [
            ("supported", "supported", ("supports", "supports")),
            ("hallucinated", "supported", ("denies", "supports", "supports")),
            ("hallucinated", None, ("denies", "denies")),
        ]
        * 4
    ):
        case_id = f"{number:02}"
        session.case(case_id, gold=gold, labels=("supported", "hallucinated"))
        item = {"id": "E1", "kind": "document", "document": "cats.pdf", "chunk": 2, "page": 4, "text": "Cats.",
                "similarity": 0.5}  # fmt: skip
        session.event(case_id, "evidence", "evidence", {"items": [item], "shown_to": shown})
        for place, stance in enumerate(stances):
            data = {"turn": place + 1, "debater": f"debater/{place % 2}", "says": "AGREE", "of": "claim"}
            held = {"stance": stance, "stated": True, "implied": None, "consensus": False}
            session.event(case_id, "stance", f"turn/{place + 1}", data | held)
        session.verdict(case_id, answer, "consensus", payload={"verdict": 1, "p_judges": 0.3})
    blocks = list(ceda(RunRecord(session.plant())))
    found = charts(blocks)
    by_stance = by_name(found["stances"])
    assert {name: list(each.y) for name, each in by_stance.items()} == {
        "supports": [4.0, 8.0, 4.0],
        "denies": [8.0, 4.0, 0.0],
    }
    assert list(found["stances-right"].series[0].y) == pytest.approx([1.0, 2 / 3, 0.0])
    measured = by_name(found["claims-reliability-judges"])["measured"]
    assert [*measured.x, *measured.y] == pytest.approx([0.3, 2 / 3])
    tables = [block for block in blocks if isinstance(block, Table)]
    assert [row[1:] for row in tables[0].rows] == [("4", "0", "0"), ("4", "0", "4")]
    (places,) = (table for table in tables if table.case_column == 0)
    assert places.rows[0] == ("00", "E1", "cats.pdf, page 4, chunk 3", "0.5", "debater/0, debater/1", "Cats.")
