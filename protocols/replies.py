"""What agents and judges must reply: one pydantic model per kind of reply, and the one place that parses them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Literal

import json_repair
import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from moot.protocols.labels import canonical_label, fold, leading_label
from moot.protocols.reply_limits import case_label, longest
from moot.protocols.validation_messages import explain_error


class Reply(BaseModel):
    """Base of every reply: a JSON object whose extra keys are ignored.

    Attributes:
        length_follows_input: whether a good reply is as long as what it was given, so that its schema's bounds cannot
            be made to fit the reply's tokens.
        analysis_first: whether the source wants the long fields written before the decisive ones.
        plain_text_is: the field that a reply without any JSON object is taken for; empty: such a reply is unusable.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    length_follows_input: ClassVar[bool] = False
    analysis_first: ClassVar[bool] = False
    plain_text_is: ClassVar[str] = ""


class Position(Reply):
    """An answer first, then a short reasoning trace and a stated confidence (SELENE, section 3.2).

    The answer comes first because after reasoning the answer token saturates near probability 1.
    """

    analysis_first: ClassVar[bool] = True

    answer: str = Field(min_length=1, json_schema_extra=case_label())
    reasoning: str = Field(min_length=1, json_schema_extra=longest(900))
    confidence: float = Field(ge=0.0, le=1.0)

    @field_validator("answer", mode="before")
    @classmethod
    def _plain_value_is_text(cls, value: Any) -> Any:
        if isinstance(value, bool):
            return "Yes" if value else "No"
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return str(value) if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)) else value

    @field_validator("confidence", mode="before")
    @classmethod
    def _percent_is_a_share(cls, value: Any) -> Any:
        if isinstance(value, str) and value.strip().endswith("%"):
            return float(value.strip().rstrip("%")) / 100.0
        return value


def _reasoning_first(schema: dict[str, Any]) -> None:
    """Changes a schema in place: the same properties, `reasoning` before the others."""
    properties = schema["properties"]
    schema["properties"] = {"reasoning": properties["reasoning"], **properties}


class ReasonedPosition(Position):
    """The same position written in the other order: the reasoning first, so that the answer follows from it.

    Chain of thought. The answer's probability is then one given the reasoning.
    """

    model_config = ConfigDict(json_schema_extra=_reasoning_first)


def position_type(*, answer_first: bool) -> type[Position]:
    """The reply type of a position whose answer is written before its reasoning, or after it."""
    return Position if answer_first else ReasonedPosition


class Score(Reply):
    """A judge's reading of one candidate against the evidence: the analysis, its result, then a score in [0, 1].

    The analysis comes first, as in SELENE's prompt, so that the score follows from it.
    """

    analysis_first: ClassVar[bool] = True

    rationale: str = Field(default="", json_schema_extra=longest(600))
    support: Literal["supported", "contradicted", "not covered"]
    score: float = Field(ge=0.0, le=1.0)

    @field_validator("support", mode="before")
    @classmethod
    def _plain_support(cls, value: Any) -> Any:
        return fold(value).replace("_", " ").replace("-", " ") if isinstance(value, str) else value

    @field_validator("score", mode="before")
    @classmethod
    def _finite(cls, value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("must be a finite number")
        return value


class FreeText(Reply):
    """Any text; the whole reply is `text`."""

    text: str


class InvalidReply(ValueError):
    """A reply that does not fit its model even after repair; the message is fit to be shown to the model.

    Args:
        message: as the model is told it: its words stay what they were, so that records with it can be replayed.
        plain: the same for people; empty where it is the message.
    """

    def __init__(self, message: str, plain: str = "") -> None:
        super().__init__(message, plain)
        self.plain = plain or message

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Parsed:
    """A reply that fits.

    Attributes:
        data: the validated reply as plain data.
        answer: canonical label or folded free text; None when the reply has no `answer`.
        repaired: whether the JSON had to be mended.
        by_prefix: whether the label is the start of an answer that goes on, see `leading_label`.
    """

    data: dict[str, Any]
    answer: str | None
    repaired: bool
    by_prefix: bool = False


_FENCE = "```"
_NUMBERS = "-+0123456789.eE"
_MOST_MENDED = 2**14
"""Characters of a reply that are mended: a longer one that is no JSON is asked for again."""


_MOST_LEVELS = 100
"""Open brackets in a reply that is mended: no reply type has ten, and mending takes a long time for thousands."""


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
    """At most how many brackets are open at once; one inside a text counts, too."""
    if sum(map(body.count, "([{")) <= _MOST_LEVELS:
        return 0
    steps = (1 if char in "([{" else -1 for char in body if char in "([{}])")
    return max(accumulate(steps), default=0)


def _misfit(error: ValidationError | ValueError) -> InvalidReply:
    if not isinstance(error, ValidationError):
        return InvalidReply(f"the reply does not fit: {error}")
    found = error.errors(include_url=False)[:3]
    told, plain = (
        "; ".join(f"`{'.'.join(map(str, each['loc']))}`: {said(each)}" for each in found)
        for said in (lambda each: each["msg"], explain_error)
    )
    return InvalidReply(f"the reply does not fit: {told}", f"the reply does not fit: {plain}")


def parse_reply(
    text: str,
    model: type[BaseModel],
    labels: tuple[str, ...] | None = None,
    choices: tuple[str, ...] = (),
    aliases: tuple[tuple[str, ...], ...] = (),
) -> Parsed:
    """Read a reply: JSON as sent, else mended once; then validated; then its answer mapped to a label.

    Raises:
        InvalidReply: naming what is wrong. There is no default for anything that is missing.
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
    if not isinstance(answer, str):
        return Parsed(reply.model_dump(mode="json"), None, repaired)
    label = canonical_label(answer, labels, choices, aliases) if labels else fold(answer)
    by_prefix = not label and labels is not None
    if by_prefix and labels:
        label = leading_label(answer, labels, choices, aliases)
    if not label:
        allowed = ", ".join(labels or ())
        raise InvalidReply(f"{_OUTSIDE} {answer[:80]!r}{_EXPECTED}{allowed}")
    return Parsed(reply.model_dump(mode="json"), label, repaired, by_prefix)


_OUTSIDE, _EXPECTED = "`answer` is", ", expected one of: "


def is_outside_labels(error: str) -> bool:
    """Whether the message of an `InvalidReply`, as the record keeps it, says that an answer is none of the labels.

    >>> is_outside_labels("`answer` is 'perhaps', expected one of: Yes, No")
    True
    """
    return error.startswith(_OUTSIDE) and bool(error.rpartition(_EXPECTED)[2]) and _EXPECTED in error


class DecisionReply(Reply):
    """A person's decision as it lies in the journal."""

    action: str
    text: str = ""
    by: str = "person"
