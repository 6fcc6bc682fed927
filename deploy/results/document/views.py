"""Data models of a document."""

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
    """Argument of a side on a topic.

    Attributes:
        round: number of the round, 0 for the opening; None for a closing statement.
        last_word: whether it was added after the last round.
        mended: whether the JSON of its reply was repaired.
    """

    round: int | None
    last_word: bool = False
    side: Letter
    topic: str
    text: str
    mended: bool


class FailureView(FrozenModel):
    """Failed ask: one without a usable reply."""

    path: str
    role: str
    failure: str
    error: str


def _without(*fields: str) -> WrapSerializer:
    """Serializer that excludes fields of an event from the document's JSON, so that its documented keys stay."""

    def serialize(event: Any, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in dump(event).items() if key not in fields}

    return WrapSerializer(serialize)


def _decision(event: PersonDecided) -> dict[str, str]:
    return {"path": event.path, "action": event.action, "text": event.text, "outcome": event.outcome}


class DebateDocument(AttemptView):
    """Document of a debate on a subject.

    Attributes:
        subject: the case's question.
        open_answers: the closed list of answers; empty where the sides argue for and against.
        positions: the answers that the sides named; None where they argue for and against, and in older records.
        facts: given facts; may be empty.
        gold: the gold label, never shown to a model; None without one.
        verdict, stop, closing, joint, panel: None until the debate has reached that step.
        versus: comparison with a single answer; None without one.
        confirmed: None unless both sides were asked whether they had presented all their arguments.
        topics: the final topics, in the panel's order.
        dropped_topics: topics that a person removed.
        topics_by: source of the final topics: the moderator (a model), a person, or the protocol, which has one topic
            for a closed list.
        trace: figures of the rounds; None without any.
        arguments: all arguments, by round, A before B; last words and closing statements are at the end.
        failures: failed asks.
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
