"""Protocol with one reply that all cases share."""

from __future__ import annotations

from moot.protocols.case import Case
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Verdict
from moot.protocols.replies import Position


class Shared:
    """Answers every case by one shared description."""

    roles = ("agent",)

    async def run(self, case: Case, floor: Floor) -> Verdict:
        slots = {"question": "What is seen?", "passage": "", "labels": [], "choices": [], "title": ""}
        wanted = Request("agent/0", "selene/opening", slots, Position, "picture")
        turn = await floor.shared("the picture", wanted)
        return Verdict(answer=None, how="shared", payload={"said": turn.text})
