"""The events `assessment` of a run: what each judge gave each reply, read from the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from moot.actors.record.tables import read_table
from moot.deploy.reading.record import read_events


class MarkData(BaseModel):
    """One judge's reading of one reply in one pass; `scores`, `flag` and `total` are None where `missing` says why."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    judge: str
    model: str
    pass_index: int = Field(alias="pass")
    scores: dict[str, int] | None
    flag: bool | None
    total: int | None
    missing: str = ""
    issues: str = ""
    reasoning: str = ""

    @property
    def why(self) -> str:
        """The kind of failure behind a missing mark; empty for one that is there."""
        return self.missing.partition(":")[0]


class AssessmentData(BaseModel):
    """What a panel found of one reply; see `moot.protocols.rubrics.panel.Assessment`.

    Attributes:
        scales: by dimension, in the rubric's order, the lowest and the highest score, and of the flag where the rubric
            has one; empty where the event does not say.
    """

    model_config = ConfigDict(frozen=True)

    reply: str
    role: str
    domain: str
    rubric: str
    scales: dict[str, tuple[int, int]] = {}
    judges: list[MarkData]
    scores: dict[str, float | None]
    flag: float | None
    quality: float | None
    missing: int

    @field_validator("scales", mode="before")
    @classmethod
    def _in_order(cls, given: Any) -> Any:
        """The record sorts the keys of a mapping, so that there it is a list of names and ends."""
        if isinstance(given, list) and all(isinstance(each, list) and len(each) == 3 for each in given):
            return {name: (lowest, highest) for name, lowest, highest in given}
        return given


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
    events = read_events(folder, ["assessment"])
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


def read_assessment(data: object) -> AssessmentData | None:
    """An event's data; None when it does not look like an assessment."""
    try:
        return AssessmentData.model_validate(data)
    except ValidationError:
        return None
