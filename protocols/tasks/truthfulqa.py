"""TruthfulQA as it is downloaded (`TruthfulQA.csv`): two claims per question, its best answer and a wrong one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from moot.protocols.claims import HALLUCINATED, SUPPORTED, answered_claim
from moot.protocols.tasks.claim_rows import Claim, claims_task
from moot.protocols.tasks.formats import csv_rows
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

COLUMNS = ("Question", "Best Answer", "Incorrect Answers")
"""What the header needs; `Best Incorrect Answer`, `Type` and `Category` may be missing."""

_BEST_INCORRECT = "Best Incorrect Answer"


def truthfulqa_task(source: Source, spec: str) -> Task:
    """A task over TruthfulQA; `open_task("truthfulqa:PATH")` is the usual way to it. Raises nothing."""
    return claims_task(
        partial(csv_rows, source, COLUMNS),
        _claims,
        name="truthfulqa",
        spec=spec,
        path=source.file,
        replayable=source.replayable,
    )


def _claims(row: Row) -> Iterator[Claim]:
    question = row.text("Question")
    tags = {name.lower(): text for name in ("Type", "Category") if (text := row.text(name, default="").strip())}
    answers = ((SUPPORTED, row.text("Best Answer")), (HALLUCINATED, _incorrect(row)))
    for gold, answer in answers:
        yield Claim(text=answered_claim(question, answer), gold=gold, group=question.strip(), tags=tags)


def _incorrect(row: Row) -> str:
    """The wrong answer that the file calls the best one, else the first of the list, which `; ` separates."""
    best = row.text(_BEST_INCORRECT, default="").strip()
    answers = (answer.strip() for answer in row.text("Incorrect Answers", default="").split(";"))
    found = best or next(filter(None, answers), "")
    if not found:
        raise row.error("Incorrect Answers", "expected at least one answer, found none")
    return found
