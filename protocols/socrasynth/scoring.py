"""Scores of the panel: totals and winner per judge and order, first-position advantage, and overall winner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from moot.protocols.socrasynth.events import JudgeScoreSheet, MissingMarks, RepairedMarks, SideTotals

Winner = Literal["A", "B", "tie"]
"""Winner by two totals; equal totals are a tie."""

ANSWERS: Mapping[str, Literal["For", "Against", "Tie"]] = {"A": "For", "B": "Against", "tie": "Tie"}
"""Answer to the subject, by winner."""

Marks = tuple[float, float]
"""Marks of A and B by one judge, each from 0 to 10."""

_DIGITS = 9


@dataclass(frozen=True, slots=True)
class JudgeMarks:
    """One judge's marks in one order.

    Attributes:
        judge: its full role name.
        order: 1: A comes first and B second; 2: swapped.
        marks: one pair per topic, in the topics' order; None where the judgment is missing, which is no mark of 0.
        rationales: one per topic; empty if there is none.
        missing: by topic (from 1), why its judgment is missing.
        repairs: by topic (from 1), the marks that were not written as numbers, e.g. `first: 8/10`.
        overall: one rationale for all topics; empty if each has its own.
    """

    judge: str
    order: Literal[1, 2]
    marks: tuple[Marks | None, ...]
    rationales: tuple[str, ...]
    missing: Mapping[int, str]
    repairs: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    overall: str = ""

    def totals(self) -> Marks | None:
        """A's and B's marks summed over the judged topics; None if there are none."""
        return totals_of(self.marks)

    @property
    def winner(self) -> Winner | None:
        """Side with the higher total; None if no topic was judged."""
        return winner_of(self.totals())

    def record(self) -> JudgeScoreSheet:
        """Recorded form."""
        return JudgeScoreSheet(
            order=self.order,
            judge=self.judge,
            scores=[None if pair is None else list(pair) for pair in self.marks],
            totals=totals_record(self.totals()),
            winner=self.winner,
            rationales=list(self.rationales),
            overall=self.overall,
            missing=[MissingMarks(topic=number, why=why) for number, why in self.missing.items()],
            repairs=[RepairedMarks(topic=number, marks=list(read)) for number, read in self.repairs.items()],
        )


def totals_record(totals: Marks | None) -> SideTotals:
    """Recorded form of totals."""
    a, b = totals or (None, None)
    return SideTotals(A=a, B=b)


def totals_of(marks: Iterable[Marks | None]) -> Marks | None:
    """Sums over the known pairs; None if there are none.

    >>> totals_of([(8, 6), None, (7, 5)])
    (15, 11)
    """
    known = [pair for pair in marks if pair is not None]
    if not known:
        return None
    return round(sum(a for a, _ in known), _DIGITS), round(sum(b for _, b in known), _DIGITS)


def winner_of(totals: Marks | None) -> Winner | None:
    """Side with the higher total."""
    if totals is None:
        return None
    a, b = totals
    return "tie" if a == b else "A" if a > b else "B"


def complete_pairs(sheets: Sequence[JudgeMarks], judge: str) -> tuple[list[Marks], list[Marks]]:
    """A judge's marks in order 1 and in order 2, on the topics that it judged in both."""
    by_order = {sheet.order: sheet.marks for sheet in sheets if sheet.judge == judge}
    both = [
        (one, two)
        for one, two in zip(by_order.get(1, ()), by_order.get(2, ()), strict=False)
        if one is not None and two is not None
    ]
    return [one for one, _ in both], [two for _, two in both]


def first_mover_advantage(sheets: Sequence[JudgeMarks], judge: str) -> float | None:
    """(m1 - m2) / 2 with m = A's total less B's in order 1 and 2: the advantage of the first position, in points.

    Over the topics that the judge marked in both orders; None if there is none. 0: the order has no effect.
    """
    first, second = (totals_of(marks) for marks in complete_pairs(sheets, judge))
    if first is None or second is None:
        return None
    return round(((first[0] - first[1]) - (second[0] - second[1])) / 2.0, _DIGITS)


@dataclass(frozen=True, slots=True)
class PanelOutcome:
    """Result of a panel's score sheets.

    Attributes:
        winner: by `totals`; None without any complete pair of orders.
        totals: A's and B's mean total per judge and order, over topics that a judge marked in both orders.
        position_bias: `first_mover_advantage` by judge.
        missing: missing judgments.
    """

    winner: Winner | None
    totals: Marks | None
    position_bias: Mapping[str, float | None]
    missing: int


def outcome_of(sheets: Sequence[JudgeMarks]) -> PanelOutcome:
    """The winner over all judges: the higher mean of the totals over complete pairs of orders, a tie when equal.

    Only marks that have a counterpart in the other order count, so that no side gains by being first if its
    judgment in second place is missing.
    """
    judges = list(dict.fromkeys(sheet.judge for sheet in sheets))
    halves = [totals for judge in judges for half in complete_pairs(sheets, judge) if (totals := totals_of(half))]
    summed = totals_of(halves)
    means = None if summed is None else (_mean(summed[0], len(halves)), _mean(summed[1], len(halves)))
    return PanelOutcome(
        winner_of(summed),
        means,
        {judge: first_mover_advantage(sheets, judge) for judge in judges},
        sum(len(sheet.missing) for sheet in sheets),
    )


def topic_winners(sheets: Sequence[JudgeMarks]) -> list[Winner | None]:
    """Winner on each topic, by the rule of `outcome_of`."""
    topics = range(max((len(sheet.marks) for sheet in sheets), default=0))
    return [outcome_of([replace(sheet, marks=sheet.marks[n : n + 1]) for sheet in sheets]).winner for n in topics]


def _mean(total: float, number: int) -> float:
    return round(total / number, _DIGITS)
