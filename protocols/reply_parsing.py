"""Reply parser: the reply's JSON object, validated; then its answer mapped to a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from moot.protocols.replies import FreeText
from moot.protocols.reply_json import read_object, refuse_control_characters
from moot.protocols.text.folding import fold
from moot.protocols.text.labels import LabelReading, read_label
from moot.protocols.validation_messages import InvalidReply as InvalidReply

_OUTSIDE, _EXPECTED = "`answer` is", ", expected one of: "


@dataclass(frozen=True, slots=True)
class Parsed:
    """Parsed reply.

    Attributes:
        data: the validated reply as plain data.
        answer: canonical label or folded free text; None when the reply has no `answer`.
        repaired: whether the text was anything but the object as strict JSON.
        readings: lenient ways in which it was read: those of `JsonReading`, then that of the label, see
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
) -> Parsed:
    """Parse a reply: its JSON object as sent, else repaired once; then validated; then its answer mapped to a label.

    Raises:
        InvalidReply: names the error. There is no default for anything that is missing.
    """
    if model is FreeText:
        if not text.strip():
            raise InvalidReply("the reply is empty")
        return Parsed({"text": text}, None, False)
    read = read_object(text, model)
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


def is_outside_labels(error: str) -> bool:
    """Whether a recorded `InvalidReply` message states that an answer is none of the labels.

    >>> is_outside_labels("`answer` is 'perhaps', expected one of: Yes, No")
    True
    """
    return error.startswith(_OUTSIDE) and bool(error.rpartition(_EXPECTED)[2]) and _EXPECTED in error
