"""Reply types of the sides, the moderator and the judges of a debate."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from moot.protocols.asked_lengths import asked
from moot.protocols.marks import Mark, Marked
from moot.protocols.replies import Reply
from moot.protocols.reply_limits import case_label, longest, most, sized_by
from moot.protocols.text.folding import fold


def _on_one_line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


def _of_words(title: str) -> str:
    if not fold(title):
        raise ValueError("says nothing: a title needs at least a word")
    return title


Title = Annotated[
    str, Field(min_length=1, json_schema_extra=asked("title")), BeforeValidator(_on_one_line), AfterValidator(_of_words)
]
"""A title: single spaces, no line breaks, and more than marks, for titles are compared by `fold`."""


class Balance(Reply):
    """Whether a side finds the subject balanced: whether both sides can argue about it."""

    why: str = Field(default="", json_schema_extra=asked("rationale"))
    balanced: bool


class Theme(Reply):
    """A theme that a side proposes for debate."""

    title: Title
    description: str = Field(default="", json_schema_extra=asked("description"))


class Themes(Reply):
    """A side's proposal."""

    themes: list[Theme] = Field(min_length=1, json_schema_extra=most(10, "count"))


Tag = Annotated[str, Field(json_schema_extra=longest(4))]


class AgendaItem(Theme):
    """A topic of the moderator's list, and the tags (`A1`, `B3`) of the proposals that went into it."""

    merges: list[Tag] = Field(default_factory=list, json_schema_extra=most(6, "themes"))


class Agenda(Reply):
    """The moderator's list of topics."""

    topics: list[AgendaItem] = Field(min_length=1, json_schema_extra=most(10, "count"))


def _number(value: Any) -> Any:
    """The number in `Topic 2` or `2. Trade`; anything else as it is."""
    found = re.search(r"\d{1,3}", value) if isinstance(value, str) else None
    return int(found[0]) if found else value


TopicNumber = Annotated[
    int,
    BeforeValidator(_number),
    Field(json_schema_extra={"minimum": 1, "maximum": 20} | sized_by("topics")),
]
"""A topic's number in the list, counted from 1."""


def _not_declined(value: Any, said: str) -> Any:
    """A reply that declines and speaks all the same, as one that does not decline."""
    return {**value, "declined": False} if isinstance(value, dict) and value.get(said) else value


class TopicArgument(Reply):
    """An argument on one topic."""

    topic: TopicNumber
    argument: str = Field(min_length=1, json_schema_extra=asked("argument"))


class Opening(Reply):
    """What a side opens with: one argument per topic, or that it declines to argue its side.

    A side that argues has not declined, whatever it says of that.
    """

    arguments: list[TopicArgument] = Field(default_factory=list, json_schema_extra=most(10, "topics"))
    declined: bool = False

    @model_validator(mode="before")
    @classmethod
    def _argues_or_declines(cls, value: Any) -> Any:
        return _not_declined(value, "arguments")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not (self.declined or self.arguments):
            raise ValueError("`arguments` is empty although `declined` is false")
        return self


Named = Annotated[str, Field(min_length=1, json_schema_extra=case_label())]
"""One of the case's labels."""


class Answered(Reply):
    """A reply that begins with the answer that its side argues for."""

    answer: Named


class LabelledOpening(Opening, Answered):
    """An opening on a closed list: the answer that the side holds likeliest, and its arguments for it.

    The answer comes first: it is what each argument defends, as `for` and `against` are on a subject.
    """


class Speech(Opening):
    """What a side says in a round: one argument per topic, that it concedes, or that it declines to argue its side.

    Attributes:
        finished: it has said all that it has to say.
        conceded: it now takes the other side to be right.
    """

    finished: bool = False
    conceded: bool = False

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not (self.declined or self.conceded or self.arguments):
            raise ValueError("`arguments` is empty although `declined` and `conceded` are false")
        return self


class TopicAddition(Reply):
    """What has not been said yet on one topic."""

    topic: TopicNumber
    addition: str = Field(min_length=1, json_schema_extra=asked("addition"))


class LastWord(Reply):
    """Whether a side has presented all that it has, and what it adds if it has not.

    What it adds although it had presented all stays in the reply; `confirm` passes it over.

    Attributes:
        presented_all: there was nothing left to say.
        conceded: it now takes the other side to be right.
    """

    additions: list[TopicAddition] = Field(default_factory=list, json_schema_extra=most(10, "topics"))
    presented_all: bool
    conceded: bool = False

    @model_validator(mode="after")
    def _adds_what_is_missing(self) -> LastWord:
        if not (self.presented_all or self.conceded or self.additions):
            raise ValueError("`additions` is empty although `presented_all` and `conceded` are false")
        return self


class TopicStatement(Reply):
    """A closing statement on one topic."""

    topic: TopicNumber
    statement: str = Field(min_length=1, json_schema_extra=asked("statement"))


class Closing(Reply):
    """A side's closing statements, or that it declines to close; with a statement it has not declined."""

    statements: list[TopicStatement] = Field(default_factory=list, json_schema_extra=most(10, "topics"))
    declined: bool = False

    @model_validator(mode="before")
    @classmethod
    def _closes_or_declines(cls, value: Any) -> Any:
        return _not_declined(value, "statements")

    @model_validator(mode="after")
    def _says_something(self) -> Closing:
        if not (self.declined or self.statements):
            raise ValueError("`statements` is empty although `declined` is false")
        return self


Point = Annotated[str, Field(json_schema_extra=asked("point"))]
Sentence = Annotated[str, Field(json_schema_extra=asked("one_sentence"))]


class Draft(Reply):
    """A proposal for a decision: its points, and what should be found out next."""

    points: list[Point] = Field(min_length=1, json_schema_extra=asked("points"))
    questions: list[Sentence] = Field(default_factory=list, json_schema_extra=asked("questions"))


AnswerPoint = Annotated[str, Field(json_schema_extra=asked("statement"))]


class SingleAnswer(Reply):
    """One model's answer to the subject, without a debate: as many arguments as a debate has topics by default, each as
    long as a side's closing statement on one."""

    points: list[AnswerPoint] = Field(min_length=1, json_schema_extra=asked("answer_points"))


class Amendment(Draft):
    """A draft as the other side would have it, and whether that side stands behind it."""

    reservations: list[Sentence] = Field(default_factory=list, json_schema_extra=asked("reservations"))
    consents: bool


class LabelledDraft(Draft):
    """A draft on a closed list: its points, what should be found out next, and the answer that follows from them."""

    answer: Named


class LabelledAmendment(Amendment):
    """An amended draft on a closed list, with the answer as the other side would have it."""

    answer: Named


class Consent(Reply):
    """Whether a side stands behind an amended proposal."""

    reservations: list[Sentence] = Field(default_factory=list, json_schema_extra=asked("reservations"))
    consents: bool


Heard = Annotated[list[Sentence], Field(json_schema_extra=asked("heard"))]


class TopicMarks(Marked):
    """Marks from 0 to 10 for the first and the second debater on one topic."""

    marks: ClassVar[tuple[str, ...]] = ("first", "second")

    topic: TopicNumber
    first: Mark
    second: Mark


class WholeComparison(Reply):
    """A judge's reading of all closing statements (the source's appendix 6.D).

    Attributes:
        claim: what the first debater argues for.
        arguments: the first debater's; `counterarguments`: the second's.
        rationale: of the whole.
        marks: one pair per topic.
    """

    claim: str = Field(default="", json_schema_extra=longest(200))
    arguments: Heard = Field(default_factory=list)
    counterarguments: Heard = Field(default_factory=list)
    rationale: str = Field(default="", json_schema_extra=asked("overall"))
    marks: list[TopicMarks] = Field(min_length=1, json_schema_extra=most(10, "topics"))


class TopicComparison(Marked):
    """What made the difference between two texts on one topic, and marks from 0 to 10 for the first and the second."""

    marks: ClassVar[tuple[str, ...]] = ("first", "second")

    topic: TopicNumber
    rationale: str = Field(default="", json_schema_extra=asked("one_sentence"))
    first: Mark
    second: Mark


class AnswerComparison(Reply):
    """A judge's comparison of a debate with a single answer, topic by topic as in the source's appendix 6.E."""

    marks: list[TopicComparison] = Field(min_length=1, json_schema_extra=most(10, "topics"))


class Comparison(Marked):
    """A judge's marks from 0 (worthless) to 10 (could not be better) for the first and the second text."""

    marks: ClassVar[tuple[str, ...]] = ("first", "second")

    rationale: str = Field(default="", json_schema_extra=asked("rationale"))
    first: Mark
    second: Mark
