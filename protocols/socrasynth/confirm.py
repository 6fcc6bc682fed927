"""Before the closings: both sides confirm that they have presented all that they have, or say what is missing."""

from __future__ import annotations

from typing import Any

from moot.protocols.case import Case
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Event, Failure, Turn
from moot.protocols.socrasynth.debater_slots import debater_slots
from moot.protocols.socrasynth.replies import LastWord, TopicAddition
from moot.protocols.socrasynth.rounds import Rounds, decoding_at, note_concession
from moot.protocols.socrasynth.settings import SocraSynthSettings
from moot.protocols.socrasynth.sides import SIDES, Said, Side, by_title

CONFIRM = "socrasynth/confirm"

UNCONFIRMED = frozenset({"plateau", "max_rounds", "schedule-ended"})
"""Ends of the rounds that nobody has agreed to: both sides saying all, a refusal and a person need no confirmation."""


async def confirm(case: Case, floor: Floor, rounds: Rounds, settings: SocraSynthSettings) -> None:
    """Ask both sides at once whether that was all, where the rounds ended without their saying so.

    Paths `confirm/agent/I`. What a side adds stands in the transcript as a last argument; no round follows, and CRIT
    does not read it. What it adds although it has presented all is passed over: a weak model that is held to the schema
    fills the list with what it has said before, and later prompts would outgrow its context. Notes the event `confirm`:
    who confirmed, added what, conceded, or failed why, and how many additions were passed over; a concession is an
    event of its own, too.
    """
    if rounds.stop not in UNCONFIRMED:
        return
    turns = await floor.ask_all([_request(case, rounds, side, settings) for side in SIDES])
    failed = {turn.role: turn.kind for turn in turns if isinstance(turn, Failure)}
    heard = [(side, turn) for side, turn in zip(SIDES, turns, strict=True) if not isinstance(turn, Failure)]
    added = [_last_word(rounds, side, turn) for side, turn in heard]
    for side, turn in heard:
        if turn.reply.conceded:
            note_concession(floor, rounds, side, turn.path)
    rounds.positions.concede([side for side, turn in heard if turn.reply.conceded])
    rounds.said += [word for word in added if word.by_topic or word.conceded]
    presented: dict[str, bool | None] = {side.name: None for side in SIDES}
    data: dict[str, Any] = {
        "round": rounds.number,
        "topics": [topic.title for topic in rounds.topics],
        "presented_all": presented | {side.name: turn.reply.presented_all for side, turn in heard},
        "added": {word.side.name: list(word.by_topic) for word in added if word.by_topic},
        "passed_over": {side.name: len(over) for side, turn in heard if (over := _passed_over(turn))},
        "conceded": [word.side.name for word in added if word.conceded],
        "failed": failed,
    }
    floor.note(Event("confirm", "confirm", data))


def _request(case: Case, rounds: Rounds, side: Side, settings: SocraSynthSettings) -> Request[LastWord]:
    slots = debater_slots(case, rounds.topics, side, rounds.kappa, rounds.said, rounds.positions)
    decoding = decoding_at(rounds.kappa, settings)
    return Request(side.name, CONFIRM, slots, LastWord, f"confirm/{side.name}", decoding=decoding)


def _passed_over(turn: Turn[LastWord]) -> list[TopicAddition]:
    """What a side adds although it says that nothing is missing."""
    return turn.reply.additions if turn.reply.presented_all else []


def _last_word(rounds: Rounds, side: Side, turn: Turn[LastWord]) -> Said:
    counted = [] if turn.reply.presented_all else turn.reply.additions
    said = by_title([(one.topic, one.addition) for one in counted], rounds.topics)
    return Said(side, rounds.number, said, (), turn.reply.presented_all, turn.reply.conceded)
