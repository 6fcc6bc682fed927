"""Report blocks of a document, in reading order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moot.deploy.results.document.views import ArgumentView, DebateDocument, Letter
from moot.deploy.results.document.words import (
    FLAGS,
    ROUNDS_HEADER,
    SIDE,
    confirm_words,
    joint_words,
    merged_words,
    moderation_words,
    round_cells,
    score_sheet_cells,
    sides_line,
    stop_reason_words,
    verdict_line,
    versus_words,
)
from moot.deploy.results.report.blocks import Block, Heading, Items, Note, Quote, Table
from moot.deploy.results.rounds.round_trace import trace_blocks
from moot.deploy.results.text import number, signed
from moot.deploy.results.transcripts.blocks import cost_words
from moot.deploy.results.transcripts.generic_blocks import place_words
from moot.protocols.socrasynth.events import JudgeScoreSheet, SocraSynthRoundEnded


def document_blocks(document: DebateDocument) -> list[Block]:
    """Report blocks of a document: subject, verdict, topics, joint proposal, panel, arguments, rounds, cost."""
    numbers = () if document.trace is None else (Heading("Round by round"), *trace_blocks(document.trace))
    return [
        *_front(document),
        *_topics(document),
        *_joint(document),
        *_panel(document),
        *_versus(document),
        *_arguments(document),
        *_rounds(document),
        *numbers,
        *_moderation(document),
        *_end(document),
    ]


def _front(document: DebateDocument) -> Iterable[Block]:
    if document.simulated:
        yield Note("simulated models", "warning")
    yield Heading(document.subject, 1)
    yield Note(f"case {document.case_id}, attempt {document.attempt}, {document.state}", "dim")
    yield Note(verdict_line(document), "strong")
    yield Note(sides_line(document))
    verdict = document.verdict
    if verdict is not None and not verdict.failed:
        last = f"round {verdict.rounds}" if verdict.rounds else "the opening"
        yield Note(f"The rounds ended after {last}: {stop_reason_words(document.stop, verdict.how)}.")
        if verdict.flags:
            yield Items([FLAGS.get(flag, flag) for flag in verdict.flags])
    if document.facts:
        yield Quote("Given facts", document.facts)
    if document.labels:
        yield Note(f"Possible answers: {', '.join(document.open_answers or document.labels)}.")
    if document.gold is not None:
        yield Note(f"Gold label (no model saw it): {document.gold}.")


def _topics(document: DebateDocument) -> Iterable[Block]:
    agenda = document.agenda
    yield Heading("Topics")
    titled = [f"{topic.title}: {topic.description}" if topic.description else topic.title for topic in document.topics]
    yield Items(titled, numbered=True)
    proposed = sum(len(themes) for themes in agenda.proposed.values())
    whose = {"moderator": "the moderator's, a model", "person": "a person's"}.get(document.topics_by)
    if whose is not None:
        yield Note(f"{proposed} themes were proposed; the last word was {whose}.")
    notes = [
        f"{SIDE.get(role, role)} finds the subject {'balanced' if one.balanced else 'unbalanced'}: {one.why}"
        for role, one in agenda.balance.items()
    ]
    notes += [f"{merged_words(merge, agenda)}: merged into {merge.into}" for merge in agenda.merged]
    notes += [f"{title}: dropped, beyond {agenda.wanted} topics" for title in agenda.dropped]
    notes += [f"{topic.title}: removed by a person" for topic in document.dropped_topics]
    if len(agenda.topics) < agenda.wanted and agenda.by == "moderator":
        notes.append(f"only {len(agenda.topics)} of {agenda.wanted} topics were found")
    yield from _listed(notes)


def _listed(items: Sequence[str]) -> Iterable[Block]:
    """Block of a list; none for an empty list."""
    if items:
        yield Items(items)


def _joint(document: DebateDocument) -> Iterable[Block]:
    joint = document.joint
    if joint is None:
        return
    yield Heading("Joint proposal")
    if joint.proposal is None:
        yield Note(f"None: {joint_words(joint)}.")
        return
    yield Items(joint.proposal, numbered=True)
    if joint.questions:
        yield Heading("To find out", 3)
        yield Items(joint.questions)
    yield Note(f"{joint_words(joint)}.")
    reserved = [f"{SIDE[role]}: {text}" for role, texts in joint.reservations.items() for text in texts]
    if reserved:
        yield Heading("Reservations", 3)
        yield Items(reserved)


def _panel(document: DebateDocument) -> Iterable[Block]:
    panel = document.panel
    if panel is None:
        return
    yield Heading("The panel")
    yield Note("Marks of A and B from 0 to 10 on the closing statements, by number of the topic.")
    yield Items(panel.topics, numbered=True)
    header = ("judge", "first", *(str(place) for place, _ in enumerate(panel.topics, start=1)), "A", "B", "winner")
    yield Table("", header, [score_sheet_cells(sheet) for sheet in panel.orders])
    totals = f"Mean totals over complete pairs of orders: A {number(panel.totals.A)}, B {number(panel.totals.B)}."
    bias = ", ".join(f"{judge} {signed(value)}" for judge, value in panel.position_bias.items()) or "unknown"
    yield Note(f"{totals} Position bias, in marks: {bias}.")
    yield from _listed(_missing(panel.orders))
    yield from _listed([_by_judge(sheet, sheet.overall) for sheet in panel.orders if sheet.overall])
    yield from _listed(
        [
            f"{sheet.judge}, order {sheet.order}, topic {one.topic}: not written as numbers: {', '.join(one.marks)}"
            for sheet in panel.orders
            for one in sheet.repairs
        ]
    )
    if panel.not_independent:
        yield Note(f"On a model that also debated: {', '.join(panel.not_independent)}.")


def _missing(sheets: Iterable[JudgeScoreSheet]) -> list[str]:
    return [
        f"{sheet.judge}, order {sheet.order}, topic {one.topic}: missing ({one.why})"
        for sheet in sheets
        for one in sheet.missing
    ]


def _versus(document: DebateDocument) -> Iterable[Block]:
    versus = document.versus
    if versus is None:
        return
    yield Heading("Debate against a single answer", 3)
    yield Note(versus_words(versus))
    if not versus.orders:
        return
    topics = [str(place) for place, _ in enumerate(versus.topics, start=1)]
    header = ("judge", "first", *topics, "debate", "answer", "better")
    yield Table("", header, [_versus_cells(sheet, by_topic=bool(topics)) for sheet in versus.orders])
    if topics:
        yield from _listed(_missing(versus.orders))
        yield from _listed(
            [
                f"{sheet.judge}, {_VERSUS[_first(sheet)]} first, topic {topic}: {reason}"
                for sheet in versus.orders
                for topic, reason in zip(topics, sheet.rationales, strict=False)
                if reason
            ]
        )


_VERSUS = {"A": "debate", "B": "answer", "tie": "tie"}


def _versus_cells(sheet: JudgeScoreSheet, *, by_topic: bool) -> tuple[str, ...]:
    judge, first, *marks, debate, answer, winner = score_sheet_cells(sheet)
    return (judge, _VERSUS[first], *(marks if by_topic else ()), debate, answer, _VERSUS.get(winner, winner))


def _first(sheet: JudgeScoreSheet) -> Letter:
    return "A" if sheet.order == 1 else "B"


def _arguments(document: DebateDocument) -> Iterable[Block]:
    if document.arguments:
        yield Heading("Arguments")
    for place, topic in enumerate(document.topics, start=1):
        yield Heading(f"{place}. {topic.title}", 3)
        yield from _quotes(document, topic.title)
        yield from _reasons(document, topic.title)
    for topic in document.dropped_topics:
        if quotes := list(_quotes(document, topic.title)):
            yield Heading(f"Removed: {topic.title}", 3)
            yield from quotes


def _quotes(document: DebateDocument, title: str) -> Iterable[Block]:
    return (
        Quote(_who(document, argument), argument.text) for argument in document.arguments if argument.topic == title
    )


def _who(document: DebateDocument, argument: ArgumentView) -> str:
    stage = {None: "closing", 0: "opening"}.get(argument.round, f"round {argument.round}")
    stage = "last word" if argument.last_word else stage
    repaired = ", repaired JSON" if argument.mended else ""
    return f"{argument.side} ({_stance(document, argument.side)}), {stage}{repaired}"


def _stance(document: DebateDocument, side: Letter) -> str:
    """Position of a side: the answer that it named, else `for` or `against`."""
    named = {} if document.positions is None else document.positions.named
    by_letter = {letter: named[role] for role, letter in SIDE.items() if role in named}
    return by_letter.get(side, "for" if side == "A" else "against")


def _by_judge(sheet: JudgeScoreSheet, text: str) -> str:
    return f"{sheet.judge}, {_first(sheet)} first: {text}"


def _reasons(document: DebateDocument, title: str) -> Iterable[Block]:
    panel = document.panel
    if panel is None or title not in panel.topics:
        return
    place = panel.topics.index(title)
    rationales = [(sheet, sheet.rationales[place]) for sheet in panel.orders if place < len(sheet.rationales)]
    yield from _listed([_by_judge(sheet, reason) for sheet, reason in rationales if reason])


def _rounds(document: DebateDocument) -> Iterable[Block]:
    if not document.rounds:
        return
    yield Heading("Rounds")
    yield Note("Contentiousness from 0 to 1; quality of the arguments by CRIT, from 0 to 10; Gamma is their mean.")
    yield Table("", ROUNDS_HEADER, [*map(round_cells, document.rounds), *_closing_row(document)])
    yield from _listed([note for each in document.rounds for note in _round_notes(each)])
    if document.confirmed is not None:
        yield Note(f"Asked whether that was all, {confirm_words(document.confirmed)}.")
    closing = document.closing
    if closing is not None and closing.crit_by_topic:
        by_topic = zip(closing.topics, *closing.crit_by_topic.values(), strict=False)
        rows = [(title, *(number(_ten(score), 1) for score in scores)) for title, *scores in by_topic]
        yield Table("", ("closing statements on", *(SIDE[role] for role in closing.crit_by_topic)), rows)


def _closing_row(document: DebateDocument) -> list[tuple[str, ...]]:
    closing = document.closing
    if closing is None:
        return []
    failed = "; ".join(f"{SIDE[role]}: {why}, judged by its last arguments" for role, why in closing.failed.items())
    scores = [number(_ten(closing.crit.get(role)), 1) for role in SIDE]
    return [("closing", number(closing.kappa, 2), *scores, number(_ten(closing.gamma), 1), failed or "-")]


def _ten(score: float | None) -> float | None:
    return None if score is None else 10.0 * score


def _round_notes(ended: SocraSynthRoundEnded) -> Iterable[str]:
    where = "opening" if ended.round == 0 else f"round {ended.round}"
    for role, titles in ended.left_out.items():
        yield f"{where}: {SIDE.get(role, role)} left out {', '.join(titles)}"
    for question in ended.asked:
        yield f"{where}: both were asked: {question}"


def _moderation(document: DebateDocument) -> Iterable[Block]:
    used = [moderation_words(one) for one in document.moderation if one.used]
    if used:
        yield Heading("Moderation")
        yield Items(used)


def _end(document: DebateDocument) -> Iterable[Block]:
    if document.failures:
        yield Heading("Asks without a usable reply")
        yield Items(
            [f"{one.role}, {place_words(one.path, one.role)}: {one.failure}: {one.error}" for one in document.failures]
        )
    yield Heading("Cost")
    yield Note(f"{cost_words(document.cost)}. Record: {document.run}")
