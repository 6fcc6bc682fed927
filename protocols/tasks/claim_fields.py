"""A claim as a case, and its fields as users write them: its label in any spelling, and a claim in memory."""

from __future__ import annotations

from collections.abc import Mapping

from moot.protocols.case import Case, Reference
from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS
from moot.protocols.errors import TaskFileError
from moot.protocols.tasks.row import ParsedCase, Row, is_absent, shown
from moot.protocols.text.labels import canonical_label

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
    """The case of a claim. Raises nothing.

    Args:
        text: what is claimed.
        gold: one of `CLAIM_LABELS`; None where it is not known.
        id: the case's id; empty for a generated one.
        passage: the evidence that comes with it; may be empty.
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
    """The row's label, in any of its spellings; None when there is none; see `is_absent`.

    Raises:
        TaskFileError: it is none.
    """
    value = row.values.get("label")
    if is_absent(value):
        return None
    text = str(value) if isinstance(value, int) else row.checked("label", value)
    found = canonical_label(text, CLAIM_LABELS, aliases=CLAIM_ALIASES)
    if found is None:
        expected = f"expected {' or '.join(CLAIM_LABELS)} (also true or false, 1 or 0) or nothing"
        raise row.error("label", f"{expected}, found {shown(value)}")
    return found


def claim_tags(row: Row) -> dict[str, str]:
    """The row's category as its tag; of none, no tags.

    Raises:
        TaskFileError: it is no text.
    """
    category = row.text("category", default="").strip()
    return {"category": category} if category else {}


def spelled_out(row: Row) -> Row:
    """A case in memory that is written as a claim, with question, labels and gold label; any other row as it is.

    Raises nothing: what is wrong with the claim is the row's problem.
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
