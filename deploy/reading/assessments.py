"""The events `assessment` of a run: what each judge gave each reply, read from the record."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from moot.actors.record.tables import read_table
from moot.deploy.reading.record import read_events
from moot.protocols.rubrics.assessed import ASSESSMENT, AssessmentData, read_assessment


class Assessed(NamedTuple):
    """An assessment of a run, with the case that it is of.

    Attributes:
        cluster: the case's group, or the case itself: what is not independent has the same.
    """

    case_id: str
    attempt: int
    cluster: str
    data: AssessmentData


def read_assessments(folder: str | Path) -> list[Assessed]:
    """The assessments of each case's latest attempt that has any, in the order of the task's file.

    Raises:
        RecordError: the record cannot be read.
    """
    events = read_events(folder, [ASSESSMENT])
    if not events:
        return []
    cases = {row["case_id"]: row for row in read_table(folder, "cases", ["index", "group"]).to_pylist()}
    latest: dict[str, int] = {}
    for event in events:
        latest[event.case_id] = max(event.attempt, latest.get(event.case_id, 0))
    found = []
    for event in events:
        data = read_assessment(event.data)
        if data is not None and event.attempt == latest[event.case_id]:
            group = cases.get(event.case_id, {}).get("group")
            found.append(Assessed(event.case_id, event.attempt, group or event.case_id, data))
    return sorted(found, key=lambda each: (cases.get(each.case_id, {}).get("index", 0), each.case_id, each.data.reply))
