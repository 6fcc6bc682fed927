"""What the sides, the moderator and the judges of a debate reply."""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field, field_validator, model_validator

from moot.protocols.replies import Reply


class Theme(Reply):
    """A theme that a side proposes for debate."""

    title: str = Field(min_length=1)
    description: str = ""


class Themes(Reply):
    """A side's proposal."""

    themes: list[Theme] = Field(min_length=1)


class AgendaItem(Theme):
    """A topic of the moderator's list, and the tags (`A1`, `B3`) of the proposals that went into it."""

    merges: list[str] = Field(default_factory=list)


class Agenda(Reply):
    """The moderator's list of topics."""

    topics: list[AgendaItem] = Field(min_length=1)


class TopicArgument(Reply):
    """An argument on the topic with this number, counted from 1."""

    topic: int
    argument: str = Field(min_length=1)


class Speech(Reply):
    """What a side says in a round: one argument per topic, or that it declines to argue its side.

    Attributes:
        finished: it has said all that it has to say.
        conceded: it now takes the other side to be right.
    """

    declined: bool = False
    arguments: list[TopicArgument] = Field(default_factory=list)
    finished: bool = False
    conceded: bool = False

    @model_validator(mode="after")
    def _says_something(self) -> Speech:
        if not (self.declined or self.arguments):
            raise ValueError("`arguments` is empty although `declined` is false")
        return self


class TopicStatement(Reply):
    """A closing statement on the topic with this number, counted from 1."""

    topic: int
    statement: str = Field(min_length=1)


class Closing(Reply):
    """A side's closing statements, or that it declines to close."""

    declined: bool = False
    statements: list[TopicStatement] = Field(default_factory=list)

    @model_validator(mode="after")
    def _says_something(self) -> Closing:
        if not (self.declined or self.statements):
            raise ValueError("`statements` is empty although `declined` is false")
        return self


class Draft(Reply):
    """A proposal for a decision: its points, and what should be found out next."""

    points: list[str] = Field(min_length=1)
    questions: list[str] = Field(default_factory=list)


class Amendment(Draft):
    """A draft as the other side would have it, and whether that side stands behind it."""

    consents: bool
    reservations: list[str] = Field(default_factory=list)


class Consent(Reply):
    """Whether a side stands behind an amended proposal."""

    consents: bool
    reservations: list[str] = Field(default_factory=list)


class Comparison(Reply):
    """A judge's marks from 0 (worthless) to 10 (could not be better) for the first and the second text."""

    first: float = Field(ge=0.0, le=10.0)
    second: float = Field(ge=0.0, le=10.0)
    rationale: str = ""

    @field_validator("first", "second", mode="before")
    @classmethod
    def _out_of_ten(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("must be a number from 0 to 10")
        if isinstance(value, str):
            return value.strip().removesuffix("/10").strip()
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("must be a finite number")
        return value
