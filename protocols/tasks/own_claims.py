"""Claims of one's own: CSV or JSON Lines, with what is to be checked, and the evidence, where there is some."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from moot.protocols.tasks.claim_fields import claim_label, claim_tags
from moot.protocols.tasks.claim_rows import Claim, claims_task
from moot.protocols.tasks.formats import csv_or_jsonl_rows
from moot.protocols.tasks.picture_files import pictures_beside
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

COLUMNS = ("claim",)
"""What every row needs; label, id, passage, documents, images, group, part and category may be missing."""


def own_claims_task(source: Source, spec: str, name: str = "claims") -> Task:
    """A task over claims; `open_task("claims:PATH")` is the usual way to it. Raises nothing."""
    return claims_task(
        partial(csv_or_jsonl_rows, source, COLUMNS),
        _claims,
        name=name,
        spec=spec,
        path=source.file,
        replayable=source.replayable,
        pictures=_pictures,
    )


def _claims(row: Row) -> Iterator[Claim]:
    row.require(COLUMNS)
    _images(row)
    yield Claim(
        text=row.text("claim"),
        gold=claim_label(row),
        id=row.identity() if "id" in row.values else "",
        passage=row.text("passage", default=""),
        documents=row.texts("documents") if row.values.get("documents") != "" else (),
        group=row.text("group", default="").strip(),
        part=row.text("part", default="").strip(),
        tags=claim_tags(row),
    )


def _images(row: Row) -> tuple[str, ...]:
    """The names of the row's pictures: a list, or one text that semicolons separate."""
    if isinstance(row.values.get("images"), str):
        pieces = (piece.strip() for piece in row.text("images", default="").split(";"))
        return tuple(piece for piece in pieces if piece)
    return row.texts("images")


def _pictures(row: Row) -> tuple[Path, ...]:
    return pictures_beside(row, "images", _images(row))
