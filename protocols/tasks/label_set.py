"""Closed set of labels, gathered from rows; no two of them share a spelling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from unicodedata import category

from moot.protocols.distribution import OTHER
from moot.protocols.tasks.row import Row, shown
from moot.protocols.text.folding import fold, label_order

_NO_PART_OF_A_LINE = frozenset({"Cc", "Zl", "Zp"})
"""Labels are inserted into instructions, unfenced: none may begin a line of its own there."""


@dataclass(frozen=True)
class _Spelling:
    label: str
    text: str
    line: int


class LabelSet:
    """Labels, and the aliases of each; in order of appearance until reordered.

    No two labels, and no label and another one's alias, may be equal after `fold`: a model's answer
    would name both.
    """

    def __init__(self) -> None:
        self._aliases: dict[str, list[str]] = {}
        self._spellings: dict[str, _Spelling] = {}

    def __len__(self) -> int:
        return len(self._aliases)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels, in order."""
        return tuple(self._aliases)

    @property
    def aliases(self) -> tuple[tuple[str, ...], ...]:
        """Aliases of each label, in the labels' order; empty when no label has any, as in `Case.aliases`."""
        return tuple(map(tuple, self._aliases.values())) if any(self._aliases.values()) else ()

    def __contains__(self, label: str) -> bool:
        return label in self._aliases

    def put_in_order(self, declared: Iterable[str]) -> None:
        """Sorts the labels: declared ones first, in their order, then the others by `label_order`."""
        first = list(declared)
        others = sorted(self._aliases.keys() - set(first), key=label_order)
        self._aliases = {label: self._aliases[label] for label in (*first, *others)}

    def add(self, row: Row, label: str, field: str = "label") -> None:
        """Adds a label from `field` of `row`; a known one is skipped.

        Raises:
            TaskFileError: it is only punctuation, is `OTHER`, or folds to another label or an alias.
        """
        if label in self._aliases:
            return
        if label == OTHER:
            expected = (
                f"expected another name, {shown(label)} stands for what is outside the labels; `other` may be one"
            )
            raise row.error(field, expected)
        form = _form(row, field, label)
        if known := self._spellings.get(form):
            raise row.error(field, f"expected distinct labels, {shown(label)} reads like {_spelling_text(known, row)}")
        self._spellings[form] = _Spelling(label, label, row.line)
        self._aliases[label] = []

    def add_alias(self, row: Row, label: str, alias: str) -> None:
        """Adds another spelling of a known label; one that the label has, or that folds to it, is skipped.

        Raises:
            TaskFileError: it is only punctuation, or folds to another label or another one's alias.
        """
        form = _form(row, "aliases", alias)
        known = self._spellings.get(form)
        if known is None:
            self._spellings[form] = _Spelling(label, alias, row.line)
            self._aliases[label].append(alias)
        elif known.label != label:
            expected = (
                f"expected spellings of {shown(label)} alone, {shown(alias)} reads like {_spelling_text(known, row)}"
            )
            raise row.error("aliases", expected)


def _form(row: Row, field: str, text: str) -> str:
    if any(category(character) in _NO_PART_OF_A_LINE for character in text):
        raise row.error(field, f"expected one line without control characters, found {shown(text)}")
    form = fold(text)
    if not form:
        raise row.error(field, f"expected words, {shown(text)} is only marks")
    return form


def _spelling_text(known: _Spelling, row: Row) -> str:
    name = shown(known.text) if known.text == known.label else f"{shown(known.text)}, an alias of {shown(known.label)}"
    return name if known.line == row.line else f"{name} in line {known.line}"
