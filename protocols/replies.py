"""What agents and judges must reply: one pydantic model per kind of reply."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from moot.protocols.reply_limits import case_label, longest
from moot.protocols.text.labels import fold


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


class FreeText(Reply):
    """Any text; the whole reply is `text`."""

    text: str


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


class DecisionReply(Reply):
    """A person's decision as it lies in the journal."""

    action: str
    text: str = ""
    by: str = "person"
