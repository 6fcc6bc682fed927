"""The panel: every judge compares two texts, topic by topic and in both orders."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from moot.protocols.case import Case
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Event, Failure, Turn
from moot.protocols.socrasynth.debater_slots import Positions
from moot.protocols.socrasynth.replies import Comparison, TopicMarks, WholeComparison
from moot.protocols.socrasynth.scoring import Marks, Outcome, Sheet, outcome_of
from moot.protocols.socrasynth.sides import SIDES, Side, Topic, subject_slots

TEMPLATE, WHOLE_TEMPLATE = "socrasynth/panel", "socrasynth/panel_whole"

NOTHING_SAID = "neither side closed on it"

ORDERS: tuple[Literal[1], Literal[2]] = (1, 2)


@dataclass(frozen=True, slots=True)
class Bout:
    """One comparison that every judge makes in both orders.

    Attributes:
        template: of the prompt; its slots `first` and `second` are those of whoever comes first and second.
        slots: the rest of its slots.
        a, b: slots of A and of B.
    """

    template: str
    slots: Mapping[str, Any]
    a: Mapping[str, Any]
    b: Mapping[str, Any]


async def sheets_of(floor: Floor, bouts: Sequence[Bout | None], path: str) -> tuple[list[Sheet], dict[str, str]]:
    """Every judge's sheet in both orders, and the judges' models by role.

    All in flight together; paths `{path}/order/O/topic/N/judge/J`. A bout that is None is missing for everyone.
    """
    judges = floor.panel("judge")
    places = [
        (judge, order, number, bout)
        for judge in judges
        for order in ORDERS
        for number, bout in enumerate(bouts, start=1)
        if bout is not None
    ]
    turns = await floor.ask_all(
        [
            Request(
                judge, bout.template, _in_order(bout, order), Comparison, f"{path}/order/{order}/topic/{number}/{judge}"
            )
            for judge, order, number, bout in places
        ]
    )
    found = {(judge, order, n): turn for (judge, order, n, _), turn in zip(places, turns, strict=True)}
    sheets = []
    for judge in judges:
        for order in ORDERS:
            heard = [found.get((judge, order, number)) for number in range(1, len(bouts) + 1)]
            missing = {
                number: NOTHING_SAID if turn is None else f"{turn.kind}: {turn.message}"
                for number, turn in enumerate(heard, start=1)
                if turn is None or isinstance(turn, Failure)
            }
            told = [turn.reply if isinstance(turn, Turn) else None for turn in heard]
            rationales = ["" if one is None else one.rationale for one in told]
            sheets.append(_sheet(judge, order, told, missing, rationales))
    return sheets, {turn.role: turn.model for turn in turns if not isinstance(turn, Failure)}


def _in_order(bout: Bout, order: Literal[1, 2]) -> dict[str, Any]:
    first, second = (bout.a, bout.b) if order == 1 else (bout.b, bout.a)
    return {**bout.slots, "first": dict(first), "second": dict(second)}


def _sheet(
    judge: str,
    order: Literal[1, 2],
    told: Sequence[Comparison | TopicMarks | None],
    missing: Mapping[int, str],
    rationales: Sequence[str],
    overall: str = "",
) -> Sheet:
    """A sheet from what a judge told of each topic."""
    pairs = [None if one is None else _pair(one, order) for one in told]
    repairs = {number: one.repairs for number, one in enumerate(told, start=1) if one is not None and one.repairs}
    return Sheet(judge, order, tuple(pairs), tuple(rationales), missing, repairs, overall)


async def whole_sheets_of(
    floor: Floor, bout: Bout, closed: Sequence[bool], path: str
) -> tuple[list[Sheet], dict[str, str]]:
    """Every judge's sheet in both orders from one reading of all topics each, and the judges' models by role.

    Paths `{path}/order/O/judge/J`.

    Args:
        closed: per topic, whether a side closed on it; where neither did, marks are missing.
    """
    places = [(judge, order) for judge in floor.panel("judge") for order in ORDERS]
    turns = await floor.ask_all(
        [
            Request(judge, bout.template, _in_order(bout, order), WholeComparison, f"{path}/order/{order}/{judge}")
            for judge, order in places
        ]
    )
    sheets = []
    for (judge, order), turn in zip(places, turns, strict=True):
        failed = f"{turn.kind}: {turn.message}" if isinstance(turn, Failure) else "not marked"
        marks = [] if isinstance(turn, Failure) else turn.reply.marks
        marked = {one.topic: one for one in reversed(marks)}  # of two on one topic the first counts
        told = [marked.get(number) if was_closed else None for number, was_closed in enumerate(closed, start=1)]
        missing = {
            number: failed if closed[number - 1] else NOTHING_SAID
            for number, one in enumerate(told, start=1)
            if one is None
        }
        overall = "" if isinstance(turn, Failure) else turn.reply.rationale
        sheets.append(_sheet(judge, order, told, missing, [""] * len(closed), overall))
    return sheets, {turn.role: turn.model for turn in turns if not isinstance(turn, Failure)}


def _pair(marks: Comparison | TopicMarks, order: Literal[1, 2]) -> Marks:
    """Marks of A and B, whoever came first."""
    return (marks.first, marks.second) if order == 1 else (marks.second, marks.first)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the panel found.

    Attributes:
        outcome: totals, winner and position bias.
        not_independent: judges on a model that also debated; simulated ones aside, which have no stand to favour.
    """

    outcome: Outcome
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
) -> Ruling:
    """The panel's ruling on the closing statements; paths `panel/order/O/topic/N/judge/J`. Notes the event `panel`.

    Args:
        statements: by side and title.
        debaters: the models that debated.
        positions: on a closed list, what each side argues for.
        whole: every judge reads all topics at once; paths are then `panel/order/O/judge/J`.
    """
    if whole:
        bout = _whole_bout(case, topics, statements, positions)
        closed = [any(topic.title in statements[side] for side in SIDES) for topic in topics]
        sheets, models = await whole_sheets_of(floor, bout, closed, "panel")
    else:
        bouts = [_bout(case, topic, statements, positions) for topic in topics]
        sheets, models = await sheets_of(floor, bouts, "panel")
    outcome = outcome_of(sheets)
    not_independent = tuple(judge for judge, model in models.items() if model in debaters and not _is_drawn(model))
    data = {
        "topics": [topic.title for topic in topics],
        "orders": [sheet.record() for sheet in sheets],
        "models": models,
        "not_independent": list(not_independent),
    }
    floor.note(Event("panel", "panel", data | outcome_record(outcome)))
    return Ruling(outcome, not_independent)


def _is_drawn(model: str) -> bool:
    """Whether a model is the simulated one, under whatever settings and on whatever server."""
    return model.partition("?")[0].rpartition("#")[2] == "simulated"


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    """An outcome as events hold it."""
    totals = outcome.totals
    return {
        "winner": outcome.winner,
        "totals": {"A": None, "B": None} if totals is None else {"A": totals[0], "B": totals[1]},
        "position_bias": dict(outcome.position_bias),
        "missing": outcome.missing,
    }


def _bout(case: Case, topic: Topic, statements: Mapping[Side, Mapping[str, str]], positions: Positions) -> Bout | None:
    if not any(topic.title in statements[side] for side in SIDES):
        return None
    slots = subject_slots(case, ()) | {"topic": topic.record()}
    first, second = (
        {"stance": positions.word(case, side), "text": statements[side].get(topic.title, "")} for side in SIDES
    )
    return Bout(TEMPLATE, slots, first, second)


def _whole_bout(
    case: Case, topics: Sequence[Topic], statements: Mapping[Side, Mapping[str, str]], positions: Positions
) -> Bout:
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
    return Bout(WHOLE_TEMPLATE, subject_slots(case, topics), first, second)
