"""Document of a debate on a subject, from its transcript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from moot.deploy.results.document.views import ArgumentView, DebateDocument, FailureView, Letter
from moot.deploy.results.document.words import SIDE
from moot.deploy.results.text import natural_sort_key
from moot.deploy.results.transcripts.views import EventView, Transcript, TurnView
from moot.protocols.case import Case
from moot.protocols.events import DebateEvent
from moot.protocols.socrasynth.agenda import without_repeats
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
from moot.protocols.socrasynth.moderation import EDIT_TOPICS, UnusableInput, read_topics
from moot.protocols.socrasynth.replies import Agenda
from moot.protocols.socrasynth.sides import Topic, open_answers

_ONCE: dict[str, type[DebateEvent]] = {
    event.kind: event
    for event in (
        TopicsFixed,
        PositionsNamed,
        SocraSynthStopped,
        LastWordsGiven,
        SidesClosed,
        ProposalNegotiated,
        PanelJudged,
        AnswerCompared,
    )
}
"""Events that a debate has once, with their kind as the path."""


def build_document(debate: Transcript) -> DebateDocument | None:
    """Document of a debate; None without SocraSynth's `topics` event.

    It is also None if another protocol recorded events of the same kinds in another form.
    """
    events = [event for section in debate.sections for event in section.events]
    turns = {turn.path: turn for section in debate.sections for turn in section.turns if not turn.superseded}
    data = {event.kind: event.data for event in events if event.kind in _ONCE and event.path == event.kind}
    if "topics" not in data:
        return None
    try:
        once = {kind: shape.model_validate(data[kind], extra="ignore") for kind, shape in _ONCE.items() if kind in data}
        return _document(debate, events, turns, once)
    except ValidationError:
        return None


def _document(
    debate: Transcript, events: Iterable[EventView], turns: Mapping[str, TurnView], once: Mapping[str, Any]
) -> DebateDocument:
    rounds = [SocraSynthRoundEnded.model_validate(event.data, extra="ignore") for event in _ordered(events, "round")]
    agenda, closing = once["topics"], once.get("closing")
    moderation = [
        PersonDecided.model_validate({**event.data, "path": event.path}, extra="ignore")
        for event in _ordered(events, "moderation")
    ]
    argued = [ended.topics for ended in rounds]
    closed = closing.topics if closing is not None else None
    topics, dropped, edited = final_topics(agenda, turns.get("topics/moderator"), argued, closed, moderation)
    failed = [turn for turn in turns.values() if turn.outcome == "failed"]
    common = DebateDocument.model_fields.keys() & Transcript.model_fields.keys()
    copied: dict[str, Any] = {name: getattr(debate, name) for name in common}
    copied |= {name: once.get(name) for name in ("positions", "joint", "panel", "versus", "stop")}
    return DebateDocument(
        **copied,
        subject=debate.question,
        open_answers=_open_answers(debate),
        facts=debate.passage,
        agenda=agenda,
        topics=topics,
        dropped_topics=dropped,
        topics_by="person" if edited else "protocol" if agenda.by == "protocol" else "moderator",
        rounds=rounds,
        confirmed=once.get("confirm"),
        closing=closing,
        arguments=list(_arguments(rounds, once.get("confirm"), closing, turns)),
        moderation=moderation,
        failures=[FailureView(path=t.path, role=t.role, failure=t.failure, error=t.error) for t in failed],
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


def _ordered(events: Iterable[EventView], kind: str) -> list[EventView]:
    """Events of a kind in order: edits of the topics before the debate, then by round."""
    found = [event for event in events if event.kind == kind]
    return sorted(found, key=lambda event: ("/round/" in event.path, natural_sort_key(event.path)))


def _arguments(
    rounds: Iterable[SocraSynthRoundEnded],
    confirmed: LastWordsGiven | None,
    closing: SidesClosed | None,
    turns: Mapping[str, TurnView],
) -> Iterable[ArgumentView]:
    """Arguments of the sides, by round; an addition that the protocol did not accept is excluded."""
    steps = [(f"round/{ended.round}", "argument", ended.topics, ended.round, SIDE) for ended in rounds]
    if confirmed is not None:
        added = {role: letter for role, letter in SIDE.items() if role in confirmed.added}
        steps.append(("confirm", "addition", confirmed.topics, confirmed.round, added))
    for step, field, topics, round_number, sides in steps:
        for role, letter in sides.items():
            yield from _argued(turns.get(f"{step}/{role}"), letter, field, topics, round_number)
    for role, letter in SIDE.items() if closing is not None else ():
        assert closing is not None
        yield from _argued(turns.get(f"closing/{role}"), letter, "statement", closing.topics, None)


def _argued(
    turn: TurnView | None, side: Letter, field: str, topics: list[str], round_number: int | None
) -> Iterable[ArgumentView]:
    """Arguments of a reply, by topic; `field` is their name in the reply, in the singular."""
    if turn is None:
        return
    entries = (turn.data or {}).get(f"{field}s")
    common = {
        "round": round_number,
        "last_word": field == "addition",
        "side": side,
        "mended": turn.outcome == "repaired",
    }
    for one in entries if isinstance(entries, list) else ():
        number, text = (one.get("topic"), one.get(field)) if isinstance(one, dict) else (None, None)
        if isinstance(number, int) and 1 <= number <= len(topics) and isinstance(text, str):
            yield ArgumentView.model_validate({**common, "topic": topics[number - 1], "text": text})


def final_topics(
    agenda: TopicsFixed,
    moderator: TurnView | None,
    argued: Sequence[Sequence[str]],
    closed: Sequence[str] | None,
    moderation: Iterable[PersonDecided],
) -> tuple[list[Topic], list[Topic], bool]:
    """Final topics in the panel's order, topics that a person removed, and whether a person decided last.

    Args:
        agenda: the event of the topics.
        moderator: the moderator's reply with its list of topics; None without one.
        argued: titles by round.
        closed: titles of the closing statements; None without any.
        moderation: a person's decisions, in order.
    """
    edits = [one for one in moderation if one.used and one.action == EDIT_TOPICS]
    listed = [_before_edits(moderator, agenda.wanted), agenda.topics]
    for edit in edits:
        listed.append(_edited(edit.text, listed[-1]))
    described = {topic.title: topic for topics in listed for topic in topics}
    titles = list(closed) if closed is not None else [topic.title for topic in listed[-1]]
    all_titles = dict.fromkeys(
        [*(topic.title for topics in listed[:2] for topic in topics), *(t for each in argued for t in each)]
    )
    final = [described.get(title, Topic(title)) for title in titles]
    dropped = [described.get(title, Topic(title)) for title in all_titles if title not in titles]
    return final, dropped, bool(edits) or agenda.by == "person"


def _before_edits(moderator: TurnView | None, wanted: int) -> list[Topic]:
    """Topics of the moderator before a person's edits; empty if its reply cannot be read."""
    try:
        reply = Agenda.model_validate(moderator.data if moderator is not None else None)
    except ValidationError:
        return []
    return list(without_repeats(reply.topics, wanted)[0])


def _edited(text: str, before: list[Topic]) -> list[Topic]:
    """Topics after an edit, parsed as the protocol parses it; unchanged if it cannot be parsed."""
    try:
        return list(read_topics(text, before))
    except UnusableInput:
        return before
