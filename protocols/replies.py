"""What agents and judges must reply: one pydantic model per kind of reply."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationInfo,
    field_validator,
)
from pydantic_core.core_schema import CoreSchema, with_info_wrap_validator_function

from moot.protocols.asked_lengths import asked
from moot.protocols.reply_limits import case_label
from moot.protocols.text.folding import fold


class Reply(BaseModel):
    """Base of every reply: a JSON object whose extra keys are ignored.

    A model writes the fields in the order in which the type declares them: texts and lists before the decisions that
    follow from them.

    Attributes:
        length_follows_input: whether a good reply is as long as what it was given, so that its schema's bounds cannot
            be made to fit the reply's tokens.
        plain_text_is: the field that a reply without any JSON object is taken for; empty: such a reply is unusable.
        prose: the field that takes the free lines of a reply in plain text, whose other fields have lines of their own
            (`moot.protocols.plain_replies`); empty: the type has no plain form.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    length_follows_input: ClassVar[bool] = False
    plain_text_is: ClassVar[str] = ""
    prose: ClassVar[str] = ""


class FreeText(Reply):
    """Any text; the whole reply is `text`."""

    text: str


def json_text(value: Any) -> Any:
    """A number or truth value as JSON writes it, a whole number without decimals; other values unchanged.

    What `true` means depends on the labels, so it becomes no other word.

    >>> json_text(18.0), json_text(True), json_text(" 18"), json_text(None)
    ('18', 'true', ' 18', None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)) else value


Answer = Annotated[str, Field(min_length=1, json_schema_extra=case_label()), BeforeValidator(json_text)]
"""Answer to a case: one of its labels where it has such, else a short text."""


def _number_of_share(value: Any) -> Any:
    """Refuses what is no number, which pydantic would take for 0 or 1; a text with a percent sign is a share."""
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be a finite number")
    return share_of_percent(value) if isinstance(value, str) and value.strip().endswith("%") else value


def share_of_percent(text: str) -> float:
    """Share that a text such as `80%` states.

    Raises:
        ValueError: it has no number, or one between 0 and 1, such as `0.8%`, which may be meant as a share.

    >>> share_of_percent("80%")
    0.8
    """
    percent = float(text.strip().removesuffix("%"))
    if 0.0 < percent < 1.0:
        raise ValueError(f"is {text.strip()!r}, which may be a share or per cent: write a number from 0 to 1")
    return percent / 100.0


Share = Annotated[float, Field(ge=0.0, le=1.0), BeforeValidator(_number_of_share)]
"""Number in [0, 1], also taken when written `80%`."""


class MayBeUnknown:
    """Marks a field as None where a reply in plain text does not state it. No JSON may: there it must fit `known`.

    None is valid only in the context `UNSTATED`.

    Args:
        known: type of the field in JSON, and of its schema.
    """

    def __init__(self, known: Any) -> None:
        self._known = known

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return with_info_wrap_validator_function(_none_or_known, handler.generate_schema(self._known))


def _none_or_known(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
    return None if value is None and info.context == UNSTATED else handler(value)


UNSTATED = {"unstated": "none"}
"""Context of the validation of replies in plain text, and of what was read from replies before."""


class Position(Reply):
    """An answer first, then a short reasoning trace and a stated confidence (SELENE, section 3.2).

    The answer comes first because after reasoning the answer token saturates near probability 1. The confidence is None
    where a reply in plain text states none.
    """

    prose: ClassVar[str] = "reasoning"

    answer: Answer
    reasoning: str = Field(min_length=1, json_schema_extra=asked("reasoning"))
    confidence: Annotated[float | None, MayBeUnknown(Share)]


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

    prose: ClassVar[str] = "rationale"

    rationale: str = Field(default="", json_schema_extra=asked("rationale"))
    support: Literal["supported", "contradicted", "not covered"]
    score: Share

    @field_validator("support", mode="before")
    @classmethod
    def _plain_support(cls, value: Any) -> Any:
        return fold(value).replace("_", " ").replace("-", " ") if isinstance(value, str) else value


class DecisionReply(Reply):
    """A person's decision as it lies in the journal."""

    action: str
    text: str = ""
    by: str = "person"
