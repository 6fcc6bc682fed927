"""SocraSynth in results: contentiousness by stage, quality by round, the panel in both orders, and its document."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from moot.deploy.results.figures.rounds import round_charts
from moot.deploy.results.figures.subjects import outcomes
from moot.deploy.results.figures.summary import record_summary
from moot.deploy.results.protocol_parts import ProtocolParts
from moot.deploy.results.protocols.socrasynth_document import build_document
from moot.deploy.results.record import RunRecord
from moot.deploy.results.report.blocks import Block, Chart, Guide, Heading, Note, Series, Table
from moot.deploy.results.stats import GroupOf, mean_over_cases
from moot.deploy.results.text import cases, count, counts_in_words, number, signed
from moot.protocols.socrasynth.closing_events import (
    AnswerCompared,
    JudgeScoreSheet,
    PanelJudged,
    ProposalNegotiated,
    SidesClosed,
)
from moot.protocols.socrasynth.events import SocraSynthRoundEnded, TopicsFixed

MOST_LISTED = 50
"""Debates that a table lists."""

_OPENING, _CLOSING, _JOINT = "opening", "closing", "joint proposal"

Agreement = Literal["same winner", "other winner", "a tie in one order"]


def socrasynth(run: RunRecord) -> Iterator[Block]:
    """Debates on subjects; nothing for a run without rounds on topics."""
    stages = _contentiousness(run)
    if not stages:
        return
    yield Heading("Debates on topics")
    yield _stages_chart(stages, run.references.group)
    yield from round_charts(run, ("quality",))
    yield from _panel(run)
    yield from _versus(run)
    yield from _topics(run)


def _contentiousness(run: RunRecord) -> dict[str, list[tuple[str, float]]]:
    """Contentiousness of each debate by stage, in order."""
    found: dict[int, list[tuple[str, float]]] = defaultdict(list)
    for row, event in run.counted_events(SocraSynthRoundEnded):
        found[event.round].append((row.case_id, event.kappa))
    stages = {_OPENING if n == 0 else f"round {n}": values for n, values in sorted(found.items())}
    closed = [(row.case_id, each.kappa) for row, each in run.counted_events(SidesClosed)]
    joint = [(row.case_id, each.kappa) for row, each in run.counted_events(ProposalNegotiated)]
    return stages | ({_CLOSING: closed} if closed else {}) | ({_JOINT: joint} if joint else {})


def _stages_chart(stages: Mapping[str, Sequence[tuple[str, float]]], group_of: GroupOf) -> Chart:
    means = [mean_over_cases(of_stage, group_of) for of_stage in stages.values()]
    low, high = [each.low for each in means], [each.high for each in means]
    counts = ", ".join(count(each.cases) for each in means)
    return Chart(
        "contentiousness-stages",
        "Contentiousness that the sides were told to argue with, by stage",
        [Series("kappa", list(stages), [each.mean for each in means], low=low, high=high, mark="line")],
        x_label="stage",
        y_label="kappa",
        y_range=(0.0, 1.0),
        note="1: contradict everything; 0: seek agreement. Means over the debates with the stage "
        f"({counts}), with 95 % intervals over debates where there are ten or more.",
    )


class _BothOrders(NamedTuple):
    """A judge's two readings of one debate: A's marks less B's where A comes first, and where B does."""

    case_id: str
    a_first: float
    b_first: float
    agreement: Agreement


def _panel(run: RunRecord) -> Iterator[Block]:
    panels = [(row.case_id, panel) for row, panel in run.counted_events(PanelJudged)]
    if not panels:
        return
    pairs = [pair for case_id, panel in panels for pair in _pairs(case_id, panel.orders)]
    asked = sum(len({sheet.judge for sheet in panel.orders}) for _, panel in panels)
    counts = Counter(pair.agreement for pair in pairs)
    yield Note(_agreement_words(run, counts, asked))
    if not pairs:
        return
    several = [
        _points(words, [pair for pair in pairs if pair.agreement == words]) for words in sorted(counts, key=_place)
    ]
    yield Chart(
        "panel-orders",
        "The panel in both orders: does it matter who is read first?",
        several,
        x_label="A's marks less B's, A read first",
        y_label="A's less B's, B read first",
        guides=[Guide("", x=0.0), Guide("", y=0.0)],
        note="Each point is one judge's two readings of one debate; a click opens it. Upper right and lower left: the "
        "same side wins in both orders. Lower right: whoever is read first wins; upper left: whoever is read last.",
    )


_AGREEMENTS: tuple[Agreement, ...] = ("same winner", "other winner", "a tie in one order")


def _place(agreement: Agreement) -> int:
    return _AGREEMENTS.index(agreement)


def _pairs(case_id: str, sheets: Sequence[JudgeScoreSheet]) -> Iterator[_BothOrders]:
    """The judges that marked every topic in both orders."""
    by_judge: dict[str, dict[int, JudgeScoreSheet]] = defaultdict(dict)
    for sheet in sheets:
        by_judge[sheet.judge][sheet.order] = sheet
    for orders in by_judge.values():
        if len(orders) == 2 and not any(sheet.missing for sheet in orders.values()):
            one, other = (_margin(orders[order]) for order in (1, 2))
            if one is not None and other is not None:
                yield _BothOrders(case_id, one, other, _agreement(orders[1].winner, orders[2].winner))


def _margin(sheet: JudgeScoreSheet) -> float | None:
    a, b = sheet.totals.A, sheet.totals.B
    return None if a is None or b is None else a - b


def _agreement(one: str | None, other: str | None) -> Agreement:
    if one == other:
        return "same winner"
    return "a tie in one order" if "tie" in (one, other) else "other winner"


def _agreement_words(run: RunRecord, counts: Mapping[Agreement, int], asked: int) -> str:
    known = sum(counts.values())
    sentences = [
        f"Judges named the same winner in both orders in {count(counts.get('same winner', 0))} of {count(known)} "
        f"readings; in {count(counts.get('other winner', 0))} the order decided, in "
        f"{count(counts.get('a tie in one order', 0))} one order gave a tie."
    ]
    if asked > known:
        sentences.append(f"Readings without a mark in one order: {count(asked - known)}.")
    rulings = record_summary(run).rulings
    if rulings is not None and rulings.first_mover_advantage is not None:
        sentences.append(f"Coming first is worth {signed(rulings.first_mover_advantage, 2)} marks on average.")
    return " ".join(sentences)


def _points(words: Agreement, pairs: Sequence[_BothOrders]) -> Series:
    return Series(
        f"{words} ({len(pairs):,})",
        [pair.a_first for pair in pairs],
        [pair.b_first for pair in pairs],
        cases=[pair.case_id for pair in pairs],
        style=_place(words),
    )


def _versus(run: RunRecord) -> Iterator[Block]:
    """Debates that judges compared with a single answer."""
    compared = [(row.case_id, each) for row, each in run.counted_events(AnswerCompared)]
    rulings = record_summary(run).rulings
    if not compared or rulings is None or rulings.versus is None:
        return
    by_topic = rulings.versus_topics
    topics = "" if by_topic is None else f" By topic: {counts_in_words(by_topic)}."
    yield Note(
        "Judges compared the arguments of each debate with one model's single answer, without being told which is "
        f"which. The better text: {counts_in_words(rulings.versus)}.{topics} They prefer long texts: see the words."
    )
    header = ("case", "debate", "answer", "better", "by topic", "words of the debate", "of the answer")
    rows = [_versus_row(case_id, each) for case_id, each in compared[:MOST_LISTED]]
    title = f"Marks of debates and of single answers{_of_these(len(compared))}"
    yield Table(title, header, rows, case_column=0)


def _versus_row(case_id: str, versus: AnswerCompared) -> tuple[str, ...]:
    marks = (None, None) if versus.totals is None else (versus.totals.A, versus.totals.B)
    by_topic = counts_in_words(outcomes(versus.by_topic) or {})
    words = [f"{versus.words[name]:,}" if name in versus.words else "-" for name in ("debate", "answer")]
    return (case_id, *map(number, marks), versus.winner or "unknown", by_topic, *words)


def _of_these(n: int) -> str:
    """End of a list's title: how many of the debates it lists, if not all."""
    return f", the first {MOST_LISTED} of {cases(n)}" if n > MOST_LISTED else ""


def _topics(run: RunRecord) -> Iterator[Block]:
    fixed = [(row.case_id, each) for row, each in run.counted_events(TopicsFixed)]
    if not fixed:
        return
    rows = [
        (case_id, "; ".join(topic.title for topic in each.topics), each.by) for case_id, each in fixed[:MOST_LISTED]
    ]
    header = ("case", "topics", "last word by")
    yield Table(f"Topics that the sides debated{_of_these(len(fixed))}", header, rows, case_column=0)


PARTS = ProtocolParts(document=build_document, report=socrasynth)
