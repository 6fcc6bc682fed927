"""GSM8K as it is downloaded: word problems with worked solutions, one JSON object per line."""

from __future__ import annotations

from functools import partial

from moot.protocols.case import Case, Reference
from moot.protocols.tasks.absent_gold import is_absent
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.numbers import stated_number
from moot.protocols.tasks.row import Row, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

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
