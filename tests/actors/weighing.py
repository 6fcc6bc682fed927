"""A debate that is decided by CRIT alone: two arguments, read by every judge, the better one wins."""

from __future__ import annotations

from moot.protocols.case import Case, case_slots
from moot.protocols.crit.appraisal import Document
from moot.protocols.crit.evaluate import crit_all
from moot.protocols.crit.settings import CritSettings
from moot.protocols.errors import QuorumFailed
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure, Verdict
from moot.protocols.replies import Position

SOURCES = (
    "Timetables are often changed. A change is announced on the day before.",
    "Birds and other animals adapt. Limbs change with what they are used for.",
    "Trials compare groups. A larger group gives a surer result.",
)


class Weighing:
    """Two agents answer, each alone; the judges read both arguments and the reasons that are claims themselves."""

    roles = ("agent", "judge")

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        slots = case_slots(case)
        asked = [Request(f"agent/{i}", "selene/opening", slots, Position, f"opening/{i}") for i in (0, 1)]
        sides = [turn.reply for turn in await floor.ask_all(asked) if not isinstance(turn, Failure)]
        if len(sides) < 2:
            raise QuorumFailed("an opening failed")
        texts = [side.reasoning for side in sides]
        documents = [
            (f"crit/agent/{i}", Document(side.answer, texts[i], case.passage, texts[1 - i], SOURCES))
            for i, side in enumerate(sides)
        ]
        results = await crit_all(floor, documents, CritSettings(max_depth=2, max_calls=4))
        known = [(result.score, side.answer) for result, side in zip(results, sides, strict=True) if result.score]
        if not known:
            return Verdict(answer=None, how="unread")
        best, answer = max(known)
        return Verdict(answer=answer, how="weighed", confidence=best, payload={"scores": [r.score for r in results]})
