"""Cases that the user brings as Python objects, checked like those of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moot.protocols.case import Case, Image, LabelledCase
from moot.protocols.errors import TaskFileError
from moot.protocols.labels import fold
from moot.protocols.tasks.row import Row, shown

KEYS = ("id", "question", "passage", "title", "labels", "choices", "gold", "images")
"""What a case in memory may have; only `question` is needed."""


def memory_rows(cases: tuple[LabelledCase | Mapping[str, object], ...], file: str) -> Iterator[Row]:
    """One row per case, `line` being its index + 1; something else carries its problem. Raises nothing."""
    for line, item in enumerate(cases, start=1):
        if isinstance(item, LabelledCase):
            problem = TaskFileError(file, line, "", item.invalid) if item.invalid else None
            values = {key: getattr(item.case, key) for key in KEYS if key != "gold"}
            if not item.case.id:
                del values["id"]
            yield Row(file, line, {**values, "gold": item.gold}, problem)
        elif isinstance(item, Mapping):
            yield Row(file, line, item)
        else:
            expected = f"expected a LabelledCase or a mapping, found {shown(item)}"
            yield Row(file, line, {}, TaskFileError(file, line, "", expected))


def parse_memory(row: Row, default_id: str) -> tuple[Case, str | None]:
    """Gives a case and its gold label.

    Raises:
        TaskFileError: a key is unknown, the question is empty, a value has the wrong type, labels cannot be
            told apart, choices do not match the labels, or the gold label is not one of them.
    """
    for key in row.values:
        if key not in KEYS:
            raise row.error(str(key), f"is unknown; expected {', '.join(KEYS)}")
    labels = _labels(row)
    choices = _texts(row, "choices") or ()
    if choices and len(choices) != len(labels or ()):
        raise row.error("choices", f"expected one text per label ({len(labels or ())}), found {len(choices)}")
    gold = row.values.get("gold")
    if gold is not None:
        gold = row.checked("gold", gold)
        if labels is not None and gold not in labels:
            raise row.error("gold", f"expected one of {', '.join(labels)}, found {shown(gold)}")
    case = Case(
        id=row.identity(default_id),
        question=row.text("question"),
        labels=labels,
        choices=choices,
        passage=row.text("passage", default=""),
        title=row.text("title", default=""),
        images=_images(row),
    )
    return case, gold


def _labels(row: Row) -> tuple[str, ...] | None:
    labels = _texts(row, "labels")
    if labels is None:
        return None
    if len(labels) < 2:
        raise row.error("labels", f"expected at least two labels or none at all, found {len(labels)}")
    folded = [fold(label) for label in labels]
    for index, (label, form) in enumerate(zip(labels, folded, strict=True)):
        if not form:
            raise row.error("labels", f"expected words, {shown(label)} is only marks")
        if form in folded[:index]:
            other = labels[folded.index(form)]
            raise row.error("labels", f"expected distinct labels, {shown(label)} reads like {shown(other)}")
    return labels


def _texts(row: Row, field: str) -> tuple[str, ...] | None:
    value = row.values.get(field)
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        raise row.error(field, f"expected a list of texts, found {shown(value)}")
    return tuple(row.checked(field, text) for text in value)


def _images(row: Row) -> tuple[Image, ...]:
    value = row.values.get("images") or ()
    if not isinstance(value, (list, tuple)) or not all(isinstance(image, Image) for image in value):
        raise row.error("images", "expected a list of moot.Image (moot.load_image gives one)")
    return tuple(value)
