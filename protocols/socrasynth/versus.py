"""Debate versus question-and-answer: the judges compare what the debate gave with one model's single answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moot.protocols.case import Case
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Event, Failure
from moot.protocols.socrasynth.joint import Joint
from moot.protocols.socrasynth.panel import Bout, outcome_record, sheets_of
from moot.protocols.socrasynth.replies import Draft
from moot.protocols.socrasynth.scoring import Winner, outcome_of
from moot.protocols.socrasynth.sides import FOR, Topic, subject_slots

ANSWER, COMPARE = "socrasynth/answer", "socrasynth/versus"

_NAMES: dict[Winner | None, str | None] = {"A": "debate", "B": "answer", "tie": "tie", None: None}


async def compare_with_answer(case: Case, floor: Floor, topics: Sequence[Topic], joint: Joint | None) -> str | None:
    """Which of the two the judges prefer: `debate`, `answer`, `tie`, or None when that is unknown.

    The answer comes from agent 0's model, which is told the subject, the facts and the topics, and asked for the same
    form as the joint proposal. Judges see both without names, in both orders, each with its number of words beside it:
    they like length. Paths `versus/answer`, `versus/order/O/topic/1/judge/J`. Notes the event `versus`, in whose
    records A is the debate and B the answer.
    """
    if joint is None:
        floor.note(Event("versus", "versus", {"winner": None, "why": "the debate gave no joint proposal"}))
        return None
    request = Request(FOR.name, ANSWER, subject_slots(case, topics), Draft, "versus/answer", images=case.images)
    (answer,) = await floor.ask_all([request])
    if isinstance(answer, Failure):
        floor.note(Event("versus", "versus", {"winner": None, "why": f"no answer: {answer.kind}"}))
        return None
    debate = _shown(joint.points, joint.questions)
    single = _shown(answer.reply.points, answer.reply.questions)
    sheets, _ = await sheets_of(floor, [Bout(COMPARE, subject_slots(case, ()), debate, single)], "versus")
    outcome = outcome_of(sheets)
    winner = _NAMES[outcome.winner]
    data: dict[str, Any] = outcome_record(outcome) | {
        "winner": winner,
        "why": "",
        "words": {"debate": debate["words"], "answer": single["words"]},
        "answer": list(answer.reply.points),
        "orders": [sheet.record() for sheet in sheets],
    }
    floor.note(Event("versus", "versus", data))
    return winner


def _shown(points: Sequence[str], questions: Sequence[str]) -> dict[str, Any]:
    words = sum(len(text.split()) for text in (*points, *questions))
    return {"points": list(points), "questions": list(questions), "words": words}
