"""The table of cases in a report: it says what the record says, and what models and files wrote stays data."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
from planted_records import EVIL, InlineRun, PlantedSession

from moot.actors.record.tables import read_table
from moot.deploy.results.case_table import case_columns, cases_data
from moot.deploy.results.glossary import ending_words
from moot.deploy.results.record import RunRecord
from moot.deploy.results.run_report.debates import sample_order, transcripts_data
from moot.deploy.results.run_report.report import build_report


def rows_of(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows of the table by case, as a page's script reads them."""
    columns = {
        column["name"]: [
            value if "words" not in column or value is None else column["words"][value] for value in column["values"]
        ]
        for column in data["columns"]
    }
    return {case: {name: values[i] for name, values in columns.items()} for i, case in enumerate(columns["case"])}


def test_every_row_is_that_of_the_record(inline_run: InlineRun) -> None:
    run = inline_run("selene")
    rows = rows_of(cases_data(case_columns(RunRecord(run))))
    verdicts = {row["case_id"]: row for row in read_table(run, "verdicts").to_pylist()}
    cases = read_table(run, "cases").sort_by("index").to_pylist()
    assert list(rows) == [case["case_id"] for case in cases]
    for case in cases:
        row, verdict = rows[case["case_id"]], verdicts[case["case_id"]]
        assert (row["answer"], row["gold"], row["rounds"]) == (verdict["answer"], case["gold"], verdict["rounds"])
        assert row["outcome"] == ("right" if verdict["correct"] else "wrong")
        assert row["how"] == ending_words(verdict["how"])
        assert row["tokens"] == verdict["prompt_tokens"] + verdict["completion_tokens"]
        assert row["disagreement"] == round(json.loads(verdict["payload"])["d"], 4)
        assert row["question"] == case["question"]


def test_open_failed_and_unknown_cases_are_labelled(session: PlantedSession) -> None:
    for case in ("open", "noted", "later", "failed", "no gold", "silent", "again"):
        session.case(case, gold=None if case == "no gold" else "Yes")
    session.reply("open", "opening/agent/0", 10)
    session.event("noted", "asked", "opening/agent/0")
    session.verdict("failed", None, "failed", failure="timeout")
    session.verdict("no gold", confidence=None)
    session.verdict("silent", None)
    session.verdict("again", None, "failed", failure="timeout")
    retried = session.new()
    retried.case("again")
    retried.verdict("again", "No", attempt=1, confidence=0.25)
    rows = rows_of(cases_data(case_columns(RunRecord(session.plant(retried)))))
    outcomes = {case: row["outcome"] for case, row in rows.items()}
    assert outcomes == {
        "open": "open", "noted": "open", "later": "not begun",
        "failed": "failed", "no gold": "unscored", "silent": "wrong", "again": "wrong",
    }  # fmt: skip
    assert rows["failed"]["failure"] == "timeout"
    assert rows["again"]["failure"] is None
    assert (rows["open"]["confidence"], rows["open"]["rounds"], rows["again"]["confidence"]) == (None, None, 0.25)
    assert (rows["open"]["tokens"], rows["failed"]["tokens"]) == (None, 0)
    assert "disagreement" not in rows["open"], "a column that has nothing for any case is left out"


def test_disagreement_of_answers_without_a_gate_is_their_share_off_the_majority(session: PlantedSession) -> None:
    for case, answers in (("split", ("Yes", "Yes", "No", "No")), ("one", ("Yes",)), ("equal", ("No", "No"))):
        session.case(case)
        for i, answer in enumerate(answers):
            session.said(case, f"opening/agent/{i}", answer, 0.5, "so")
        session.said(case, "round/1/agent/0", "Maybe", 0.5, "so")
        session.verdict(case)
    rows = rows_of(cases_data(case_columns(RunRecord(session.plant()))))
    assert {case: row["disagreement"] for case, row in rows.items()} == {"split": 0.5, "one": None, "equal": 0.0}


def test_lines_that_all_questions_share_are_left_out_of_the_table(session: PlantedSession) -> None:
    session.case("a", question="Which fits best?\n\nA cough" + " and so on" * 40)
    session.case("b", question="Which fits best?\n\nA rash")
    rows = rows_of(cases_data(case_columns(RunRecord(session.plant()))))
    assert rows["b"]["question"] == "A rash"
    assert rows["a"]["question"].startswith("A cough and so on")
    assert rows["a"]["question"].endswith("…")


def test_a_long_answer_is_clipped_in_the_table(session: PlantedSession) -> None:
    session.case("a", gold="so " * 200, labels=None)
    session.verdict("a", "or " * 200)
    row = rows_of(cases_data(case_columns(RunRecord(session.plant()))))["a"]
    assert {len(row["gold"]), len(row["answer"])} == {120}
    assert row["answer"].endswith("…")


def test_hostile_texts_stay_data(session: PlantedSession) -> None:
    session.case(EVIL, gold=EVIL, question=EVIL, labels=(EVIL, "No"))
    session.said(EVIL, "opening/agent/0", EVIL, 0.5, EVIL)
    session.verdict(EVIL, EVIL)
    page = build_report(session.plant()).html()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert "<" not in found[1]
    data = json.loads(found[1])
    assert rows_of(data["cases"])[EVIL]["answer"] == EVIL
    assert list(data["transcripts"]["packed"]) == [EVIL]
    assert "<script>$x" not in page


def test_a_sample_has_failed_and_wrong_cases_ahead_and_is_the_same_again() -> None:
    ids = [f"case-{i}" for i in range(20_000)]
    kinds = {0: "failed", 1: "wrong", 2: "wrong"}
    outcomes = [kinds.get(i % 50, "right") for i in range(20_000)]
    sample = sample_order(ids, outcomes)
    first = [outcomes[int(case.removeprefix("case-"))] for case in sample[:100]]
    assert (first.count("failed"), first.count("wrong")) == (25, 50)
    assert sample == sample_order(ids, outcomes)
    assert len(set(sample)) == len(sample)
    rare = ["failed" if i == 1_999 else "right" for i in range(20_000)]
    assert sample_order(ids, rare)[0] == "case-1999"
    few = sample_order(ids[:100], outcomes[:100])
    assert sorted(few) == sorted(ids[:100])


def test_transcripts_end_where_the_room_does(inline_run: InlineRun) -> None:
    run = RunRecord(inline_run("selene"))
    columns = case_columns(run)
    everything = transcripts_data(run, columns)["packed"]
    assert len(everything) == len(columns[0].values)
    some = transcripts_data(run, columns, 20_000)["packed"]
    assert 0 < len(some) < len(everything)
    assert len(msgspec.json.encode(some)) < 21_000
    assert all(everything[case] == text for case, text in some.items())


def test_runs_are_shown_side_by_side(session: PlantedSession) -> None:
    other = session.new()
    for each, answers in ((session, ("Yes", "Yes", None)), (other, ("Yes", "No", "Yes"))):
        for case, answer in zip(("same", "changed", "only one"), answers, strict=True):
            each.case(case)
            if answer is not None:
                each.verdict(case, answer)
    data = build_report(session.plant(), other.plant()).data()
    rows = rows_of(data["cases"])
    assert {case: row["differ"] for case, row in rows.items()} == {
        "same": "same", "changed": "differ", "only one": "differ",
    }  # fmt: skip
    assert (rows["changed"]["outcome"], rows["changed"]["outcome_1"], rows["changed"]["answer_1"]) == (
        "right", "wrong", "No",
    )  # fmt: skip
    assert rows["only one"]["outcome"] == "not begun"
    shown = {each["title"] for each in data["cases"]["columns"] if not each.get("hidden")}
    names = data["cases"]["runs"]
    assert len(set(names)) == 2
    of_runs = {f"{kind}: {name}" for kind in ("Outcome", "Answer") for name in names}
    assert shown - of_runs <= {"Case", "Runs", "Question", "Gold"}, "a column that only one run has names it"
    assert of_runs <= shown
    [others] = data["transcripts"]["others"]
    assert list(others["packed"]) == list(data["transcripts"]["packed"])
