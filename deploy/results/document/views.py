"""The parts of a document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import PlainSerializer, WrapSerializer

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.rounds.round_trace import RoundTrace
from moot.deploy.results.transcripts.views import AttemptCost, AttemptView, VerdictView
from moot.protocols.socrasynth.events import (
    AnswerCompared,
    LastWordsGiven,
    PanelJudged,
    PersonDecided,
    PositionsNamed,
    ProposalNegotiated,
    SidesClosed,
    SocraSynthRoundEnded,
    SocraSynthStopped,
    TopicsFixed,
)
from moot.protocols.socrasynth.sides import Topic

Letter = Literal["A", "B"]


class ArgumentView(FrozenModel):
    """An argument.

    Attributes:
        round: None for a closing statement.
        last_word: whether it was added after the last round.
        mended: whether the JSON of the reply that it stands in had to be mended to be read.
    """

    round: int | None
    last_word: bool = False
    side: Letter
    topic: str
    text: str
    mended: bool


class FailureView(FrozenModel):
    """An ask without a usable reply."""

    path: str
    role: str
    failure: str
    error: str


def _without(*fields: str) -> WrapSerializer:
    """Leaves fields of an event out of the document's JSON, whose keys stay as they are documented."""

    def serialize(event: Any, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in dump(event).items() if key not in fields}

    return WrapSerializer(serialize)


def _decision(event: PersonDecided) -> dict[str, str]:
    return {"path": event.path, "action": event.action, "text": event.text, "outcome": event.outcome}


class DebateDocument(AttemptView):
    """One debate on a subject.

    Attributes:
        open_answers: the list that the sides chose their answers from; empty where they argue for and against.
        positions: which they named; None where they argue for and against, and in records from before that was kept.
        facts: what is given; may be empty.
        gold: the label that the task's file calls right, never shown to a model; None without one.
        verdict: None while there is none; so for `stop`, `closing`, `joint`, `panel`. `versus` is None unless compared,
            `confirmed` unless both sides were asked whether that was all.
        topics: as they stood in the end, numbered as the panel does.
        dropped_topics: those that a person took off the list.
        topics_by: who had the last word on them: the moderator, which is a model, a person, or the protocol, which has
            one topic for a closed list.
        trace: the numbers of its rounds; None while there are none.
        arguments: everything said, by round, A before B, last words and closing statements at the end.
        failures: asks without a usable reply.
    """

    subject: str
    labels: list[str]
    open_answers: list[str]
    positions: Annotated[PositionsNamed, _without("held")] | None
    facts: str
    gold: str | None
    verdict: VerdictView | None
    agenda: TopicsFixed
    topics: list[Topic]
    dropped_topics: list[Topic]
    topics_by: Literal["moderator", "person", "protocol"]
    joint: Annotated[ProposalNegotiated, _without("drafted_by")] | None
    panel: PanelJudged | None
    versus: Annotated[AnswerCompared, _without("totals", "missing")] | None
    rounds: list[Annotated[SocraSynthRoundEnded, _without("agreement_words", "words")]]
    trace: RoundTrace | None
    confirmed: LastWordsGiven | None
    closing: Annotated[SidesClosed, _without("agreement_words")] | None
    stop: Annotated[SocraSynthStopped, _without("kappa", "finished", "conceded")] | None
    arguments: list[ArgumentView]
    moderation: list[Annotated[PersonDecided, PlainSerializer(_decision)]]
    failures: list[FailureView]
    cost: AttemptCost
