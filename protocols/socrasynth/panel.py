"""The panel: every judge compares two texts, topic by topic and in both orders.

The texts are the closing statements; `versus` has the debate's arguments and one model's single answer compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from moot.protocols.case import Case
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure, Turn
from moot.protocols.replies import Reply
from moot.protocols.socrasynth.debater_slots import Positions
from moot.protocols.socrasynth.events import PanelJudged
from moot.protocols.socrasynth.replies import AnswerComparison, Comparison, TopicComparison, TopicMarks, WholeComparison
from moot.protocols.socrasynth.scoring import JudgeMarks, Marks, PanelOutcome, outcome_of, totals_record
from moot.protocols.socrasynth.sides import SIDES, Side, Topic, subject_slots

TEMPLATE, WHOLE_TEMPLATE = "socrasynth/panel", "socrasynth/panel_whole"

NOTHING_SAID = "neither side closed on it"

ORDERS: tuple[Literal[1], Literal[2]] = (1, 2)

R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True)
class OrderedComparison:
    """One comparison, made by every judge in both orders.

    Attributes:
        template: of the prompt; its slots `first` and `second` hold the two sides.
        slots: its other slots.
        a, b: slots of A and of B.
    """

    template: str
    slots: Mapping[str, Any]
    a: Mapping[str, Any]
    b: Mapping[str, Any]


async def judge_comparisons(
    floor: Floor, comparisons: Sequence[OrderedComparison | None], path: str
) -> tuple[list[JudgeMarks], dict[str, str]]:
    """Every judge's score sheet in both orders, and the judges' models by role.

    All requests run concurrently; paths `{path}/order/O/topic/N/judge/J`. A bout of None is missing for every judge.
    """
    judges = floor.panel("judge")
    turns = await floor.ask_all(
        [
            _request(comparison, judge, order, Comparison, f"{path}/order/{order}/topic/{number}/{judge}")
            for judge in judges
            for order in ORDERS
            for number, comparison in enumerate(comparisons, start=1)
            if comparison is not None
        ]
    )
    replies = iter(turns)
    sheets = [
        _sheet(
            judge,
            order,
            [NOTHING_SAID if comparison is None else _reply_or_reason(next(replies)) for comparison in comparisons],
        )
        for judge in judges
        for order in ORDERS
    ]
    return sheets, {turn.role: turn.model for turn in turns if not isinstance(turn, Failure)}


async def judge_whole_debate(
    floor: Floor,
    comparison: OrderedComparison,
    closed: Sequence[bool],
    path: str,
    reply: type[WholeComparison] | type[AnswerComparison] = WholeComparison,
) -> tuple[list[JudgeMarks], dict[str, str]]:
    """Every judge's score sheet in both orders from one reading of all topics, and the judges' models by role.

    Paths `{path}/order/O/judge/J`.

    Args:
        closed: per topic, whether a side has a closing statement on it; if neither has, marks are missing.
    """
    places = [(judge, order) for judge in floor.panel("judge") for order in ORDERS]
    turns: Sequence[Turn[WholeComparison | AnswerComparison] | Failure] = await floor.ask_all(
        [_request(comparison, judge, order, reply, f"{path}/order/{order}/{judge}") for judge, order in places]
    )
    sheets = []
    for (judge, order), turn in zip(places, turns, strict=True):
        read = _reply_or_reason(turn)
        failed = read if isinstance(read, str) else "not marked"
        marks: Sequence[TopicMarks | TopicComparison] = [] if isinstance(read, str) else read.marks
        overall = read.rationale if isinstance(read, WholeComparison) else ""
        marked = {one.topic: one for one in reversed(marks)}  # of two on one topic the first counts
        numbered = enumerate(closed, start=1)
        scores = [marked.get(number, failed) if was_closed else NOTHING_SAID for number, was_closed in numbered]
        sheets.append(_sheet(judge, order, scores, overall))
    return sheets, {turn.role: turn.model for turn in turns if not isinstance(turn, Failure)}


def _request(comparison: OrderedComparison, judge: str, order: Literal[1, 2], reply: type[R], path: str) -> Request[R]:
    first, second = (comparison.a, comparison.b) if order == 1 else (comparison.b, comparison.a)
    slots = {**comparison.slots, "first": dict(first), "second": dict(second)}
    return Request(judge, comparison.template, slots, reply, path)


def _reply_or_reason(turn: Turn[R] | Failure) -> R | str:
    """Reply of a judge, or the reason for a missing one."""
    return f"{turn.kind}: {turn.message}" if isinstance(turn, Failure) else turn.reply


def _sheet(
    judge: str,
    order: Literal[1, 2],
    scores: Sequence[Comparison | TopicMarks | TopicComparison | str],
    overall: str = "",
) -> JudgeMarks:
    """Score sheet from a judge's scores by topic, or the reason for a missing one."""
    numbered = dict(enumerate(scores, start=1))
    return JudgeMarks(
        judge,
        order,
        marks=tuple(None if isinstance(one, str) else _pair(one, order) for one in scores),
        rationales=tuple(one.rationale if isinstance(one, Comparison | TopicComparison) else "" for one in scores),
        missing={number: one for number, one in numbered.items() if isinstance(one, str)},
        repairs={number: one.repairs for number, one in numbered.items() if not isinstance(one, str) and one.repairs},
        overall=overall,
    )


def _pair(marks: Comparison | TopicMarks | TopicComparison, order: Literal[1, 2]) -> Marks:
    """Scores of A and B, in either order."""
    return (marks.first, marks.second) if order == 1 else (marks.second, marks.first)


@dataclass(frozen=True, slots=True)
class PanelRuling:
    """Result of the panel.

    Attributes:
        outcome: totals, winner and position bias.
        not_independent: judges whose model also debated, except simulated ones, which have no position to favour.
    """

    outcome: PanelOutcome
    not_independent: tuple[str, ...]


async def judge_closings(
    case: Case,
    floor: Floor,
    topics: Sequence[Topic],
    statements: Mapping[Side, Mapping[str, str]],
    debaters: Collection[str],
    positions: Positions,
    *,
    whole: bool = False,
) -> PanelRuling:
    """Ruling of the panel on the closing statements; paths `panel/order/O/topic/N/judge/J`. Notes the event `panel`.

    Args:
        statements: by side and title.
        debaters: models of the sides.
        positions: on a closed list, what each side argues for.
        whole: every judge reads all topics at once; paths are then `panel/order/O/judge/J`.
    """
    if whole:
        comparison = _whole_comparison(case, topics, statements, positions)
        closed = [any(topic.title in statements[side] for side in SIDES) for topic in topics]
        sheets, models = await judge_whole_debate(floor, comparison, closed, "panel")
    else:
        comparisons = [_comparison(case, topic, statements, positions) for topic in topics]
        sheets, models = await judge_comparisons(floor, comparisons, "panel")
    outcome = outcome_of(sheets)
    not_independent = tuple(judge for judge, model in models.items() if model in debaters and not _is_drawn(model))
    floor.note(
        PanelJudged(
            path="panel",
            topics=[topic.title for topic in topics],
            orders=[sheet.record() for sheet in sheets],
            models=models,
            not_independent=list(not_independent),
            winner=outcome.winner,
            totals=totals_record(outcome.totals),
            position_bias=dict(outcome.position_bias),
            missing=outcome.missing,
        )
    )
    return PanelRuling(outcome, not_independent)


def _is_drawn(model: str) -> bool:
    """Whether a model is the simulated one, under whatever settings and on whatever server."""
    return model.partition("?")[0].rpartition("#")[2] == "simulated"


def _comparison(
    case: Case, topic: Topic, statements: Mapping[Side, Mapping[str, str]], positions: Positions
) -> OrderedComparison | None:
    if not any(topic.title in statements[side] for side in SIDES):
        return None
    slots = subject_slots(case, ()) | {"topic": topic.record()}
    first, second = (
        {"stance": positions.word(case, side), "text": statements[side].get(topic.title, "")} for side in SIDES
    )
    return OrderedComparison(TEMPLATE, slots, first, second)


def _whole_comparison(
    case: Case, topics: Sequence[Topic], statements: Mapping[Side, Mapping[str, str]], positions: Positions
) -> OrderedComparison:
    first, second = (
        {
            "stance": positions.word(case, side),
            "statements": [
                {"topic": number, "text": statements[side].get(topic.title, "")}
                for number, topic in enumerate(topics, start=1)
            ],
        }
        for side in SIDES
    )
    return OrderedComparison(WHOLE_TEMPLATE, subject_slots(case, topics), first, second)
