"""What a panel made of a reply under a rubric, as a transcript shows it: every judge's scores, and the panel's."""

from __future__ import annotations

from collections.abc import Iterable

from moot.deploy.reading.text import number, percent
from moot.deploy.reading.transcripts.shown import Shown
from moot.deploy.reading.transcripts.views import EventView
from moot.protocols.rubrics.assessed import ASSESSMENT, AssessmentData, MarkData, read_assessment
from moot.protocols.rubrics.mark_sheet import FLAG


def assessment_event(event: EventView) -> Shown | None:
    """An `assessment` event as shown; None when it is none, or does not look like one."""
    data = read_assessment(event.data) if event.kind == ASSESSMENT else None
    if data is None:
        return None
    names = data.dimensions
    flag = ("flag",) if _flags(data) else ()
    header = ("judge", "pass", *(name.replace("_", " ") for name in names), "Q", *flag)
    rows = [tuple(_row(mark, names, data)) for mark in data.judges]
    if len(data.judges) > 1:
        share = (percent(data.flag),) if flag else ()
        means = (number(data.scores[name], 2) for name in names)
        rows.append(("panel", "", *means, number(data.quality, 2), *share))
    lines = [
        f"{mark.judge}, pass {mark.pass_index}, is missing: {mark.missing}" for mark in data.judges if mark.missing
    ]
    said = f" by the {data.role}" if data.role != data.reply else ""
    return Shown(f"judged under the rubric {data.rubric}: the {data.reply}{said}", header, rows, lines)


def _flags(data: AssessmentData) -> bool:
    return FLAG in data.ends or not data.scales


def _row(mark: MarkData, names: Iterable[str], data: AssessmentData) -> Iterable[str]:
    yield from (mark.judge, str(mark.pass_index))
    scores = mark.scores or {}
    yield from ("missing" if mark.scores is None else str(scores.get(name, "-")) for name in names)
    yield "missing" if mark.total is None else str(mark.total)
    if _flags(data):
        yield {True: "FLAGGED", False: "-", None: "missing"}[mark.flag]
