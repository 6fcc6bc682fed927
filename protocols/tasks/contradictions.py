"""Cases that are the same in all that a model is shown, and have different right answers."""

from __future__ import annotations

from collections.abc import Sequence

from moot.protocols.case import LabelledCase
from moot.protocols.labels import fold

MOST_SHOWN = 5
"""Rows that a remark about a file names."""


class Contradictions:
    """Finds them while a task is read; keeps a hash and the right answers of each case."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[int, frozenset[str]]] = {}
        self._found: dict[str, list[int]] = {}

    def add(self, item: LabelledCase, line: int) -> None:
        """Takes a case in; `line` is where it stands in its source."""
        if item.gold is None:
            return
        content = item.case.content_hash()
        right = frozenset(fold(answer) or answer for answer in (item.gold, *item.reference.accepted))
        first, known = self._first.setdefault(content, (line, right))
        if not known & right:
            self._found.setdefault(content, [first]).append(line)

    def remark(self) -> str:
        """One line about all of them; empty when there are none."""
        if not self._found:
            return ""
        each = [" and ".join(f"{line:,}" for line in lines[:MOST_SHOWN]) for lines in self._found.values()]
        return f"rows with the same question and different gold answers: {first_few(each, len(each), '; ')}"


def first_few(each: Sequence[str], total: int, separator: str = ", ") -> str:
    """The first few of so many, and how many more there are.

    >>> first_few(["2", "4", "5", "7", "8", "9"], 11)
    '2, 4, 5, 7, 8, and 6 more'
    """
    shown = each[:MOST_SHOWN]
    return separator.join([*shown, *([f"and {total - len(shown):,} more"] if total > len(shown) else [])])
