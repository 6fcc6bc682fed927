"""Gold answers of a file without choices that differ in kind from nearly all others, such as a text among numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from moot.protocols.tasks.contradictions import MOST_SHOWN, first_few
from moot.protocols.tasks.row import shown

Kind = Literal["number", "yes or no", "text"]
_FEW = 0.25
"""Largest share of the rows that is still an exception."""

_NO_ANSWER = frozenset({"na", "nil", "-", "--", "?", "unknown", "tbd", "missing"})
"""What people write into a cell that has no answer, and what may be one, in lower case; `is_absent` leaves it."""

_SAID: dict[Kind, tuple[str, str]] = {
    "number": ("are no numbers, unlike the others", "they are compared as texts"),
    "yes or no": ("are neither yes nor no, unlike the others", "all answers of the file are compared as texts then"),
    "text": ("look like none", "they count as right answers"),
}
"""By the kind of nearly all answers, what the exceptions are and what becomes of them."""


@dataclass
class _Rows:
    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, answer: str) -> None:
        self.count += 1
        if len(self.first) < MOST_SHOWN:
            self.first.append((line, answer))


class OddGold:
    """Counts the kinds of a file's gold answers, row by row."""

    def __init__(self) -> None:
        self._kinds: dict[Kind, _Rows] = {kind: _Rows() for kind in _SAID}
        self._no_answer = _Rows()

    def add(self, line: int, kind: Kind, answer: str) -> None:
        """Takes the first right answer of a row in."""
        self._kinds[kind].add(line, answer)
        if answer.strip().casefold() in _NO_ANSWER:
            self._no_answer.add(line, answer)

    def remark(self) -> str:
        """One line about the exceptions; empty when there are none."""
        usual = max(self._kinds, key=lambda kind: self._kinds[kind].count)
        others = [rows for kind, rows in self._kinds.items() if kind != usual]
        odd = [self._no_answer] if usual == "text" else others
        count, total = sum(rows.count for rows in odd), sum(rows.count for rows in self._kinds.values())
        if not 0 < count <= _FEW * total:
            return ""
        first = sorted(each for rows in odd for each in rows.first)
        named = first_few([f"{line:,} {shown(answer)}" for line, answer in first], count)
        what, effect = _SAID[usual]
        return f"{count:,} of {total:,} gold answers {what} (row {named}): {effect}; a blank cell is not scored"
