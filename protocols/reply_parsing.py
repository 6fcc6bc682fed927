"""Reply parser: JSON as sent, else repaired once; then validated; then its answer mapped to a label."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from unicodedata import category

import json_repair
import msgspec
from pydantic import BaseModel, ValidationError

from moot.protocols.replies import FreeText
from moot.protocols.text.folding import fold
from moot.protocols.text.labels import LabelReading, read_label
from moot.protocols.validation_messages import explain_error

_OUTSIDE, _EXPECTED = "`answer` is", ", expected one of: "


class InvalidReply(ValueError):
    """A reply that does not fit its model even after repair; the message may be shown to the model.

    Args:
        message: text for the model; its wording is stable, so that records with it can be replayed.
        plain: text for people; empty where it equals the message.
    """

    def __init__(self, message: str, plain: str = "") -> None:
        super().__init__(message, plain)
        self.plain = plain or message

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Parsed:
    """Parsed reply.

    Attributes:
        data: the validated reply as plain data.
        answer: canonical label or folded free text; None when the reply has no `answer`.
        repaired: whether the JSON was repaired.
        readings: lenient ways in which it was read: those of `moot.protocols.text.labels.Leniency`, "mended" for JSON
            that was repaired.
    """

    data: dict[str, Any]
    answer: str | None
    repaired: bool
    readings: tuple[str, ...] = ()


_FENCE = "```"


_NUMBERS = "-+0123456789.eE"


_MOST_MENDED = 2**14
"""Most characters of a reply to repair: a longer one that is no JSON is asked for again."""


_MOST_LEVELS = 100
"""Most open brackets of a reply to repair: no reply type has ten, and repairing thousands takes a long time."""


def _load_json(text: str) -> tuple[Any, bool]:
    body = text.strip()
    try:
        return msgspec.json.decode(body), False
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    _, fence, fenced = body.partition(_FENCE)
    inside, closed, _ = fenced.partition(_FENCE)
    if fence and closed:
        body = inside.removeprefix("json").strip()
    start = body.find("{")
    if start < 0:
        raise InvalidReply("the reply holds no JSON object")
    try:
        value = _mended(body[start:])
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise InvalidReply("the reply holds half of a surrogate pair, which is not Unicode text") from None
    except RecursionError:
        raise InvalidReply("the reply is nested too deeply") from None
    return value, True


def _mended(body: str) -> Any:
    try:
        return json.JSONDecoder().raw_decode(body)[0]
    except ValueError:
        if len(body) > _MOST_MENDED:
            raise InvalidReply(f"the reply is no JSON, and too long to be mended: {len(body):,} characters") from None
        if _levels(body) > _MOST_LEVELS:
            raise InvalidReply("the reply is nested too deeply") from None
        # A number at the torn end may have lost digits: without it the field is missing, not wrong.
        try:
            return json_repair.loads(body.rstrip().rstrip(_NUMBERS))
        except ValueError as error:
            raise InvalidReply(f"the reply is no JSON that can be mended: {error}") from None


def _levels(body: str) -> int:
    """Most brackets open at once; those inside texts count too."""
    if sum(map(body.count, "([{")) <= _MOST_LEVELS:
        return 0
    steps = (1 if char in "([{" else -1 for char in body if char in "([{}])")
    return max(accumulate(steps), default=0)


def _misfit(error: ValidationError | ValueError) -> InvalidReply:
    if not isinstance(error, ValidationError):
        return InvalidReply(f"the reply does not fit: {error}")
    found = error.errors(include_url=False)[:3]
    wording, plain = (
        "; ".join(f"`{'.'.join(map(str, each['loc']))}`: {explain(each)}" for each in found)
        for explain in (lambda each: each["msg"], explain_error)
    )
    return InvalidReply(f"the reply does not fit: {wording}", f"the reply does not fit: {plain}")


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
    plain = getattr(model, "plain_text_is", "")
    value, repaired = ({plain: text}, False) if plain and "{" not in text else _load_json(text)
    if not isinstance(value, dict):
        raise InvalidReply("the reply is not a JSON object")
    try:
        reply = model.model_validate(value)
    except (ValidationError, ValueError) as error:
        raise _misfit(error) from error
    answer = getattr(reply, "answer", None)
    readings: tuple[str, ...] = ("mended",) if repaired else ()
    if not isinstance(answer, str):
        return Parsed(reply.model_dump(mode="json"), None, repaired, readings)
    if any(category(character) == "Cc" and not character.isspace() for character in answer):
        raise InvalidReply(f"`answer` contains a control character: {answer[:80]!r}")
    found = read_label(answer, labels, choices, aliases) if labels else LabelReading(fold(answer))
    if found is None or not found.label:
        allowed = ", ".join(labels or ())
        raise InvalidReply(f"{_OUTSIDE} {answer[:80]!r}{_EXPECTED}{allowed}")
    readings += (found.leniency,) if found.leniency else ()
    return Parsed(reply.model_dump(mode="json"), found.label, repaired, readings)


def is_outside_labels(error: str) -> bool:
    """Whether a recorded `InvalidReply` message states that an answer is none of the labels.

    >>> is_outside_labels("`answer` is 'perhaps', expected one of: Yes, No")
    True
    """
    return error.startswith(_OUTSIDE) and bool(error.rpartition(_EXPECTED)[2]) and _EXPECTED in error
