"""Claims as cases, and users' fields of claims: the label in any spelling, and claims in memory."""

from __future__ import annotations

from collections.abc import Mapping

from moot.protocols.case import Case, Reference
from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS
from moot.protocols.errors import TaskFileError
from moot.protocols.replies import json_text
from moot.protocols.tasks.row import ParsedCase, Row, is_absent, shown
from moot.protocols.text.labels import read_label

SHORTHAND = ("claim", "label", "category")
"""Fields of a claim in memory that replace `SPELLED_OUT`."""

SPELLED_OUT = ("question", "labels", "aliases", "choices", "gold", "tags")
"""Fields derived from those of `SHORTHAND`."""


def claim_case(
    text: str,
    gold: str | None,
    *,
    id: str = "",
    passage: str = "",
    title: str = "",
    documents: tuple[str, ...] = (),
    group: str = "",
    part: str = "",
    tags: Mapping[str, str] | None = None,
) -> ParsedCase:
    """Case of a claim. Raises nothing.

    Args:
        text: the claim.
        gold: one of `CLAIM_LABELS`; None when unknown.
        id: the case's id; empty for a generated one.
        passage: its evidence; may be empty.
        title: a heading for the passage; may be empty.
        documents: texts to retrieve evidence from.
        group, part, tags: see `Reference`.
    """
    case = Case(
        id=id,
        question=text,
        labels=CLAIM_LABELS,
        aliases=CLAIM_ALIASES,
        passage=passage,
        title=title,
        documents=documents,
    )
    return ParsedCase(case, gold, Reference(group=group, part=part, tags=dict(tags or {})))


def claim_label(row: Row) -> str | None:
    """Label of the row, in any spelling; None for an absent one, see `is_absent`.

    Raises:
        TaskFileError: it is not a label.
    """
    value = row.values.get("label")
    if is_absent(value):
        return None
    found = read_label(row.checked("label", json_text(value)), CLAIM_LABELS, aliases=CLAIM_ALIASES)
    if found is None:
        expected = f"expected {' or '.join(CLAIM_LABELS)} (also true or false, 1 or 0) or nothing"
        raise row.error("label", f"{expected}, found {shown(value)}")
    return found.label


def claim_tags(row: Row) -> dict[str, str]:
    """Tags of the row: its category, if any.

    Raises:
        TaskFileError: the category is no text.
    """
    category = row.text("category", default="").strip()
    return {"category": category} if category else {}


def spelled_out(row: Row) -> Row:
    """Converts a claim in memory to question, labels and gold label; any other row is unchanged.

    Raises nothing: an error of the claim becomes the row's `problem`.
    """
    if row.problem is not None or "claim" not in row.values:
        return row
    try:
        for field in SPELLED_OUT:
            if field in row.values:
                raise row.error(field, "follows from the claim, its label and category: leave it out")
        case = {
            **{name: value for name, value in row.values.items() if name not in SHORTHAND},
            "question": row.text("claim"),
            "labels": CLAIM_LABELS,
            "aliases": CLAIM_ALIASES,
            "gold": claim_label(row),
            "tags": claim_tags(row),
        }
    except TaskFileError as problem:
        return Row(row.file, row.line, {}, problem)
    return Row(row.file, row.line, case)
