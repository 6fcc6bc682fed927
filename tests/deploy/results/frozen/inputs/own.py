"""A protocol of a user's own: two agents answer, the first decides, and the protocol notes whether they agree."""

from __future__ import annotations

from moot.protocols.case import Case
from moot.protocols.floor import Floor
from moot.protocols.messages import Event, Verdict
from moot.protocols.replies import Position


class Objection:
    """See above."""

    name = "objection"
    roles = ("agent",)
    needs_logprobs = False

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        slots: dict[str, object] = {
            "question": case.question,
            "labels": case.labels,
            "choices": case.choices,
            "passage": case.passage,
            "title": case.title,
            "evidence": [],
            "answer_first": True,
        }
        first = await floor.ask("agent/0", "selene/opening", slots, reply=Position, path="say")
        other = await floor.ask("agent/1", "selene/opening", slots, reply=Position, path="object")
        agreed = first.answer == other.answer
        floor.note(Event("compared", "compare", {"agreed": agreed, "answers": [first.answer, other.answer]}))
        return Verdict(answer=first.answer, how="first", confidence=0.5, payload={"agreed": agreed})
