"""Word problems and open questions from files: gold numbers, several right answers, and each bad row named."""

from __future__ import annotations

import json

import pytest
from task_files import DATA, Write, cases, summary

from moot.protocols.case import Reference
from moot.protocols.tasks import is_correct, open_task

GSM8K = DATA / "gsm8k" / "test.jsonl"


def test_a_word_problem(rows: Write) -> None:
    row = {"question": "How  many?", "answer": "3*400=<<3*400=1200>>1200\n#### 1,200"}
    (found,) = cases(f"gsm8k:{rows(row)}")
    assert (found.case.id, found.case.question, found.gold) == ("gsm8k-0", "How  many?", "1,200")
    assert (found.case.labels, found.case.domain, found.reference) == (None, "mathematics", Reference(scoring="number"))
    answers = ("1200", "$1,200.00 a day", "1200 apples", "-1200", "1,2", "")
    assert [is_correct(answer, found.gold, found.reference) for answer in answers] == [True] * 3 + [False] * 3


@pytest.mark.parametrize("gold", ["-7", "13.50", "$45", "5/2"])
def test_gold_numbers(rows: Write, gold: str) -> None:
    row = {"question": "q", "answer": f"So.\n#### {gold} "}
    (found,) = cases(f"gsm8k:{rows(row)}")
    assert found.gold == gold
    assert is_correct(f"It is {gold}.", found.gold, found.reference)


def test_an_open_question(rows: Write) -> None:
    row = {"question": "who was it", "answer": ["Sir Edmund Barton", "1901"], "passage": " Text. ", "title": "T"}
    first, second = cases(f"nq:{rows(row, {'question': 'why', 'answer': []})}")
    assert (first.case.question, first.case.passage, first.case.title) == ("who was it", " Text. ", "T")
    assert (first.case.labels, first.case.domain, first.gold) == (None, "factual QA", "Sir Edmund Barton")
    assert first.reference == Reference(scoring="short answer", accepted=("Sir Edmund Barton", "1901"))
    assert is_correct("sir edmund barton", first.gold, first.reference)
    assert not is_correct("edmund", first.gold, first.reference)
    assert (second.gold, second.reference.accepted) == (None, ())


@pytest.mark.needs("data/gsm8k")
def test_real_solutions_are_scored_as_their_authors_scored_them() -> None:
    """The last lines that four solvers wrote, and whether OpenAI's own script called it right."""
    lines = (GSM8K.parent / "example_model_solutions.jsonl").read_text(encoding="utf-8").splitlines()
    reference, found = Reference(scoring="number"), []
    for row in map(json.loads, lines):
        gold = row["ground_truth"].rpartition("A:")[2].strip()
        for name in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            last = row[name]["solution"].strip().rpartition("\n")[2]
            found.append((is_correct(last, gold, reference), row[name]["is_correct"]))
    assert len(found) == 188 * 4
    assert 200 < sum(right for _, right in found) < 300
    assert [ours for ours, _ in found] == [theirs for _, theirs in found]


@pytest.mark.needs("data/boolq", "data/cosmosqa", "data/gsm8k", "data/nq_open")
@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ("boolq:boolq/dev.jsonl", 192),
        ("cosmosqa:cosmosqa/valid.csv", 176),
        ("gsm8k:gsm8k/test.jsonl", 188),
        ("nq:nq_open/NQ-open.dev.jsonl", 212),
        ("nq:nq_open/NQ-open.efficientqa.test.1.1.jsonl", 253),
    ],
)
def test_the_public_questions(spec: str, count: int) -> None:
    name, _, path = spec.partition(":")
    task = open_task(f"{name}:{DATA / path}")
    found = summary(task)
    assert (found.count, found.unlabelled) == (count, 0)
    if name in ("boolq", "cosmosqa"):
        assert (sum(found.gold.values()), min(found.gold.values()) > 20) == (count, True)
    for item in task.cases():
        accepted = item.reference.accepted or (item.gold,)
        assert all(is_correct(answer, item.gold, item.reference) for answer in accepted)
