"""Public sets of questions as they are downloaded: BoolQ, GSM8K, CosmosQA."""

from __future__ import annotations

from functools import partial

from moot.protocols.case import Case, Reference
from moot.protocols.tasks.formats import csv_or_jsonl_rows, jsonl_rows
from moot.protocols.tasks.numbers import stated_number
from moot.protocols.tasks.row import Row, is_absent, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

LETTERS = ("A", "B", "C", "D")
"""The letters of `answer0` to `answer3`."""

COLUMNS = ("id", "question", "answer0", "answer1", "answer2", "answer3")
"""What every row needs; `context` may be missing, and `label`, as in the public test set."""


def cosmosqa_task(source: Source, spec: str) -> Task:
    """A task over CosmosQA; `open_task("cosmosqa:PATH")` is the usual way to it. Raises nothing."""
    return Task(
        spec=spec,
        name="cosmosqa",
        path=source.file,
        labels=LETTERS,
        replayable=source.replayable,
        read=partial(csv_or_jsonl_rows, source, COLUMNS),
        parse=parse_cosmosqa,
    )


def parse_cosmosqa(row: Row, default_id: str) -> tuple[Case, str | None]:
    """Gives a case, its texts untouched, and the letter of its gold answer, None where there is no label.

    The id is always the file's, so `default_id` is not used.

    Raises:
        TaskFileError: a field is missing, empty or of the wrong type, or the label is not 0 to 3.
    """
    row.require(COLUMNS)
    case = Case(
        id=row.identity(),
        question=row.text("question"),
        labels=LETTERS,
        choices=tuple(row.text(f"answer{n}") for n in range(4)),
        passage=row.text("context", default=""),
    )
    return case, _gold(row)


def _gold(row: Row) -> str | None:
    label = row.values.get("label")
    if is_absent(label):
        return None
    text = str(label).strip() if isinstance(label, (int, str)) and not isinstance(label, bool) else ""
    if text not in ("0", "1", "2", "3"):
        raise row.error("label", f"expected 0, 1, 2 or 3, found {shown(label)}")
    return LETTERS[int(text)]


MARK = "####"
"""Stands before the gold number, behind the solution."""


def gsm8k_task(source: Source, spec: str, name: str = "gsm8k") -> Task:
    """A task over GSM8K; `open_task("gsm8k:PATH")` is the usual way to it. Raises nothing."""
    return Task(
        spec=spec,
        name=name,
        path=source.file,
        labels=None,
        replayable=source.replayable,
        read=partial(jsonl_rows, source),
        parse=parse_gsm8k,
        refer=lambda row: Reference(scoring="number"),
    )


def parse_gsm8k(row: Row, default_id: str) -> tuple[Case, str | None]:
    """Gives a case, its question untouched, and the gold number as the file writes it; None where there is none; see
    `is_absent`.

    Raises:
        TaskFileError: a field is missing, empty or of the wrong type, or the answer ends in no number.
    """
    row.require(("question", "answer"))
    case = Case(id=row.identity(default_id), question=row.text("question"), domain="mathematics")
    if is_absent(row.values.get("answer")):
        return case, None
    _, mark, gold = row.text("answer").rpartition(MARK)
    if not mark or stated_number(gold) is None:
        raise row.error("answer", f"expected a solution that ends in `{MARK} ` and a number, found {shown(gold[-40:])}")
    return case, gold.strip()


LABELS = ("Yes", "No")
"""The answers of a yes/no task."""


def boolq_task(source: Source, spec: str, name: str = "boolq") -> Task:
    """A task over BoolQ JSON Lines; `open_task("boolq:PATH")` is the usual way to it. Raises nothing."""
    return Task(
        spec=spec,
        name=name,
        path=source.file,
        labels=LABELS,
        replayable=source.replayable,
        read=partial(jsonl_rows, source),
        parse=parse_boolq,
    )


def parse_boolq(row: Row, default_id: str) -> tuple[Case, str | None]:
    """Gives a case, its texts untouched, and `Yes` or `No`; None where there is no answer, see `is_absent`.

    `question` and `answer` (true or false) are needed, `passage`, `title` and `id` may be missing, and other fields are
    passed over.

    Raises:
        TaskFileError: a field is missing, empty or of the wrong type.
    """
    row.require(("question", "answer"))
    answer = row.values["answer"]
    if not (isinstance(answer, bool) or is_absent(answer)):
        raise row.error("answer", f"expected true or false, found {shown(answer)}")
    case = Case(
        id=row.identity(default_id),
        question=row.text("question"),
        labels=LABELS,
        passage=row.text("passage", default=""),
        title=row.text("title", default=""),
    )
    return case, (LABELS[not answer] if isinstance(answer, bool) else None)
