"""From a transcript to a document, where the debate was one on a subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from moot.deploy.reading.document.views import (
    AgendaView,
    ArgumentView,
    ClosingView,
    ConfirmView,
    Document,
    FailureView,
    JointView,
    ModerationView,
    PanelView,
    PositionsView,
    RoundView,
    StopView,
    TopicView,
    VersusView,
)
from moot.deploy.reading.document.words import SIDE
from moot.deploy.reading.frozen import Frozen
from moot.deploy.reading.text import natural
from moot.deploy.reading.transcripts.views import EventView, Transcript, TurnView
from moot.protocols.case import Case
from moot.protocols.socrasynth.agenda import without_repeats
from moot.protocols.socrasynth.moderation import EDIT_TOPICS, Unusable, read_topics
from moot.protocols.socrasynth.replies import Agenda
from moot.protocols.socrasynth.sides import Topic, open_answers

V = TypeVar("V", bound=Frozen)

_ONCE = frozenset({"topics", "joint", "panel", "versus", "confirm", "closing", "stop", "positions"})


def document_of(debate: Transcript) -> Document | None:
    """The debate as a document; None when its topics are not on record as SocraSynth notes them.

    None, too, when another protocol has noted events of the same names that do not fit.
    """
    events = [event for section in debate.sections for event in section.events]
    turns = {turn.path: turn for section in debate.sections for turn in section.turns if not turn.superseded}
    once = {event.kind: event.data for event in events if event.kind in _ONCE and event.path == event.kind}
    if "topics" not in once:
        return None
    try:
        return _document(debate, events, turns, once)
    except ValidationError:
        return None


def _document(
    debate: Transcript,
    events: Iterable[EventView],
    turns: Mapping[str, TurnView],
    once: Mapping[str, Mapping[str, Any]],
) -> Document:
    rounds = [RoundView.model_validate(event.data) for event in _ordered(events, "round")]
    confirmed = _view(ConfirmView, once.get("confirm"))
    closing = _view(ClosingView, once.get("closing"))
    agenda = AgendaView.model_validate(once["topics"])
    moderation = [
        ModerationView.model_validate({**event.data, "path": event.path}) for event in _ordered(events, "moderation")
    ]
    argued = [held.topics for held in rounds]
    closed = closing.topics if closing is not None else None
    topics = final_topics(agenda, turns.get("topics/moderator"), argued, closed, moderation)
    return Document(
        schema_version=debate.schema_version,
        run=debate.run,
        simulated=debate.simulated,
        case_id=debate.case_id,
        attempt=debate.attempt,
        attempts=debate.attempts,
        state=debate.state,
        subject=debate.question,
        labels=debate.labels,
        open_answers=_open_answers(debate),
        positions=_view(PositionsView, once.get("positions")),
        facts=debate.passage,
        gold=debate.gold,
        verdict=debate.verdict,
        agenda=agenda,
        topics=topics.topics,
        dropped_topics=topics.dropped,
        topics_by="person" if topics.edited else "protocol" if agenda.by == "protocol" else "moderator",
        joint=_view(JointView, once.get("joint")),
        panel=_view(PanelView, once.get("panel")),
        versus=_view(VersusView, once.get("versus")),
        rounds=rounds,
        trace=debate.trace,
        confirmed=confirmed,
        closing=closing,
        stop=_view(StopView, once.get("stop")),
        arguments=[*_argued(rounds, turns), *_added(confirmed, turns), *_closed(closing, turns)],
        moderation=moderation,
        failures=[
            FailureView(path=turn.path, role=turn.role, failure=turn.failure, error=turn.error)
            for turn in turns.values()
            if turn.outcome == "failed"
        ],
        cost=debate.cost,
    )


def _open_answers(debate: Transcript) -> list[str]:
    case = Case(
        id=debate.case_id,
        question=debate.question,
        labels=tuple(debate.labels) or None,
        choices=tuple(debate.choices),
        aliases=tuple(map(tuple, debate.aliases)),
    )
    return list(open_answers(case))


def _view(kind: type[V], data: Mapping[str, Any] | None) -> V | None:
    return None if data is None else kind.model_validate(data)


def _ordered(events: Iterable[EventView], kind: str) -> list[EventView]:
    """Events of a kind as they came: what was done to the topics beforehand, then round by round."""
    found = [event for event in events if event.kind == kind]
    return sorted(found, key=lambda event: ("/round/" in event.path, natural(event.path)))


def _argued(rounds: Iterable[RoundView], turns: Mapping[str, TurnView]) -> Iterable[ArgumentView]:
    for held in rounds:
        for role in SIDE:
            turn = turns.get(f"round/{held.round}/{role}")
            yield from _arguments(turn, role, "argument", held.topics, round=held.round)


def _added(confirmed: ConfirmView | None, turns: Mapping[str, TurnView]) -> Iterable[ArgumentView]:
    """What a side added; what it added although it had presented all was passed over."""
    if confirmed is None:
        return
    for role in [role for role in SIDE if role in confirmed.added]:
        turn = turns.get(f"confirm/{role}")
        yield from _arguments(turn, role, "addition", confirmed.topics, round=confirmed.round, last_word=True)


def _closed(closing: ClosingView | None, turns: Mapping[str, TurnView]) -> Iterable[ArgumentView]:
    for role in SIDE if closing is not None else ():
        assert closing is not None
        yield from _arguments(turns.get(f"closing/{role}"), role, "statement", closing.topics, round=None)


def _arguments(
    turn: TurnView | None, role: str, what: str, topics: list[str], *, round: int | None, last_word: bool = False
) -> Iterable[ArgumentView]:
    """What a reply says, topic by topic."""
    mended = turn is not None and turn.outcome == "repaired"
    for title, text in _told(turn, what, topics):
        yield ArgumentView(round=round, last_word=last_word, side=SIDE[role], topic=title, text=text, mended=mended)


def _told(turn: TurnView | None, what: str, topics: list[str]) -> Iterable[tuple[str, str]]:
    """Title and text of what a reply says on each topic."""
    told = (turn.data or {}).get(f"{what}s") if turn is not None else None
    for one in told if isinstance(told, list) else ():
        number, text = (one.get("topic"), one.get(what)) if isinstance(one, dict) else (None, None)
        if isinstance(number, int) and 1 <= number <= len(topics) and isinstance(text, str):
            yield topics[number - 1], text


@dataclass(frozen=True, slots=True)
class FinalTopics:
    """What became of the topics.

    Attributes:
        topics: in the panel's order.
        dropped: those that a person took off the list, whether they had been argued or not.
        edited: whether the last word was a person's.
    """

    topics: list[TopicView]
    dropped: list[TopicView]
    edited: bool


def final_topics(
    agenda: AgendaView,
    moderator: TurnView | None,
    argued: Sequence[Sequence[str]],
    closed: Sequence[str] | None,
    moderation: Iterable[ModerationView],
) -> FinalTopics:
    """The topics in the end, with what they were described as.

    Args:
        moderator: its reply with the list that a person may have edited.
        argued: titles by round.
        closed: titles of the closing statements; None while there are none.
        moderation: what a person did, in order.
    """
    edits = [one for one in moderation if one.used and one.action == EDIT_TOPICS]
    listed = [_fixed(moderator, agenda.wanted), agenda.topics]
    for edit in edits:
        listed.append(_edited(edit.text, listed[-1]))
    described = {topic.title: topic for topics in listed for topic in topics}
    titles = list(closed) if closed is not None else [topic.title for topic in listed[-1]]
    ever = dict.fromkeys(
        [*(topic.title for topics in listed[:2] for topic in topics), *(t for each in argued for t in each)]
    )
    return FinalTopics(
        topics=[described.get(title, TopicView(title=title)) for title in titles],
        dropped=[described.get(title, TopicView(title=title)) for title in ever if title not in titles],
        edited=bool(edits) or agenda.by == "person",
    )


def _fixed(moderator: TurnView | None, wanted: int) -> list[TopicView]:
    """The moderator's list before a person saw it; empty where its reply cannot be read."""
    try:
        reply = Agenda.model_validate(moderator.data if moderator is not None else None)
    except ValidationError:
        return []
    return _views(without_repeats(reply.topics, wanted)[0])


def _edited(text: str, before: Iterable[TopicView]) -> list[TopicView]:
    """The topics after an edit, read as the protocol has read it."""
    known = [Topic(topic.title, topic.description) for topic in before]
    try:
        return _views(read_topics(text, known))
    except Unusable:
        return _views(known)


def _views(topics: Iterable[Topic]) -> list[TopicView]:
    return [TopicView(title=topic.title, description=topic.description) for topic in topics]
