"""How a reply was read, where that was not as it stood: the column `reading` of the record."""

from __future__ import annotations

BY_PREFIX = "prefix"
"""The label is the start of an answer that goes on; see `protocols.labels.leading_label`."""

FROM_REASONING = "reasoning"
"""The server put the reply where hidden reasoning belongs, and left the content empty."""


def reading(*, by_prefix: bool, from_reasoning: bool) -> str | None:
    """The column's value: the marks that apply, with a comma between them; None for a reply read as it stood.

    >>> reading(by_prefix=True, from_reasoning=True), reading(by_prefix=False, from_reasoning=False)
    ('prefix,reasoning', None)
    """
    marks = ((BY_PREFIX, by_prefix), (FROM_REASONING, from_reasoning))
    return ",".join(mark for mark, applies in marks if applies) or None


def read_by(column: str | None, mark: str) -> bool:
    """Whether a value of the column holds a mark."""
    return mark in (column or "").split(",")
