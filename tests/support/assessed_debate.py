"""Protocol whose replies are assessed by a stub of the judge panel: the scores are a function of the text."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from moot.actors.agent.roles import RoleBinding
from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case, case_slots
from moot.protocols.errors import QuorumFailed
from moot.protocols.floor import Floor
from moot.protocols.messages import Event, Turn, Verdict
from moot.protocols.replies import Position

DIMENSIONS = ("instruction following", "justification quality", "evidence grounding")


def found(turn: Turn[Any], domain: str) -> dict[str, Any]:
    """Assessment of a reply by two judges: one in seven is flagged by one judge, and one in eleven has no judgment."""
    draw = crc32(turn.text.encode())
    role = turn.role.partition("/")[0]
    told: dict[str, Any] = {"reply": turn.path, "role": role, "domain": domain, "rubric": "test"}
    if draw % 11 == 0:
        return told | {"scores": dict.fromkeys(DIMENSIONS), "flag": None, "quality": None, "missing": 2}
    scores = {name: 1 + (draw >> shift) % 5 / 2 for shift, name in zip((3, 7, 11), DIMENSIONS, strict=True)}
    flag = 0.5 if draw % 7 == 0 else 0.0
    return told | {"scores": scores, "flag": flag, "quality": sum(scores.values()) * (1 - flag), "missing": 0}


class AssessedDebate(DebateProtocol):
    """Constructor and auditor answer in turn, and each reply is assessed and ends a round.

    A case titled `refuses` fails.
    """

    roles = ("constructor", "auditor")
    name = "assessed"

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        turn = None
        for role in self.roles:
            turn = await floor.ask(f"{role}/0", "selene/opening", case_slots(case), reply=Position, path=f"say/{role}")
            domain = "even" if int(case.id.rpartition("-")[2]) % 2 == 0 else "odd"
            floor.note(Event("assessment", f"assessment/{turn.path}", found(turn, domain)))
            jsd = crc32(turn.text.encode()) % 7 / 10 or None
            number = self.roles.index(role)
            floor.note(Event("round", f"round/{number}", {"round": number, "jsd": jsd}))
        if case.title == "refuses":
            raise QuorumFailed("it refuses")
        assert turn is not None
        return Verdict(answer=turn.answer, how="assessed")


def roles(constructor: str = "simulated", auditor: str = "simulated") -> dict[str, list[RoleBinding]]:
    """Bindings of both roles; the auditor has no token log-probabilities."""
    return {
        "constructor": [RoleBinding(model=constructor, top_logprobs=5)],
        "auditor": [RoleBinding(model=auditor)],
    }
