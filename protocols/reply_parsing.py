"""Reply parser: JSON as sent, else repaired once; then validated; then its answer mapped to a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from moot.protocols.replies import FreeText
from moot.protocols.reply_json import read_object, refuse_control_characters
from moot.protocols.text.labels import canonical_label, fold, leading_label
from moot.protocols.validation_messages import InvalidReply as InvalidReply

_OUTSIDE, _EXPECTED = "`answer` is", ", expected one of: "


@dataclass(frozen=True, slots=True)
class Parsed:
    """Parsed reply.

    Attributes:
        data: the validated reply as plain data.
        answer: canonical label or folded free text; None when the reply has no `answer`.
        repaired: whether the JSON was repaired.
        by_prefix: whether the label is the start of a longer answer, see `leading_label`.
        readings: marks of how the JSON was read, see `JsonReading`.
    """

    data: dict[str, Any]
    answer: str | None
    repaired: bool
    by_prefix: bool = False
    readings: tuple[str, ...] = ()


def parse_reply(
    text: str,
    model: type[BaseModel],
    labels: tuple[str, ...] | None = None,
    choices: tuple[str, ...] = (),
    aliases: tuple[tuple[str, ...], ...] = (),
) -> Parsed:
    """Parse a reply: JSON as sent, else repaired once; then validated; then its answer mapped to a label.

    Raises:
        InvalidReply: names the error. There is no default for anything that is missing.
    """
    if model is FreeText:
        if not text.strip():
            raise InvalidReply("the reply is empty")
        return Parsed({"text": text}, None, False)
    read = read_object(text, model)
    reply, repaired = read.validated, read.repaired
    answer = getattr(reply, "answer", None)
    if not isinstance(answer, str):
        return Parsed(reply.model_dump(mode="json"), None, repaired, readings=read.readings)
    refuse_control_characters(answer)
    label = canonical_label(answer, labels, choices, aliases) if labels else fold(answer)
    by_prefix = not label and labels is not None
    if by_prefix and labels:
        label = leading_label(answer, labels, choices, aliases)
    if not label:
        allowed = ", ".join(labels or ())
        raise InvalidReply(f"{_OUTSIDE} {answer[:80]!r}{_EXPECTED}{allowed}")
    return Parsed(reply.model_dump(mode="json"), label, repaired, by_prefix, read.readings)


def is_outside_labels(error: str) -> bool:
    """Whether a recorded `InvalidReply` message states that an answer is none of the labels.

    >>> is_outside_labels("`answer` is 'perhaps', expected one of: Yes, No")
    True
    """
    return error.startswith(_OUTSIDE) and bool(error.rpartition(_EXPECTED)[2]) and _EXPECTED in error
