"""Reply parser: the reply's JSON object, validated; then its answer mapped to a label."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from moot.protocols.plain_replies import PLAIN, PlainReading, has_plain_form, read_plain
from moot.protocols.replies import FreeText
from moot.protocols.reply_json import JsonReading, read_object, refuse_control_characters
from moot.protocols.text.folding import fold
from moot.protocols.text.labels import LabelReading, read_label, unwrapped
from moot.protocols.validation_messages import InvalidReply as InvalidReply

_OUTSIDE, _EXPECTED = "`answer` is", ", expected one of: "


@dataclass(frozen=True, slots=True)
class Parsed:
    """Parsed reply.

    Attributes:
        data: the validated reply as plain data.
        answer: canonical label or folded free text; None when the reply has no `answer`.
        repaired: whether the text was anything but the object as strict JSON.
        readings: lenient ways in which it was read: those of `JsonReading`, or `plain`, then that of the label, see
            `moot.protocols.text.labels.Leniency`.
    """

    data: dict[str, Any]
    answer: str | None
    repaired: bool
    readings: tuple[str, ...] = ()


def parse_reply(
    text: str,
    model: type[BaseModel],
    labels: tuple[str, ...] | None = None,
    choices: tuple[str, ...] = (),
    aliases: tuple[tuple[str, ...], ...] = (),
    *,
    plain: bool = False,
) -> Parsed:
    """Parse a reply: its JSON object as sent, else repaired once; then validated; then its answer mapped to a label.

    Args:
        text: the reply.
        model: its type.
        labels, choices, aliases: the closed set of answers, see `Case`.
        plain: whether it was asked for as plain text; one that is JSON all the same is read as JSON.

    Raises:
        InvalidReply: names the error. There is no default for anything that is missing.
    """
    if model is FreeText:
        if not text.strip():
            raise InvalidReply("the reply is empty")
        return Parsed({"text": text}, None, False)
    read = _read(text, model, labels, choices, aliases, plain=plain)
    answer = getattr(read.validated, "answer", None)
    if not isinstance(answer, str):
        return Parsed(read.validated.model_dump(mode="json"), None, read.repaired, read.readings)
    refuse_control_characters(answer)
    found = read_label(answer, labels, choices, aliases) if labels else LabelReading(fold(answer))
    if found is None or not found.label:
        expected = f"{_EXPECTED}{', '.join(labels)}" if labels else ", expected a short answer"
        raise InvalidReply(f"{_OUTSIDE} {answer[:80]!r}{expected}")
    readings = (*read.readings, found.leniency) if found.leniency else read.readings
    return Parsed(read.validated.model_dump(mode="json"), found.label, read.repaired, readings)


def _read(
    text: str,
    model: type[BaseModel],
    labels: tuple[str, ...] | None,
    choices: tuple[str, ...],
    aliases: tuple[tuple[str, ...], ...],
    *,
    plain: bool,
) -> JsonReading:
    """Reading of a reply's object, or of its lines if it was asked for as plain text and holds no object."""
    if not plain or not has_plain_form(model):
        return read_object(text, model)
    if "{" in text:
        with suppress(InvalidReply):
            return read_object(text, model)
    found = _read_lines(text, model, labels, choices, aliases)
    return JsonReading(found.validated.model_dump(mode="json"), found.validated, readings=(PLAIN,))


def plain_answer_start(
    text: str,
    model: type[BaseModel],
    labels: tuple[str, ...] | None,
    choices: tuple[str, ...],
    aliases: tuple[tuple[str, ...], ...],
) -> int | None:
    """Offset of the first character of the answer in a plain reply; None where it is not certain.

    >>> from moot.protocols.replies import Position
    >>> plain_answer_start("Answer: B\\nIt fits.", Position, ("A", "B"), (), ())
    8
    """
    try:
        return _read_lines(text, model, labels, choices, aliases).answer_at
    except InvalidReply:
        return None


def _read_lines(
    text: str,
    model: type[BaseModel],
    labels: tuple[str, ...] | None,
    choices: tuple[str, ...],
    aliases: tuple[tuple[str, ...], ...],
) -> PlainReading:
    def named(said: str) -> str | None:
        if labels is None:
            return fold(unwrapped(said)) or None
        found = read_label(said, labels, choices, aliases)
        return None if found is None else found.label

    return read_plain(text, model, named, closed=labels is not None)


def is_outside_labels(error: str) -> bool:
    """Whether a recorded `InvalidReply` message states that an answer is none of the labels.

    >>> is_outside_labels("`answer` is 'perhaps', expected one of: Yes, No")
    True
    """
    return error.startswith(_OUTSIDE) and bool(error.rpartition(_EXPECTED)[2]) and _EXPECTED in error
