"""Agents D and E: two debaters in turn, until both have the same stance or no turns remain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from moot.protocols.ceda.events import Stage, StanceTaken
from moot.protocols.ceda.evidence_split import DEBATERS
from moot.protocols.ceda.replies import MessageReply
from moot.protocols.ceda.slots import debater_slots
from moot.protocols.ceda.stance import ClaimMessage, about_what, is_consensus, relation_of, stance_of
from moot.protocols.ceda.state import CedaState, StateContent, next_state, state_event
from moot.protocols.floor import Floor


class StateHistory:
    """Keeps the last version of the state; notes an event `state` for each.

    Args:
        floor: of the debate.
        first: content of the first version, which is the user's.
    """

    def __init__(self, floor: Floor, first: StateContent) -> None:
        self._floor = floor
        self._last = self._noted(next_state(None, "initial", "user", first), first)

    @property
    def content(self) -> StateContent:
        """Content of the current version."""
        return self._last.content

    def add(self, stage: Stage, by: str, added: StateContent) -> None:
        """Advance to the next version."""
        self._last = self._noted(next_state(self._last, stage, by, added), added)

    def _noted(self, state: CedaState, added: StateContent) -> CedaState:
        self._floor.note(state_event(state, added))
        return state


DEBATER = "ceda/debater"

Ending = Literal["consensus", "max turns"]


async def debate(floor: Floor, versions: StateHistory, *, max_turns: int) -> Ending:
    """Run the debate, adding every message to the state; notes an event `stance` for each.

    Raises:
        AskFailed: a debater's reply failed.
    """
    for turn in range(1, max_turns + 1):
        debater = DEBATERS[(turn - 1) % 2]
        message = await _speak(floor, versions.content, debater, turn)
        versions.add("intermediate", debater, StateContent(debate=(message,)))
        agreed = is_consensus(versions.content.debate)
        position = message.model_dump(exclude={"text"})  # the text is in the turns
        floor.note(StanceTaken(**position, consensus=agreed, path=f"turn/{turn}/stance"))
        if agreed:
            return "consensus"
    return "max turns"


async def _speak(floor: Floor, content: StateContent, debater: str, turn: int) -> ClaimMessage:
    slots = debater_slots(content, debater)
    answered = await floor.ask(debater, DEBATER, slots, reply=MessageReply, path=f"turn/{turn}")
    return claim_message_of(answered.reply, content.debate, debater)


def claim_message_of(reply: MessageReply, before: Sequence[ClaimMessage], debater: str) -> ClaimMessage:
    """Message of a reply, given the previous ones; its stance is the stated one, else the implied one."""
    text, of = reply.text.strip(), about_what(before)
    says = reply.says or relation_of(text)
    implied = stance_of(says, of, before[-1].stance if before else None)
    stance = implied if reply.stance is None else None if reply.stance == "unclear" else reply.stance
    return ClaimMessage(
        turn=len(before) + 1,
        debater=debater,
        text=text,
        says=says,
        of=of,
        stance=stance,
        stated=reply.stance is not None,
        implied=implied,
    )
