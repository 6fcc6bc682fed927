"""Claims and subjects of one's own, in CSV or JSON Lines; subjects also one per line of plain text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePath

from moot.protocols.case import Case
from moot.protocols.claims import CLAIM_LABELS
from moot.protocols.tasks.claim_fields import claim_case, claim_label, claim_tags
from moot.protocols.tasks.formats import csv_or_jsonl_rows, text_rows
from moot.protocols.tasks.picture_files import pictures_beside
from moot.protocols.tasks.row import ParsedCase, Row
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import FileLayout

_CLAIM, _SUBJECT = ("claim",), ("subject",)
_CLAIM_FIELDS = ("claim", "label", "id", "passage", "documents", "images", "group", "part", "category")


def _claim(row: Row) -> Iterator[ParsedCase]:
    row.require(_CLAIM)
    row.listed("images")  # a wrong form is reported whether or not pictures are read
    yield claim_case(
        row.text("claim"),
        claim_label(row),
        id=row.identity(),
        passage=row.text("passage", default=""),
        documents=row.texts("documents") if row.values.get("documents") != "" else (),
        group=row.text("group", default="").strip(),
        part=row.text("part", default="").strip(),
        tags=claim_tags(row),
    )


def _pictures(row: Row) -> tuple[Path, ...]:
    return pictures_beside(row, "images", row.listed("images"))


OWN_CLAIMS = FileLayout(partial(csv_or_jsonl_rows, columns=_CLAIM), _claim, CLAIM_LABELS, _pictures, _CLAIM_FIELDS)
"""Claim to check, with optional evidence: only `claim` is required; label, id, passage, documents,
images, group, part and category may be missing."""


def _subject_rows(source: Source) -> Iterator[Row]:
    if PurePath(source.file).suffix.lower() == ".txt":
        return text_rows(source, "subject")
    return csv_or_jsonl_rows(source, _SUBJECT)


def _subject(row: Row) -> Iterator[ParsedCase]:
    row.require(_SUBJECT)
    question, facts = row.text("subject").strip(), row.text("facts", default="").strip()
    yield ParsedCase(Case(id=row.identity(), question=question, passage=facts))


SUBJECTS = FileLayout(_subject_rows, _subject, fields=("subject", "id", "facts"))
"""Subjects to debate, with neither labels nor a right answer; `id` and `facts`, which become the passage, may be
missing."""
