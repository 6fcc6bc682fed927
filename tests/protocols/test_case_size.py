"""How long the texts of one case may be together, whichever way it comes in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.protocols.case import Case, Criterion, JudgedReply, LabelledCase
from moot.protocols.errors import TaskFileError
from moot.protocols.long_texts import MOST_CHARACTERS
from moot.protocols.tasks import Task, open_task
from moot.protocols.tasks.replies import replies_in_memory

MOST = "x" * MOST_CHARACTERS
HALF = "y" * (MOST_CHARACTERS // 2)


def test_all_texts_of_a_case_count() -> None:
    case = Case(
        id="1", question="22", labels=("333", "4444"), choices=("5", "5"), passage="66", title="7",
        aliases=(("8",), ()),
        documents=("999", ""), criterion=Criterion(trait="aa", lowest=0, highest=1, guide="b", assignment="c"),
        judged=JudgedReply(reply="dddd", sent=(("user", "e"),), role="f", domain=""),
    )  # fmt: skip
    assert case.characters() == 1 + 2 + 7 + 2 + 2 + 1 + 1 + 3 + 4 + 4 + 5 + 1


@pytest.mark.parametrize(
    ("spec", "row", "field"),
    [
        ("boolq", {"question": "?", "passage": MOST, "answer": True}, "passage"),
        ("subjects", {"subject": MOST + "?"}, "subject"),
        ("replies", {"reply": HALF, "prompt": HALF + "?"}, "prompt"),
        ("claims", {"claim": "it is", "documents": [HALF, HALF, HALF]}, "documents"),
        ("labels", {"text": MOST, "label": "a"}, "text"),
    ],
)
def test_a_file_is_refused_by_line_field_size_and_limit(
    tmp_path: Path, spec: str, row: dict[str, Any], field: str
) -> None:
    file = tmp_path / "rows.jsonl"
    short = {key: value[:1] if isinstance(value, str | list) else value for key, value in row.items()}
    other = {**short, "label": "b"} if spec == "labels" else short
    file.write_text(f"{json.dumps(other)}\n{json.dumps(row)}\n")
    with pytest.raises(TaskFileError) as refused:
        open_task(f"{spec}:{file}").validate()
    assert (refused.value.line, refused.value.field) == (2, field)
    assert f"{MOST_CHARACTERS:,}" in refused.value.expected
    size = int(refused.value.expected.rpartition(" ")[2].replace(",", ""))
    assert MOST_CHARACTERS < size < 2 * MOST_CHARACTERS


@pytest.mark.parametrize(
    "make",
    [
        lambda text: Task.from_cases([{"id": "a", "question": text}]),
        lambda text: Task.from_cases([LabelledCase(Case(id="a", question="", judged=JudgedReply(reply=text)), 0)]),
        lambda text: replies_in_memory([{"id": "a", "reply": text}]),
    ],
    ids=["mapping", "case", "reply"],
)
def test_a_case_in_memory_may_be_as_long_as_the_limit_and_no_longer(make: Callable[[str], Task]) -> None:
    assert len(list(make(MOST[:-1]).cases())) == 1
    with pytest.raises(TaskFileError):
        make(MOST).validate()
