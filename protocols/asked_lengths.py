"""How long prompts ask texts and lists of a reply to be: the number for the prompt's words and for the schema's limit.

A template writes `{{ length.argument(3) }}`, which is "three to six sentences" where the table has six. The reply type
declares the same name, `asked("argument")`, so that the schema has room for as much. Where a reply's tokens leave less
room, the agent renders the template with shorter lengths, so that the prompt asks for what fits. A template that is
loaded, moot's or a user's, has the table's number in its text, `length.argument(3, 6)`, so that its hash covers the
number and records do not depend on the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from moot.protocols.reply_limits import most

ASKED_LENGTH = "x-asked-length"
"""Schema key that names the entry of `ASKED_LENGTHS` of a text or list."""

Unit = Literal["sentence", "short sentence", "word", "item"]

_CHARACTERS: Mapping[Unit, int] = {"sentence": 180, "short sentence": 110, "word": 9, "item": 1}
"""Characters of a unit in the longest usual languages, such as German, Finnish, Greek or Russian: sentences of 20 to 25
English words, and of 12 to 15, are about as long there. Whoever changes a number changes prompts of equal fingerprints,
where lengths are shortened."""

_SLACK = 1.3
"""Times as many characters as a text of the asked length: sentences differ in length."""

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True, slots=True)
class AskedLength:
    """Length of a text in sentences or words, or of a list in items.

    Attributes:
        most: the largest number of units that the prompt asks for.
        unit: of a list `item`, which the prompt itself names.
    """

    most: int
    unit: Unit

    @property
    def needed(self) -> int:
        """Characters of a text of this length in the longest usual languages, or items of a list."""
        return self.most * _CHARACTERS[self.unit]

    @property
    def limit(self) -> int:
        """Characters, or items, that a schema permits where a reply's tokens leave room."""
        return self.most if self.unit == "item" else round(_SLACK * self.needed)

    @property
    def least(self) -> int:
        """Characters below which lists become shorter before this text does: a short sentence; 0 of words."""
        return _CHARACTERS["short sentence"] if "sentence" in self.unit else 0

    def within(self, room: int) -> AskedLength:
        """The longest such length that fits: fewer units, else a short sentence, else words.

        Args:
            room: characters of a text, or items of a list.

        >>> str(AskedLength(6, "sentence").within(407)), str(AskedLength(6, "sentence").within(100))
        ('at most two sentences', 'at most eleven words')
        """
        fitting = min(self.most, room // _CHARACTERS[self.unit])
        if fitting or self.unit in ("word", "item"):
            return replace(self, most=max(fitting, 1))
        shorter = AskedLength(1, "short sentence")
        return shorter if room >= shorter.needed else AskedLength(max(room // _CHARACTERS["word"], 1), "word")

    def __call__(self, least: int = 0, most: int | None = None) -> str:
        """In words, for a prompt.

        Args:
            least: smallest number of units that the prompt asks for; 0 for none.
            most: largest one, where it is less than that of the length.

        >>> AskedLength(2, "sentence")(1), AskedLength(4, "item")(2), AskedLength(8, "word")()
        ('one or two sentences', 'two to four', 'at most eight words')
        """
        top = self.most if most is None else min(most, self.most)
        unit = "" if self.unit == "item" else f" {self.unit}{'s' if top > 1 else ''}"
        if least == 0 or self.unit == "word":
            return f"at most {_in_words(top)}{unit}"
        if least >= top:
            return f"{_in_words(top)}{unit}"
        return f"{_in_words(least)} {'or' if least + 1 == top else 'to'} {_in_words(top)}{unit}"

    def __str__(self) -> str:
        return self()


def _in_words(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


ASKED_LENGTHS: Mapping[str, AskedLength] = MappingProxyType(
    {
        # of judges
        "rationale": AskedLength(2, "sentence"),
        "assessment": AskedLength(3, "sentence"),
        # CRIT
        "reason": AskedLength(1, "short sentence"),
        "justification": AskedLength(2, "sentence"),
        "reflection": AskedLength(1, "sentence"),
        # SELENE
        "reasoning": AskedLength(4, "sentence"),
        # EVINCE
        "arguments": AskedLength(4, "item"),
        "rebuttals": AskedLength(3, "item"),
        "to_find_out": AskedLength(5, "item"),
        "to_test": AskedLength(5, "item"),
        # CEDA
        "message": AskedLength(2, "short sentence"),
        "agreed": AskedLength(3, "item"),
        "summary": AskedLength(3, "sentence"),
        "statements": AskedLength(4, "item"),
        "statement_text": AskedLength(1, "short sentence"),
        "facts": AskedLength(2, "item"),
        "conflicts": AskedLength(3, "item"),
        "quote": AskedLength(15, "word"),
        # SocraSynth
        "title": AskedLength(8, "word"),
        "description": AskedLength(2, "sentence"),
        "argument": AskedLength(6, "sentence"),
        "addition": AskedLength(3, "sentence"),
        "statement": AskedLength(5, "sentence"),
        "points": AskedLength(8, "item"),
        "point": AskedLength(2, "sentence"),
        "answer_points": AskedLength(5, "item"),
        "questions": AskedLength(5, "item"),
        "reservations": AskedLength(5, "item"),
        "heard": AskedLength(5, "item"),
        "overall": AskedLength(3, "sentence"),
        # of several: an item of a list
        "one_sentence": AskedLength(1, "sentence"),
    }
)
"""Lengths by the name that templates and reply types use."""


_USE = re.compile(r"\blength\.(\w+)\b(?:\(\s*(\d*)\s*\)|(?!\s*\())")


def with_numbers(source: str) -> str:
    """A template's text with the table's number in each length that it asks for.

    Only a least number in digits, or none, is understood; any other expression stays, and takes its number when it is
    rendered.

    >>> with_numbers("{{ length.argument( 3 ) }}, {{ length.title() }}, {{ length.title }}, {{ length.title(0, 5) }}")
    '{{ length.argument(3, 6) }}, {{ length.title(0, 8) }}, {{ length.title(0, 8) }}, {{ length.title(0, 5) }}'
    """
    return _USE.sub(_with_number, source)


def _with_number(use: re.Match[str]) -> str:
    length = ASKED_LENGTHS.get(use[1])
    return use[0] if length is None else f"length.{use[1]}({use[2] or 0}, {length.most})"


def asked(name: str) -> dict[str, Any]:
    """Extra keys for the schema of a text or list whose length a prompt asks for.

    Args:
        name: in `ASKED_LENGTHS`.

    >>> asked("reason")
    {'maxLength': 143, 'x-asked-length': 'reason'}
    """
    length = ASKED_LENGTHS[name]
    if length.unit == "item":
        return {**most(length.most), ASKED_LENGTH: name}
    return {"maxLength": length.limit, ASKED_LENGTH: name}
