"""Closing statements: where each side's case stands after all that was said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moot.protocols.agreement_language import agreement_share
from moot.protocols.case import Case
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Event, Failure
from moot.protocols.socrasynth.debater_slots import debater_slots
from moot.protocols.socrasynth.quality import appraise, appraise_topics
from moot.protocols.socrasynth.replies import Closing
from moot.protocols.socrasynth.rounds import Rounds, decoding_at
from moot.protocols.socrasynth.schedule import closing_level
from moot.protocols.socrasynth.settings import SocraSynthSettings
from moot.protocols.socrasynth.sides import SIDES, Side, by_title, last_words

CLOSING = "socrasynth/closing"

Statements = Mapping[Side, Mapping[str, str]]
"""Closing statements by side and title of their topic."""


async def close(case: Case, floor: Floor, rounds: Rounds, settings: SocraSynthSettings) -> tuple[Statements, list[str]]:
    """The closing statements of both sides, and the roles whose last arguments stand in for them.

    Paths `closing/agent/I`; a side that fails or declines is judged by its last argument on each topic. Notes the event
    `closing`: contentiousness, CRIT of each side, of each topic where configured, and who failed why.
    """
    kappa = closing_level(settings.schedule, rounds.kappa)
    turns = await floor.ask_all([_closing_request(case, rounds, side, kappa, settings) for side in SIDES])
    statements: dict[Side, dict[str, str]] = {}
    failed: dict[str, str] = {}
    for side, turn in zip(SIDES, turns, strict=True):
        if isinstance(turn, Failure):
            failed[side.name] = turn.kind
        elif said := by_title([(one.topic, one.statement) for one in turn.reply.statements], rounds.topics):
            statements[side] = said
        else:
            failed[side.name] = "declined" if turn.reply.declined else "off-topic"
        statements.setdefault(side, last_words(rounds.said, side, rounds.topics))
    texts = {side: "\n\n".join(f"{title}: {text}" for title, text in said.items()) for side, said in statements.items()}
    texts = {side: text for side, text in texts.items() if text}
    quality = await appraise(case, floor, texts, settings.crit, "crit/closing", rounds.positions)
    by_topic: dict[str, list[float | None]] = {}
    if settings.crit_topics:
        by_topic = await appraise_topics(
            case, floor, statements, rounds.topics, settings.crit, "crit/closing", rounds.positions
        )
    data: dict[str, Any] = {
        "kappa": kappa,
        "topics": [topic.title for topic in rounds.topics],
        "crit": quality.scores(),
        "crit_by_topic": by_topic,
        "gamma": quality.gamma,
        "agreement_words": agreement_share(texts.values()),
        "failed": failed,
    }
    floor.note(Event("closing", "closing", data))
    return statements, list(failed)


def _closing_request(
    case: Case, rounds: Rounds, side: Side, kappa: float, settings: SocraSynthSettings
) -> Request[Closing]:
    slots = debater_slots(case, rounds.topics, side, kappa, rounds.said, rounds.positions)
    decoding = decoding_at(kappa, settings)
    return Request(side.name, CLOSING, slots, Closing, f"closing/{side.name}", decoding=decoding)
