"""Debate against question-and-answer: judges compare a debate with one model's single answer, topic by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moot.protocols.case import Case
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure
from moot.protocols.socrasynth.events import AnswerCompared, Better
from moot.protocols.socrasynth.panel import OrderedComparison, judge_comparisons, judge_whole_debate
from moot.protocols.socrasynth.replies import AnswerComparison, SingleAnswer
from moot.protocols.socrasynth.scoring import JudgeMarks, Winner, outcome_of, topic_winners, totals_record
from moot.protocols.socrasynth.sides import FOR, SIDES, Side, Topic, subject_slots

ANSWER, COMPARE, COMPARE_WHOLE = "socrasynth/answer", "socrasynth/versus", "socrasynth/versus_whole"

_NAMES: Mapping[Winner | None, Better | None] = {"A": "debate", "B": "answer", "tie": "tie", None: None}


async def compare_with_answer(
    case: Case, floor: Floor, topics: Sequence[Topic], statements: Mapping[Side, Mapping[str, str]], *, whole: bool
) -> AnswerCompared:
    """The judges' preference, in all and by topic; noted as the event `versus`, in which A is the debate.

    The answer comes from agent 0's model, which gets the subject and the facts, but neither the topics nor anything
    else of the debate. On each topic judges see both sides' statements on it, and the whole answer, without names, in
    both orders, each with its number of words: they prefer long texts. Paths `versus/answer`, and
    `versus/order/O/topic/N/judge/J` as for the panel.

    Args:
        statements: closing statements, or last arguments, by side and title.
        whole: every judge marks all topics in one call; paths are then `versus/order/O/judge/J`.
    """
    titles = [topic.title for topic in topics]
    request = Request(FOR.name, ANSWER, subject_slots(case, ()), SingleAnswer, "versus/answer", images=case.images)
    (answer,) = await floor.ask_all([request])
    if isinstance(answer, Failure):
        unknown: list[Better | None] = [None for _ in titles]
        why = f"no answer: {answer.kind}"
        event = AnswerCompared(path="versus", winner=None, why=why, topics=titles, by_topic=unknown)
    else:
        points = answer.reply.points
        said = [[each[title] for each in (statements[side] for side in SIDES) if title in each] for title in titles]
        sheets = await (_judge_whole if whole else _judge_topics)(case, floor, topics, said, points)
        event = _compared(titles, said, points, sheets)
    floor.note(event)
    return event


async def _judge_topics(
    case: Case, floor: Floor, topics: Sequence[Topic], said: Sequence[Sequence[str]], points: Sequence[str]
) -> list[JudgeMarks]:
    """Score sheets from one call per topic, judge and order; no call on a topic without statements."""
    slots, answer = subject_slots(case, ()), _shown((0, point) for point in points)
    comparisons = [
        OrderedComparison(COMPARE, slots | {"topic": topic.record()}, _shown((0, text) for text in texts), answer)
        if texts
        else None
        for topic, texts in zip(topics, said, strict=True)
    ]
    sheets, _ = await judge_comparisons(floor, comparisons, "versus")
    return sheets


async def _judge_whole(
    case: Case, floor: Floor, topics: Sequence[Topic], said: Sequence[Sequence[str]], points: Sequence[str]
) -> list[JudgeMarks]:
    """Score sheets from one call per judge and order."""
    debate = _shown((number, text) for number, texts in enumerate(said, start=1) for text in texts)
    answer = _shown((0, point) for point in points)
    comparison = OrderedComparison(COMPARE_WHOLE, subject_slots(case, topics), debate, answer)
    sheets, _ = await judge_whole_debate(floor, comparison, list(map(bool, said)), "versus", AnswerComparison)
    return sheets


def _shown(parts: Iterable[tuple[int, str]]) -> dict[str, Any]:
    """Slots of a text that is compared: its parts, each with the number of its topic or 0, and its number of words."""
    known = list(parts)
    shown = [{"topic": topic, "text": text} for topic, text in known]
    return {"parts": shown, "words": _words(text for _, text in known)}


def _words(texts: Iterable[str]) -> int:
    return sum(len(text.split()) for text in texts)


def _compared(
    titles: list[str], said: Iterable[Sequence[str]], points: list[str], sheets: Sequence[JudgeMarks]
) -> AnswerCompared:
    outcome = outcome_of(sheets)
    return AnswerCompared(
        path="versus",
        winner=_NAMES[outcome.winner],
        topics=titles,
        by_topic=[_NAMES[winner] for winner in topic_winners(sheets)],
        words={"debate": _words(text for texts in said for text in texts), "answer": _words(points)},
        answer=points,
        orders=[sheet.record() for sheet in sheets],
        totals=totals_record(outcome.totals),
        position_bias=dict(outcome.position_bias),
        missing=outcome.missing,
    )
