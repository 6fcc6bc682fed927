"""What a cell holds that tells no right answer: one rule for every task that reads a user's file."""

from __future__ import annotations

from collections.abc import Iterable

from moot.protocols.labels import fold

_WORDS = frozenset({"n/a", "n.a.", "nan", "none", "null"})
_IN_CAPITALS = "NA"
"""As R writes it; `Na` may be sodium."""


def is_blank(value: object) -> bool:
    """Whether a value is none: null, not a number (as pandas writes it), or blank text. Raises nothing."""
    return (
        value is None or (isinstance(value, float) and value != value) or (isinstance(value, str) and not value.strip())
    )


def is_absent(value: object, labels: Iterable[str] = ()) -> bool:
    """Whether a cell tells no right answer, so that its case is debated and not scored. Raises nothing.

    What `is_blank` does, and so does a word for it, unless it is one of the labels.

    Args:
        value: of the cell.
        labels: what an answer may be, with the texts of choices; of none where answers are free.

    >>> is_absent(" "), is_absent("N/A"), is_absent("N/A", ["Yes", "No", "n/a"]), is_absent("Na"), is_absent(0)
    (True, True, False, False, False)
    """
    if not isinstance(value, str) or is_blank(value):
        return is_blank(value)
    text = value.strip()
    return (text.casefold() in _WORDS or text == _IN_CAPITALS) and fold(text) not in map(fold, labels)


def remark(absent: int, cases: int) -> str:
    """One line about the cases that are not scored; empty where that is none of them, or all. Raises nothing."""
    if not 0 < absent < cases:
        return ""
    return f"{absent:,} of {cases:,} cases have no gold answer: they are not scored"
