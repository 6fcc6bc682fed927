"""The one table of events that are shown in words of their own, by kind; and what a panel made of a reply."""

from __future__ import annotations

from collections.abc import Iterable

from moot.deploy.reading.frozen import read_as
from moot.deploy.reading.report.blocks import Block, Note, Pairs
from moot.deploy.reading.text import number, percent
from moot.deploy.reading.transcripts import ceda, evince, selene
from moot.deploy.reading.transcripts.shown import Kinds, noted, plain_pairs
from moot.deploy.reading.transcripts.views import EventView
from moot.protocols.rubrics.assessed import ASSESSMENT, AssessmentData, MarkData, read_assessment
from moot.protocols.rubrics.mark_sheet import FLAG


def event_blocks(event: EventView) -> list[Block]:
    """An event as blocks of a report; one that nothing here knows as its pairs of key and value."""
    if (blocks := known_event(event)) is not None:
        return blocks
    pairs = list(plain_pairs(event.data))
    title = Note(f"{event.kind} at {event.path}", "strong")
    return [title, Pairs(pairs)] if pairs else [title]


def known_event(event: EventView) -> list[Block] | None:
    """An event in words of its own; None for one of another kind or shape than is known here."""
    if event.kind == ASSESSMENT:
        assessment = read_assessment(event.data)
        return None if assessment is None else _assessment(assessment)
    shape, show = _KINDS.get(event.kind, (None, None))
    data = None if shape is None else read_as(shape, event.data)
    return None if show is None or data is None else show(event, data)


def _assessment(data: AssessmentData) -> list[Block]:
    names = data.dimensions
    flag = ("flag",) if _flags(data) else ()
    header = ("judge", "pass", *(name.replace("_", " ") for name in names), "Q", *flag)
    rows = [tuple(_marks(mark, names, data)) for mark in data.judges]
    if len(data.judges) > 1:
        share = (percent(data.flag),) if flag else ()
        means = (number(data.scores[name], 2) for name in names)
        rows.append(("panel", "", *means, number(data.quality, 2), *share))
    lines = [
        f"{mark.judge}, pass {mark.pass_index}, is missing: {mark.missing}" for mark in data.judges if mark.missing
    ]
    said = f" by the {data.role}" if data.role != data.reply else ""
    return noted(f"judged under the rubric {data.rubric}: the {data.reply}{said}", header, rows, lines)


def _flags(data: AssessmentData) -> bool:
    return FLAG in data.ends or not data.scales


def _marks(mark: MarkData, names: Iterable[str], data: AssessmentData) -> Iterable[str]:
    yield from (mark.judge, str(mark.pass_index))
    scores = mark.scores or {}
    yield from ("missing" if mark.scores is None else str(scores.get(name, "-")) for name in names)
    yield "missing" if mark.total is None else str(mark.total)
    if _flags(data):
        yield {True: "FLAGGED", False: "-", None: "missing"}[mark.flag]


_KINDS: Kinds = {**evince.KINDS, **ceda.KINDS, **selene.KINDS}
