"""What judges made of how a reply is reasoned, as a transcript shows it: scores, flags, and what is missing."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from moot.deploy.reading.text import number
from moot.deploy.reading.transcripts.shown import Shown
from moot.deploy.reading.transcripts.views import EventView


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class _Judged(_Shape):
    judge: str
    number_of_pass: int = Field(alias="pass")
    scores: dict[str, int] | None
    flag: bool | None
    total: int | None
    issues: str = ""
    missing: str = ""


class _Assessment(_Shape):
    reply: str
    role: str
    judges: list[_Judged]
    scores: dict[str, float | None]
    flag: float | None
    quality: float | None
    missing: int


def assessment_event(event: EventView) -> Shown | None:
    """An `assessment` event as shown; None when it is another one, or does not look like one.

    A judgment that is missing has no scores; it says why below.
    """
    if event.kind != "assessment":
        return None
    try:
        data = _Assessment.model_validate(event.data)
    except ValidationError:
        return None
    rows = [_row(judged, list(data.scores)) for judged in data.judges]
    lines = [f"{judged.judge}: {judged.issues}" for judged in data.judges if judged.flag and judged.issues]
    lines += [f"{judged.judge} is missing: {judged.missing}" for judged in data.judges if judged.missing]
    title = f"reasoning of the {data.role}: Q {number(data.quality)}"
    if data.flag:
        title += f", flagged by {number(100.0 * data.flag)} % of the judgments"
    if data.missing:
        title += f", {data.missing} of {len(data.judges)} judgments missing"
    header = ("judge", "pass", *(name.replace("_", " ") for name in data.scores), "flag", "Q")
    return Shown(title, header, rows, lines)


def _row(judged: _Judged, dimensions: list[str]) -> tuple[str, ...]:
    scores = judged.scores or {}
    flag = "-" if judged.flag is None else "yes" if judged.flag else "no"
    return (
        judged.judge,
        str(judged.number_of_pass),
        *(str(scores.get(name, "-")) for name in dimensions),
        flag,
        "-" if judged.total is None else str(judged.total),
    )
