"""BoolQ as it is downloaded: a yes/no question and the passage that settles it, one JSON object per line."""

from __future__ import annotations

from functools import partial

from moot.protocols.case import Case
from moot.protocols.tasks.absent_gold import is_absent
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.row import Row, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

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
