"""NQ-open as it is downloaded: questions with short answers, of which several may be right, as JSON Lines."""

from __future__ import annotations

from functools import partial

from moot.protocols.case import Case, Reference
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task


def nq_task(source: Source, spec: str) -> Task:
    """A task over NQ-open; `open_task("nq:PATH")` is the usual way to it. Raises nothing."""
    return Task(
        spec=spec,
        name="nq",
        path=source.file,
        labels=None,
        replayable=source.replayable,
        read=partial(jsonl_rows, source),
        parse=parse_nq,
        refer=refer_nq,
    )


def parse_nq(row: Row, default_id: str) -> tuple[Case, str | None]:
    """Gives a case, its texts untouched, and the first accepted answer; None where the list is empty or null.

    `passage`, `title` and `id` may be missing, as they are in the public files.

    Raises:
        TaskFileError: a field is missing, empty or of the wrong type.
    """
    row.require(("question", "answer"))
    case = Case(
        id=row.identity(default_id),
        question=row.text("question"),
        passage=row.text("passage", default=""),
        title=row.text("title", default=""),
        domain="factual QA",
    )
    return case, next(iter(row.texts("answer")), None)


def refer_nq(row: Row) -> Reference:
    """All accepted answers of a row.

    Raises:
        TaskFileError: `answer` is no list of texts.
    """
    return Reference(scoring="short answer", accepted=row.texts("answer"))
