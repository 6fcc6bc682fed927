"""What judges made of an argument, as a transcript shows it: each reason and rival with how it counts."""

from __future__ import annotations

from collections.abc import Iterable

from moot.deploy.reading.event_shape import read_as
from moot.deploy.reading.text import number
from moot.deploy.reading.transcripts.evince_events import CritData, Point, ReadByJudge
from moot.deploy.reading.transcripts.shown import Shown
from moot.deploy.reading.transcripts.views import EventView
from moot.protocols.crit.scoring import out_of_ten

_HEADER = ("judge", "", "argument", "gamma", "theta", "s")


def crit_event(event: EventView) -> Shown | None:
    """A `crit` event as shown; None when it does not look like one."""
    data = read_as(CritData, event.data)
    if data is None:
        return None
    rows = [row for judge, read in data.judges.items() for row in _rows(judge, read)]
    lines = [f"{judge} {out_of_ten(score)}" for judge, score in data.by_judge.items() if len(data.by_judge) > 1]
    lines += [f"{judge} is missing: {why}" for judge, why in data.missing.items()]
    lines += [f"contradicts the given facts: {text}" for text in data.contradicted]
    lines += [f"weak: {text}" for text in data.weak]
    if data.notes:
        lines.append(f"notes: {', '.join(data.notes)}")
    return Shown(f"CRIT of {event.path.removeprefix('crit/')}: {out_of_ten(data.score)}", _HEADER, rows, lines)


def _rows(judge: str, read: ReadByJudge, depth: int = 0) -> Iterable[tuple[str, ...]]:
    for kind, points in (("reason", read.reasons), ("rival", read.rivals)):
        for point in points:
            counts = number(point.s) if point.repeats is None else "repeated"
            yield judge, f"{'> ' * depth}{kind}", _words(point), number(point.gamma), number(point.theta), counts
            if point.deeper is not None:
                yield from _rows(judge, point.deeper, depth + 1)


def _words(point: Point) -> str:
    return f"{point.text} (contradicts the given facts)" if point.contradicts_facts else point.text
