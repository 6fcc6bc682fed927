"""`subjects:FILE`: what is debated without labels and without a right answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moot.protocols.case import Case, LabelledCase
from moot.protocols.errors import TaskFileError
from moot.protocols.tasks import open_task

SUBJECT = "Should we regulate the use of LLMs in academic research?"


def _spec(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return f"subjects:{path}"


def _jsonl(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_three_layouts_one_content(tmp_path: Path) -> None:
    lines = _spec(tmp_path / "s.txt", f"\ufeff{SUBJECT}\r\n\r\n   \n  Is it {{fair}}, or not?  \n")
    rows = _spec(tmp_path / "s.jsonl", _jsonl({"subject": SUBJECT}, {"subject": "Is it {fair}, or not?"}))
    table = _spec(tmp_path / "s.csv", f'\ufeffsubject,facts\r\n{SUBJECT},\r\n"Is it {{fair}}, or not?",\r\n')
    wanted = [
        LabelledCase(Case(id="subjects-0", question=SUBJECT), 0),
        LabelledCase(Case(id="subjects-1", question="Is it {fair}, or not?"), 1),
    ]
    for spec in (lines, rows, table):
        assert list(open_task(spec).cases()) == wanted
    assert len({found.digest for spec in (lines, rows, table) if (found := open_task(spec).validate())}) == 1


def test_facts_become_the_passage_and_there_is_no_gold(tmp_path: Path) -> None:
    row = {"id": "llm", "subject": SUBJECT, "facts": "Two journals forbid it.", "gold": "For", "label": "For"}
    task = open_task(_spec(tmp_path / "s.jsonl", _jsonl(row)))
    (found,) = task.cases()
    assert found == LabelledCase(Case(id="llm", question=SUBJECT, passage="Two journals forbid it."), 0, None)
    summary = task.validate()
    assert summary is not None
    assert (summary.name, summary.count, summary.gold, summary.unlabelled) == ("subjects", 1, {}, 1)


@pytest.mark.parametrize(
    ("row", "field", "expected"),
    [
        ({"facts": "f"}, "subject", "is missing; expected the fields subject"),
        ({"subject": 3}, "subject", "expected text, found 3"),
        ({"subject": "s", "facts": ["f"]}, "facts", "expected text, found a list"),
        ({"subject": "s", "id": "subjects-0"}, "id", "occurs earlier"),
        ("a line", "", "expected one JSON object per line"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: Any, field: str, expected: str) -> None:
    spec = _spec(tmp_path / "s.jsonl", _jsonl({"subject": SUBJECT}) + "\n" + _jsonl(row))
    with pytest.raises(TaskFileError) as caught:
        open_task(spec).validate()
    assert (caught.value.line, caught.value.field) == (3, field)
    assert expected in caught.value.expected
