"""Gold answers of a file: their format is decided over all of them, never row by row."""

from __future__ import annotations

import re
from collections.abc import Mapping

from moot.protocols.case import Scoring
from moot.protocols.errors import TaskFileError
from moot.protocols.replies import json_text
from moot.protocols.tasks.own_cases.choices import Choices, parsed, value_of
from moot.protocols.tasks.public_questions import MARK
from moot.protocols.tasks.row import Row, is_absent, is_blank, shown
from moot.protocols.tasks.task import MOST_SHOWN, first_few
from moot.protocols.text.folding import fold
from moot.protocols.text.labels import canonical_label, read_label
from moot.protocols.text.numbers import boxed_answer, plain_number, stated_number

_WHOLE = re.compile(r"(-?\d{1,9})(?:\.0)?")
_YES, _NO = ("yes", "true"), ("no", "false")
_FROM_ONE = (
    "and positions count from 0: if they count from 1, use columns whose names end in 1, 2 ..., or write letters"
)
_TELLING = 3
"""Gold answers per choice from which it tells something that none is the first choice."""

HIDDEN = "-1"
"""Placeholders of public test sets for a hidden right choice."""


def is_yes_no(answer: str) -> bool:
    """Whether a gold answer is yes or no, true or false."""
    return fold(answer) in (*_YES, *_NO)


def answers_of(row: Row, column: str | None, choices: Choices | None = None) -> tuple[str, ...]:
    """Right answers of a row as in the file, numbers and truth values as text; empty where it has none.

    `is_absent` recognises absent ones, except among labels and texts of the choices; beside others, "none" counts.
    A list, `{"text": [...]}` (SQuAD) and `{"value": ..., "aliases": [...]}` (TriviaQA) are several.

    Raises:
        TaskFileError: it has another form.
    """
    value = value_of(row, column)
    if isinstance(value, Mapping):
        texts, first, more = value.get("text"), value.get("value"), value.get("aliases")
        if texts is None and first is None:
            raise row.error(str(column), "expected text, a number, a list, or an object with `text` or `value`")
        value = texts if texts is not None else [first, *(more if isinstance(more, (list, tuple)) else ())]
    if isinstance(value, str) and isinstance(several := parsed(value), list):
        value = several if all(isinstance(each, str) for each in several) else value
    each_of = value if isinstance(value, (list, tuple)) else (value,)
    if len(each_of) == 1 and is_absent(each_of[0], () if choices is None else (*choices.labels, *choices.texts)):
        return ()
    found = (_answer(row, str(column), each) for each in each_of if not is_blank(each))
    return tuple(dict.fromkeys(found))


def _answer(row: Row, column: str, value: object) -> str:
    return row.checked(column, json_text(value)).strip()


class GoldSurvey:
    """Formats of a file's gold answers, from one pass over all rows.

    Attributes:
        yes_no: whether the file has no choices, and all its answers are yes or no.
        by_place: whether answers number their choice; else they name it.
    """

    def __init__(self) -> None:
        self._free = self._yes_no = 0
        self._closed = self._whole = self._named = self._in_range = 0
        self._differs: TaskFileError | None = None
        self._lenient: list[str] = []
        self._lenient_count = self._hidden = 0
        self._one_is_false = ""
        self._from_zero = True
        self._most_choices = 0

    @property
    def yes_no(self) -> bool:
        return self._free > 0 and self._yes_no == self._free and not self._closed

    @property
    def by_place(self) -> bool:
        return self._closed > 0 and self._whole == self._closed and self._named < self._closed

    def add(self, row: Row, column: str | None, choices: Choices | None) -> None:
        """Processes one row.

        Raises:
            TaskFileError: its answer has an unknown form.
        """
        for answer in answers_of(row, column, choices):
            if choices is None:
                self._free += 1
                self._yes_no += is_yes_no(answer)
            elif _is_hidden(answer, choices):
                self._hidden += 1
            else:
                self._take_closed(row, str(column), answer, choices)

    def _take_closed(self, row: Row, column: str, answer: str, choices: Choices) -> None:
        named = canonical_label(answer, choices.labels, choices.texts)
        whole = _WHOLE.fullmatch(answer)
        place = choices.places.get(whole[1]) if whole else None
        self._closed += 1
        self._whole += whole is not None
        self._named += named is not None
        self._in_range += place is not None
        self._from_zero &= "0" in choices.places and place != 0
        self._most_choices = max(self._most_choices, len(choices.labels))
        if choices.places.get("1") == 1 and is_yes_no(choices.spelling(0)) and not self._one_is_false:
            first, second = choices.spelling(0), choices.spelling(1)
            if is_yes_no(second) and canonical_label("yes", (first, second)) == first:
                self._one_is_false = f"gold 0 is read as {first} and 1 as {second}, as positions"
        if named is None and whole is None and read_label(answer, choices.labels, choices.texts) is not None:
            self._lenient_count += 1
            if len(self._lenient) < MOST_SHOWN:
                self._lenient.append(f"{row.line:,} {shown(answer)}")
        if place is not None and named not in (None, choices.labels[place]) and self._differs is None:
            one, other = choices.labels[place], named
            self._differs = row.error(
                column,
                f"may be the place of a choice ({one}) or its text ({other}), and so may all in the file: write labels",
            )

    def remarks(self) -> tuple[str, ...]:
        """Lines about answers that may mean something else than they are read as."""
        remarks = []
        if self._lenient_count:
            count, rows = self._lenient_count, first_few(self._lenient, self._lenient_count)
            remarks.append(f"{count:,} gold answers say more than a label: the label in them counts (row {rows})")
        if self._hidden:
            remarks.append(f"{self._hidden:,} gold answers are {HIDDEN}, a hidden one: these cases are not scored")
        if self._one_is_false and self.by_place:
            remarks.append(f"{self._one_is_false}: if 1 means yes, write the labels in the other order")
        if self.by_place and self._from_zero and self._closed >= _TELLING * self._most_choices:
            remarks.append(f"no gold answer is 0, {_FROM_ONE}")
        return tuple(remarks)

    def check(self) -> None:
        """Refuses a file whose numbers may be indices or texts.

        Raises:
            TaskFileError: names the first row for which the difference matters.
        """
        if self._differs is not None and self._closed == self._whole == self._named == self._in_range:
            raise self._differs


def closed_gold(row: Row, column: str | None, choices: Choices, by_place: bool) -> tuple[str, ...]:
    """Right labels, in order; empty for a row that is not scored.

    Raises:
        TaskFileError: an answer is none of the labels, or could be several.
    """
    answers = (answer for answer in answers_of(row, column, choices) if not _is_hidden(answer, choices))
    return tuple(dict.fromkeys(_label(row, str(column), answer, choices, by_place) for answer in answers))


def _is_hidden(answer: str, choices: Choices) -> bool:
    return answer == HIDDEN and HIDDEN not in (*choices.labels, *choices.texts)


def _label(row: Row, column: str, answer: str, choices: Choices, by_place: bool) -> str:
    if answer in choices.labels:
        return answer
    whole = _WHOLE.fullmatch(answer)
    if by_place and whole and whole[1] in choices.places:
        return choices.labels[choices.places[whole[1]]]
    if by_place:
        from_one = f", {_FROM_ONE}" if answer == str(len(choices.labels)) and "0" in choices.places else ""
        raise row.error(column, f"expected {_wanted(choices)}, found {shown(answer)}{from_one}")
    if whole and whole[1] in choices.places and read_label(answer, choices.labels, choices.texts) is None:
        expected = f"expected a label or the text of a choice, as in other rows, found {shown(answer)}"
        raise row.error(column, f"{expected}: numbers are positions only if all golds are numbers")
    if (named := read_label(answer, choices.labels, choices.texts)) is not None:
        return named.label
    several = [
        label for label, known in zip(choices.labels, choices.texts, strict=False) if fold(known) == fold(answer)
    ]
    if len(several) > 1:
        said = f"{shown(answer)} is the text of several ({', '.join(several)})"
        raise row.error(column, f"expected one choice, {said}: write its label")
    raise row.error(column, f"expected {_wanted(choices)}, found {shown(answer)}")


def _wanted(choices: Choices) -> str:
    labels = ", ".join(choices.labels[:12]) + (", ..." if len(choices.labels) > 12 else "")
    if not choices.texts:
        return f"one of {labels}"
    numbers = list(choices.places)
    return f"one of {labels}, the text of a choice, or its number ({numbers[0]} to {numbers[-1]})"


def free_gold(row: Row, column: str | None) -> tuple[tuple[str, ...], Scoring]:
    """Accepted answers, and how answers are compared with them: by value for a single number.

    A solution that ends in `####` and a number, as GSM8K writes it, is that number; one with a `\\boxed{}`, as MATH
    writes it, is what stands in there.

    Raises:
        TaskFileError: an answer has an unknown form.
    """
    texts = answers_of(row, column)
    if len(texts) == 1 and isinstance(value_of(row, column), str | int | float):
        _, mark, last = texts[0].rpartition(MARK)
        if mark and stated_number(last) is not None:
            return (last.strip(),), "number"
        boxed = boxed_answer(texts[0])
        texts = (texts[0] if boxed is None else boxed,)
        if plain_number(texts[0]) is not None:
            return texts, "number"
    return texts, "short answer"
