"""What the sides, the moderator and the judges of a debate reply."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from moot.protocols.labels import fold
from moot.protocols.replies import Reply


def _on_one_line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


def _of_words(title: str) -> str:
    if not fold(title):
        raise ValueError("says nothing: a title needs at least a word")
    return title


Title = Annotated[str, Field(min_length=1), BeforeValidator(_on_one_line), AfterValidator(_of_words)]
"""A title: single spaces, no line breaks, and more than marks, for titles are told apart by `fold`."""


class Theme(Reply):
    """A theme that a side proposes for debate."""

    title: Title
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


def _number(value: Any) -> Any:
    """The number in `Topic 2` or `2. Trade`; anything else as it is."""
    found = re.search(r"\d{1,3}", value) if isinstance(value, str) else None
    return int(found[0]) if found else value


TopicNumber = Annotated[int, BeforeValidator(_number)]
"""A topic's number in the list, counted from 1."""


class TopicArgument(Reply):
    """An argument on one topic."""

    topic: TopicNumber
    argument: str = Field(min_length=1)


class Speech(Reply):
    """What a side says in a round: one argument per topic, that it concedes, or that it declines to argue its side.

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
        if not (self.declined or self.conceded or self.arguments):
            raise ValueError("`arguments` is empty although `declined` and `conceded` are false")
        return self


class LastWord(Reply):
    """Whether a side has presented all that it has, and what it adds if it has not.

    Attributes:
        presented_all: there was nothing left to say.
        conceded: it now takes the other side to be right.
    """

    presented_all: bool
    arguments: list[TopicArgument] = Field(default_factory=list)
    conceded: bool = False

    @model_validator(mode="after")
    def _adds_what_is_missing(self) -> LastWord:
        if not (self.presented_all or self.conceded or self.arguments):
            raise ValueError("`arguments` is empty although `presented_all` and `conceded` are false")
        return self


class TopicStatement(Reply):
    """A closing statement on one topic."""

    topic: TopicNumber
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
