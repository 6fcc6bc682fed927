"""Agenda of a subject: both sides propose topics, both refine, the moderator fixes the list, a person may edit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from moot.protocols.case import Case, Image
from moot.protocols.errors import QuorumFailed
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure, Slots
from moot.protocols.socrasynth.debater_slots import ANSWER_TOPIC
from moot.protocols.socrasynth.events import SubjectBalance, TopicMerge, TopicsFixed
from moot.protocols.socrasynth.moderation import edit_topics
from moot.protocols.socrasynth.replies import Agenda, AgendaItem, Balance, Theme, Themes
from moot.protocols.socrasynth.settings import TopicSettings
from moot.protocols.socrasynth.sides import SIDES, Side, Topic, open_answers, other, subject_slots
from moot.protocols.text.folding import fold

BALANCE, THEMES, FIX = "socrasynth/balance", "socrasynth/themes", "socrasynth/agenda"

R = TypeVar("R", bound=BaseModel)

Proposals = Mapping[str, Sequence[Theme]]
"""Themes by the role that proposed them; none for a side whose proposal failed."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a debate.

    Attributes:
        topics: at least one, no two with the same title.
        flags: `fewer-topics` (the moderator's, whom no person corrected), `proposal-failed`, and `subject-unbalanced`
            (a side finds it so).
    """

    topics: tuple[Topic, ...]
    flags: tuple[str, ...] = ()


async def fix_topics(case: Case, floor: Floor, settings: TopicSettings) -> Topics:
    """The topics; on a closed list there is one fixed topic, the right answer, and no side is asked.

    Paths `topics/balance/agent/I` where configured, `topics/propose/agent/I`, `topics/refine/agent/I`,
    `topics/moderator`, `moderation/topics`.

    Notes the event `topics`: whether each side finds the subject balanced, if asked, what was proposed and refined, the
    list, what was merged or dropped, and who decided last.

    Raises:
        AskFailed: the moderator gave no usable list.
        QuorumFailed: neither side proposed anything.
    """
    if open_answers(case):
        floor.note(
            TopicsFixed(
                path="topics",
                proposed={},
                refined={},
                topics=[ANSWER_TOPIC],
                wanted=1,
                merged=[],
                dropped=[],
                by="protocol",
            )
        )
        return Topics((ANSWER_TOPIC,))
    balance = await _balance(case, floor) if settings.ask_balance else {}
    proposed = await _propose(case, floor, settings)
    refined = await _refine(case, floor, settings, proposed)
    slots = subject_slots(case, ()) | {"themes": _tagged(refined), "count": settings.count}
    turn = await floor.ask("moderator/0", FIX, slots, reply=Agenda, path="topics/moderator")
    fixed, merged, dropped = without_repeats(turn.reply.topics, settings.count)
    unbalanced = [
        f"{role} finds the subject unbalanced: {reply.why}" for role, reply in balance.items() if not reply.balanced
    ]
    topics = await edit_topics(floor, fixed, unbalanced, path="moderation/topics")
    noted = TopicsFixed(
        path="topics",
        proposed=_as_topics(proposed),
        refined=_as_topics(refined),
        topics=list(topics),
        wanted=settings.count,
        merged=merged,
        dropped=dropped,
        by="moderator" if topics == fixed else "person",
    )
    if settings.ask_balance:
        found = {role: SubjectBalance(balanced=reply.balanced, why=reply.why) for role, reply in balance.items()}
        noted = noted.model_copy(update={"balance": found})
    floor.note(noted)
    # A person may edit the list to any number of topics.
    raised = {
        "subject-unbalanced": bool(unbalanced),
        "proposal-failed": len(proposed) < len(SIDES),
        "fewer-topics": topics == fixed and len(topics) < settings.count,
    }
    return Topics(topics, tuple(flag for flag, is_so in raised.items() if is_so))


def _request(
    case: Case, side: Side, template: str, reply: type[R], step: str, slots: Slots, images: Sequence[Image] = ()
) -> Request[R]:
    filled = subject_slots(case, ()) | {"side": side.letter, "stance": side.stance, **slots}
    return Request(side.name, template, filled, reply, f"topics/{step}/{side.name}", images=images)


async def _balance(case: Case, floor: Floor) -> dict[str, Balance]:
    """Whether each role calls the subject balanced; failed sides are excluded."""
    turns = await floor.ask_all([_request(case, side, BALANCE, Balance, "balance", {}, case.images) for side in SIDES])
    return {turn.role: turn.reply for turn in turns if not isinstance(turn, Failure)}


async def _propose(case: Case, floor: Floor, settings: TopicSettings) -> dict[str, list[Theme]]:
    slots: Slots = {"count": settings.proposed, "own": [], "others": []}
    turns = await floor.ask_all([_request(case, side, THEMES, Themes, "propose", slots, case.images) for side in SIDES])
    found = {turn.role: turn.reply.themes for turn in turns if not isinstance(turn, Failure)}
    if not found:
        why = "; ".join(f"{turn.path}: {turn.kind}" for turn in turns if isinstance(turn, Failure))
        raise QuorumFailed(f"neither side proposed a topic ({why})")
    return found


async def _refine(case: Case, floor: Floor, settings: TopicSettings, proposed: Proposals) -> dict[str, list[Theme]]:
    """Each side's list after seeing both; a side that fails keeps its proposal."""
    shown = {side.name: [theme.model_dump() for theme in proposed.get(side.name, ())] for side in SIDES}
    requests = []
    for side in SIDES:
        slots = {"count": settings.count, "own": shown[side.name], "others": shown[other(side).name]}
        requests.append(_request(case, side, THEMES, Themes, "refine", slots))
    turns = await floor.ask_all(requests)
    found = {side.name: list(proposed.get(side.name, ())) for side in SIDES}
    found |= {turn.role: turn.reply.themes for turn in turns if not isinstance(turn, Failure)}
    return {name: themes for name, themes in found.items() if themes}


def _tagged(proposals: Proposals) -> list[dict[str, str]]:
    return [
        {"tag": f"{side.letter}{number}", **theme.model_dump()}
        for side in SIDES
        for number, theme in enumerate(proposals.get(side.name, ()), start=1)
    ]


def without_repeats(items: Sequence[AgendaItem], count: int) -> tuple[tuple[Topic, ...], list[TopicMerge], list[str]]:
    """The first `count` topics with distinct titles; the merged topics; titles of those beyond `count`.

    A repeated title is merged into its first appearance, visibly, and not replaced by another.
    """
    first: dict[str, AgendaItem] = {}
    merged: list[TopicMerge] = []
    for item in items:
        known = first.setdefault(fold(item.title), item)
        if known is not item:
            merged.append(TopicMerge(into=known.title, sources=[item.title]))
        elif len(item.merges) > 1:
            merged.append(TopicMerge(into=item.title, sources=item.merges))
    kept = list(first.values())
    topics = tuple(Topic(item.title, item.description.strip()) for item in kept[:count])
    return topics, merged, [item.title for item in kept[count:]]


def _as_topics(proposals: Proposals) -> dict[str, list[Topic]]:
    return {role: [Topic(theme.title, theme.description) for theme in themes] for role, themes in proposals.items()}
