"""Subjects to debate, with neither labels nor a right answer: CSV, JSON Lines, or one per line of plain text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import PurePath

from moot.protocols.case import Case
from moot.protocols.tasks.formats import csv_or_jsonl_rows, text_rows
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

COLUMNS = ("subject",)
"""What every row needs; `id` and `facts` may be missing."""


def subjects_task(source: Source, spec: str, name: str = "subjects") -> Task:
    """A task over subjects; `open_task("subjects:PATH")` is the usual way to it. Raises nothing."""
    return Task(
        spec=spec,
        name=name,
        path=source.file,
        labels=None,
        replayable=source.replayable,
        read=partial(_rows, source),
        parse=parse_subject,
    )


def _rows(source: Source) -> Iterator[Row]:
    if PurePath(source.file).suffix.lower() == ".txt":
        return text_rows(source, "subject")
    return csv_or_jsonl_rows(source, COLUMNS)


def parse_subject(row: Row, default_id: str) -> tuple[Case, None]:
    """Gives a case whose passage is the given facts, and no gold label.

    Raises:
        TaskFileError: a field is missing, empty or of the wrong type.
    """
    row.require(COLUMNS)
    case = Case(
        id=row.identity(default_id),
        question=row.text("subject").strip(),
        passage=row.text("facts", default="").strip(),
    )
    return case, None
