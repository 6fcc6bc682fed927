"""One rule for absent right answers, in every task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from task_files import jsonl, summary

from moot.protocols.tasks import Task, open_task

ABSENT = ["N/A", " n.a. ", "NA", "nan", "None", "null"]
BLANK = ["", " ", None, float("nan")]

# by task, a row with a right answer, and the field that tells it
ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "boolq": ({"question": "q", "answer": True}, "answer"),
    "claims": ({"claim": "c", "label": "supported"}, "label"),
    "cosmosqa": ({"id": "x", "question": "q", **{f"answer{n}": str(n) for n in range(4)}, "label": 1}, "label"),
    "gsm8k": ({"question": "q", "answer": "2+2\n#### 4"}, "answer"),
    "nq": ({"question": "q", "answer": ["x"]}, "answer"),
    "cases of numbers": ({"question": "q", "answer": 4}, "answer"),
    "cases of texts": ({"question": "q", "answer": "x"}, "answer"),
    "cases of yes or no": ({"question": "q", "answer": "yes"}, "answer"),
    "cases of choices": ({"question": "q", "choices": ["x", "y"], "answer": "A"}, "answer"),
    "memory": ({"question": "q", "gold": "x"}, "gold"),
    "memory of labels": ({"question": "q", "labels": ["x", "y"], "gold": "x"}, "gold"),
}


def task_of(kind: str, file: Path, rows: list[dict[str, Any]]) -> Task:
    rows = [{**row, "id": f"{place}"} for place, row in enumerate(rows)]
    if kind.startswith("memory"):
        return Task.from_cases(rows)
    file.write_text(jsonl(*rows))
    return open_task(f"{kind.split()[0]}:{file}")


@pytest.mark.parametrize("kind", ROWS)
def test_a_case_without_a_gold_answer_is_counted_and_not_scored(kind: str, tmp_path: Path) -> None:
    row, field = ROWS[kind]
    words = [] if kind.startswith("memory") else ABSENT  # a programme says None, and "None" is its answer
    absent = [{**row, field: value} for value in [*words, *BLANK]]
    task = task_of(kind, tmp_path / "f.jsonl", [row, *absent, row])
    assert [item.gold is None for item in task.cases()] == [False, *(True for _ in absent), False]
    found = summary(task)
    assert found.unlabelled == len(absent)
    assert [remark for remark in found.remarks if f"{len(absent)} of {len(absent) + 2} cases" in remark]
    everything = summary(task_of(kind, tmp_path / "g.jsonl", [row, row]))
    assert not [remark for remark in everything.remarks if "of 2 cases" in remark]


def test_the_word_is_an_answer_among_several(tmp_path: Path) -> None:
    rows = [{"question": "How many moons?", "answer": ["none", "None", "0"]}, {"question": "What?", "answer": ["x"]}]
    for kind in ("nq", "cases"):
        first, _ = task_of(kind, tmp_path / f"{kind}.jsonl", rows).cases()
        assert first.gold == "none"


@pytest.mark.parametrize("word", ["N/A", "None"])
def test_the_word_is_an_answer_where_it_is_a_label_or_the_text_of_a_choice(word: str, tmp_path: Path) -> None:
    labels = [{"text": "a", "label": word}, {"text": "b", "label": "x"}, {"text": "c", "label": ""}]
    assert [item.gold for item in task_of("labels", tmp_path / "l.jsonl", labels).cases()] == [word, "x", None]
    choices = [{"question": "q", "choices": ["x", word], "answer": gold} for gold in (word.lower(), "A", "NaN")]
    assert [item.gold for item in task_of("cases", tmp_path / "c.jsonl", choices).cases()] == ["B", "A", None]
    memory = [{"question": "q", "labels": ["x", word], "gold": word}]
    assert [item.gold for item in task_of("memory", tmp_path, memory).cases()] == [word]
