"""Choices and labels of a row, in any notation of its file: lists, objects, or a column for each."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field

from moot.protocols.tasks.label_set import LabelSet
from moot.protocols.tasks.labelled_texts import MAX_LABELS
from moot.protocols.tasks.own_cases.columns import Columns
from moot.protocols.tasks.row import Row, is_blank, shown

YES_NO = ("Yes", "No")
"""Labels of a file whose gold answers are all yes or no, true or false."""

_QUOTED = re.compile(r"\s*,?\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True)
class Choices:
    """Closed set of a row.

    Attributes:
        labels: permitted answers.
        texts: the text of each label; empty for self-explanatory labels.
        places: index of a label by its number in gold answers.
    """

    labels: tuple[str, ...]
    texts: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)

    def spelling(self, index: int) -> str:
        """Text of the choice at an index, or its label if the labels have no texts."""
        return (self.texts or self.labels)[index]


def value_of(row: Row, column: str | None) -> object:
    """Value of a column, or within its object, as in `answer.value`; None without one. Raises nothing."""
    if column is None or column in row.values:
        return None if column is None else row.values[column]
    found: object = row.values
    for part in column.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def read_choices(row: Row, columns: Columns, names: tuple[str, ...] = ()) -> Choices | None:
    """Closed set of a row; None for a free answer.

    Args:
        row: the row.
        columns: columns of the fields.
        names: labels of rows without their own.

    Raises:
        TaskFileError: choices or labels are malformed, too few or too many, or ambiguous.
    """
    labels, texts, column = columns.labels, tuple[str, ...](), ""
    if "labels" in columns.of:
        column = columns.of["labels"]
        labels = _listed(row, column, value_of(row, column))
    if len(columns.choices) == 1:
        column = columns.choices[0]
        own, texts = _within(row, column, value_of(row, column))
        labels = labels or own
    elif columns.choices:
        column = columns.choices[0]
        texts = _across(row, columns.choices)
    if not texts and not labels:
        labels = names
    elif not labels:
        if len(texts) > len(string.ascii_uppercase):
            raise row.error(
                column, f"expected at most {len(string.ascii_uppercase)} choices without labels, found {len(texts)}"
            )
        labels = tuple(string.ascii_uppercase[: len(texts)])
    if not labels:
        return None
    _check(row, column or "labels", labels, texts)
    places = {number: place for number, place in columns.places.items() if place < len(labels)}
    return Choices(labels, texts, places or {str(place): place for place in range(len(labels))})


def _check(row: Row, column: str, labels: tuple[str, ...], texts: tuple[str, ...]) -> None:
    if not 2 <= len(labels) <= MAX_LABELS:
        raise row.error(column, f"expected 2 to {MAX_LABELS} choices or labels, found {len(labels)}")
    if texts and len(texts) != len(labels):
        raise row.error(column, f"expected one text per label ({len(labels)}), found {len(texts)}")
    found = LabelSet()
    for label in labels:
        if label in found:
            raise row.error(column, f"expected distinct labels, {shown(label)} is there twice")
        found.add(row, label, column)


def _within(row: Row, column: str, value: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels, if it has some, and texts of a column with all choices."""
    value = parsed(value)
    if is_blank(value):
        return (), ()
    if isinstance(value, Mapping):
        keys = {str(key).casefold(): key for key in value}
        if "text" in keys and isinstance(value[keys["text"]], (list, tuple)):
            labels = _listed(row, column, value.get(keys.get("label", "label")))
            return labels, _listed(row, column, value[keys["text"]])
        # where each object of a column has the keys of all, as in Parquet, those of other rows are null
        pairs = [(str(key), text) for key, text in value.items() if text is not None]
        return tuple(key for key, _ in pairs), _listed(row, column, [text for _, text in pairs])
    if isinstance(value, (list, tuple)) and value and all(isinstance(each, Mapping) for each in value):
        label, text = ("key", "value") if "value" in value[0] else ("label", "text")
        labels = _listed(row, column, [each[label] for each in value if each.get(label) is not None])
        return labels, _listed(row, column, [each.get(text) for each in value])
    return (), _listed(row, column, value)


def _across(row: Row, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Texts of the columns of choices; the last may be blank, for a question with fewer choices."""
    values = [value_of(row, column) for column in columns]
    while values and is_blank(values[-1]):
        values.pop()
    return tuple(_text(row, column, value) for column, value in zip(columns, values, strict=False))


def _listed(row: Row, column: str, value: object) -> tuple[str, ...]:
    value = parsed(value)
    if is_blank(value):
        return ()
    if isinstance(value, str) and ";" in value:
        value = [piece.strip() for piece in value.split(";") if piece.strip()]
    if not isinstance(value, (list, tuple)):
        raise row.error(
            column, f"expected a list of texts, in CSV as JSON or with `;` between them, found {shown(value)}"
        )
    return tuple(_text(row, column, each) for each in value)


def _text(row: Row, column: str, value: object) -> str:
    """Text of a choice; a number as written in the file."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value:
        return str(value)
    return row.checked(column, value).strip()


def parsed(value: object) -> object:
    """List or object in a CSV cell's text; any other value unchanged. Raises nothing."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if (text[:1], text[-1:]) not in {("[", "]"), ("{", "}")}:
        return value
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = quoted_texts(text)
    return value if found is None else found


def quoted_texts(cell: str) -> list[str] | None:
    """Texts of a list in Python's or NumPy's notation, as pandas writes one into a CSV; None for other text.

    It is parsed character by character: nothing is evaluated.

    >>> quoted_texts("['two' \\"it's\\"\\n 'x, y']")
    ['two', "it's", 'x, y']
    """
    inner, place, found = cell.strip()[1:-1], 0, []
    while match := _QUOTED.match(inner, place):
        text = match[1] if match[1] is not None else match[2]
        found.append(_ESCAPED.sub(lambda mark: _MEANING.get(mark[1], mark[1]), text))
        place = match.end()
    return found if found and not inner[place:].strip(" \t\r\n,") and cell.strip()[0] == "[" else None
