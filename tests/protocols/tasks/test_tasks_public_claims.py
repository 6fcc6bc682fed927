"""Claims out of public files: TruthfulQA, FEVER, HaluEval, QAGS and NQ, made up here and as their real slices."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from task_files import DATA, Write, article, cases, fails, summary

from moot.deploy.runs.task import as_claim_task, claim_forms
from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS, HALLUCINATED, SUPPORTED, is_claim
from moot.protocols.tasks import open_task
from moot.protocols.tasks.public_claims import source_name
from moot.protocols.tasks.registry import absolute_spec


@pytest.fixture
def table(tmp_path: Path) -> Write:
    def _table(*rows: Mapping[str, str]) -> str:
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
        path = tmp_path / "TruthfulQA.csv"
        path.write_text(out.getvalue(), "utf-8", newline="")
        return f"truthfulqa:{path}"

    return _table


def told(spec: str) -> list[tuple[str, str | None, str]]:
    """Of every case its claim, its gold label and its passage."""
    return [(item.case.question, item.gold, item.case.passage) for item in cases(spec)]


def groups(spec: str) -> list[str]:
    return [item.reference.group for item in cases(spec)]


# --- TruthfulQA

TRUTH = {
    "Type": "Adversarial",
    "Category": "Law",
    "Question": "Is it, really?",
    "Best Answer": "No",
    "Correct Answers": "No; Never",
    "Incorrect Answers": "; Yes ; Always",
}


def test_a_question_makes_two_claims_in_order(table: Write) -> None:
    spec = table(TRUTH, {**TRUTH, "Question": "And it?", "Category": ""})
    assert told(spec) == [
        ("Question: Is it, really?\nAnswer: No", SUPPORTED, ""),
        ("Question: Is it, really?\nAnswer: Yes", HALLUCINATED, ""),
        ("Question: And it?\nAnswer: No", SUPPORTED, ""),
        ("Question: And it?\nAnswer: Yes", HALLUCINATED, ""),
    ]
    items = cases(spec)
    assert [item.case.id for item in items] == [f"truthfulqa-{n}" for n in range(4)]
    assert [item.reference.group for item in items] == ["Is it, really?"] * 2 + ["And it?"] * 2
    assert [item.reference.tags for item in items] == [
        *([{"type": "Adversarial", "category": "Law"}] * 2),
        *([{"type": "Adversarial"}] * 2),
    ]
    assert all(is_claim(item.case) and item.case.aliases == CLAIM_ALIASES for item in items)


def test_the_best_incorrect_answer_is_taken_where_the_file_has_one(table: Write) -> None:
    spec = table({**TRUTH, "Best Incorrect Answer": "Always"}, {**TRUTH, "Best Incorrect Answer": " "})
    assert [claim.rpartition(" ")[2] for claim, _, _ in told(spec)] == ["No", "Always", "No", "Yes"]


@pytest.mark.parametrize("answers", ["", " ", " ; ;"])
def test_a_question_without_an_incorrect_answer_is_named(table: Write, answers: str) -> None:
    fails(table(TRUTH, {**TRUTH, "Incorrect Answers": answers}), 3, "Incorrect Answers", "at least one answer")


# --- FEVER

FEVER: dict[str, Any] = {"id": 7, "label": "SUPPORTS", "claim": "It flies.", "evidence": [[[1, 2, "The_Bird", 0]]]}


def test_what_is_not_settled_by_evidence_is_left_out(rows: Write) -> None:
    nothing = {**FEVER, "label": "NOT ENOUGH INFO", "evidence": [[[1, None, None, None]]]}
    spec = f"fever:{rows(nothing, FEVER, {**FEVER, 'label': 'REFUTES', 'evidence': []}, nothing)}"
    assert told(spec) == [("It flies.", SUPPORTED, ""), ("It flies.", HALLUCINATED, "")]
    assert groups(spec) == ["The_Bird", ""]


def test_evidence_with_text_is_the_passage(rows: Write) -> None:
    one, two = ({**FEVER, "evidence": text} for text in ("Birds fly .", "Stones do not ."))
    spec = f"fever:{rows(one, two, {**one, 'label': 'REFUTES'})}"
    assert [passage for _, _, passage in told(spec)] == ["Birds fly .", "Stones do not .", "Birds fly ."]
    first, second, third = groups(spec)
    assert first == third != second


# --- HaluEval

QA = {"knowledge": "K.", "question": "Who?", "right_answer": "Ann", "hallucinated_answer": "Bob"}
DIALOGUE = {
    "knowledge": "K.",
    "dialogue_history": "[Human]: Hello? ",
    "right_response": "Hi.",
    "hallucinated_response": "Moo.",
}
SUMMARY = {"document": "D.", "right_summary": "Short.", "hallucinated_summary": "Wrong."}
GENERAL = {"ID": "1", "user_query": "Say.", "chatgpt_response": "Said.", "hallucination": "no"}


def test_each_layout_of_halueval(rows: Write) -> None:
    spec = f"halueval:{rows(QA, DIALOGUE, SUMMARY, GENERAL, {**GENERAL, 'hallucination': 'Yes '})}"
    assert told(spec) == [
        ("Question: Who?\nAnswer: Ann", SUPPORTED, "K."),
        ("Question: Who?\nAnswer: Bob", HALLUCINATED, "K."),
        ("Dialogue: [Human]: Hello?\nReply: Hi.", SUPPORTED, "K."),
        ("Dialogue: [Human]: Hello?\nReply: Moo.", HALLUCINATED, "K."),
        ("Short.", SUPPORTED, "D."),
        ("Wrong.", HALLUCINATED, "D."),
        ("Question: Say.\nAnswer: Said.", SUPPORTED, ""),
        ("Question: Say.\nAnswer: Said.", HALLUCINATED, ""),
    ]
    assert groups(spec) == [source_name("K.")] * 4 + [source_name("D.")] * 2 + ["", ""]  # what they are drawn from


# --- QAGS


def test_most_people_decide_and_a_tie_is_not_known(rows: Write) -> None:
    known, tied = article(("yes", "no", "yes"), ("no", "no", "yes"), ("no",)), article(("yes", "no"), text="Other.")
    spec = f"qags:{rows(known, tied)}"
    assert told(spec) == [
        ("S0.", SUPPORTED, "News."),
        ("S1.", HALLUCINATED, "News."),
        ("S2.", HALLUCINATED, "News."),
        ("S0.", None, "Other."),
    ]
    assert Counter(Counter(groups(spec)).values()) == Counter([3, 1])
    assert summary(spec).unlabelled == 1


# --- NQ as claims


def test_questions_with_their_first_answer_are_supported_claims(rows: Write) -> None:
    row = {"question": "who was it", "answer": ["Ann", "Bob"]}
    file = rows(row, {"question": "why", "answer": []}, {**row, "id": 9, "passage": "P.", "title": "T"})
    spec = f"nq:{file}:as=claims"
    assert told(spec) == [
        ("Question: who was it\nAnswer: Ann", SUPPORTED, ""),
        ("Question: who was it\nAnswer: Ann", SUPPORTED, "P."),
    ]
    assert [item.case.id for item in cases(spec)] == ["nq-0", "9"]
    assert [item.case.labels for item in cases(f"nq:{file}:as=questions")] == [None] * 3
    fails(f"nq:{rows(row, {**row, 'answer': 7})}:as=claims", 2, "answer", "expected a list of texts")


def test_only_nq_is_turned_into_claims(tmp_path: Path) -> None:
    assert as_claim_task("nq:a:b.jsonl") == as_claim_task("nq:a:b.jsonl:as=questions") == "nq:a:b.jsonl:as=claims"
    assert [as_claim_task(spec) for spec in ("sample", "boolq:x", "nq", "none:x")] == [
        "sample",
        "boolq:x",
        "nq",
        "none:x",
    ]
    assert absolute_spec(f"nq:{tmp_path}/x:as=claims") == f"nq:{tmp_path}/x:as=claims"


def test_the_hint_names_how_each_task_of_claims_is_written() -> None:
    forms = claim_forms()
    assert {"claims:PATH", "nq:PATH:as=claims", "hallusionbench:DIR", "sample-claims"} <= set(forms)
    assert not any("[" in form for form in forms)
    assert "boolq:PATH" not in forms


# --- all of them


@pytest.mark.needs(*(f"data/{name}" for name in ("truthfulqa", "fever", "halueval", "qags", "nq_open")))
@pytest.mark.parametrize(
    ("spec", "gold", "grouped"),
    [
        ("truthfulqa:truthfulqa/TruthfulQA.csv", (117, 117), 117),
        ("fever:fever/paper_dev.jsonl", (77, 87), 145),
        ("fever:fever/fever_symmetric_dev.jsonl", (75, 67), 139),
        ("halueval:halueval/general_data.json", (163, 33), 1),
        ("halueval:halueval/qa_one-turn_data.json", (167, 167), 167),
        ("halueval:halueval/summarization_data.json", (1, 1), 1),
        ("qags:qags/mturk_cnndm.jsonl", (177, 61), 78),
        ("qags:qags/mturk_xsum.jsonl", (39, 41), 80),
        ("nq:nq_open/NQ-open.dev.jsonl:as=claims", (212, 0), 1),
    ],
)
def test_the_real_slices(spec: str, gold: tuple[int, int], grouped: int) -> None:
    name, _, path = spec.partition(":")
    task = open_task(f"{name}:{DATA / path}")
    found = summary(task)
    assert found.gold == dict(zip(CLAIM_LABELS, gold, strict=True))
    assert (found.count, found.unlabelled, found.pictured) == (sum(gold), 0, 0)
    items = list(task.cases())
    assert len({item.reference.group for item in items}) == grouped
    assert all(is_claim(item.case) and item.reference.part == "" for item in items)
    with_passage = name in ("qags",) or "symmetric" in path or ("halueval" in path and "general" not in path)
    assert all(bool(item.case.passage) == with_passage for item in items)
