"""CosmosQA as it is downloaded: a short story, a question and four answers, as CSV or JSON Lines."""

from __future__ import annotations

from functools import partial

from moot.protocols.case import Case
from moot.protocols.tasks.absent_gold import is_absent
from moot.protocols.tasks.formats import csv_or_jsonl_rows
from moot.protocols.tasks.row import Row, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

LABELS = ("A", "B", "C", "D")
"""The letters of `answer0` to `answer3`."""

COLUMNS = ("id", "question", "answer0", "answer1", "answer2", "answer3")
"""What every row needs; `context` may be missing, and `label`, as in the public test set."""


def cosmosqa_task(source: Source, spec: str) -> Task:
    """A task over CosmosQA; `open_task("cosmosqa:PATH")` is the usual way to it. Raises nothing."""
    return Task(
        spec=spec,
        name="cosmosqa",
        path=source.file,
        labels=LABELS,
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
        labels=LABELS,
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
    return LABELS[int(text)]
