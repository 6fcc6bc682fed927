"""The topics of a debate as they stood in the end, after whatever a person made of the moderator's list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from moot.deploy.reading.document.views import AgendaView, ModerationView, TopicView
from moot.deploy.reading.transcripts.views import TurnView
from moot.protocols.socrasynth.agenda import without_repeats
from moot.protocols.socrasynth.moderation import EDIT_TOPICS, Unusable, read_topics
from moot.protocols.socrasynth.replies import Agenda
from moot.protocols.socrasynth.sides import Topic


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
