"""How well the replies of a run were reasoned, as its judges of reasoning have it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import fmean

from pydantic import BaseModel, ConfigDict

from moot.actors.record.schema import CaseKey
from moot.deploy.reading.record import Noted
from moot.deploy.reading.text import number, percent
from moot.protocols.rubrics.assessed import ASSESSMENT, AssessmentData, read_assessment


class RoleReasoning(BaseModel):
    """The judged replies of one role.

    Attributes:
        role: who spoke.
        quality: mean Q of the replies that have a judgment; None without any.
        flagged: share of them that at least half of their judgments flag; None without any.
        replies: how many have a judgment.
        judgments: asked for; `missing` of them did not come, and are in no mean.
    """

    model_config = ConfigDict(frozen=True)

    role: str
    quality: float | None
    flagged: float | None
    replies: int
    judgments: int
    missing: int


def reasoning_by_role(events: Iterable[Noted], finished: Collection[CaseKey]) -> list[RoleReasoning] | None:
    """The `assessment` events of finished debates, counted by role in order of name; None when there are none."""
    found: dict[str, list[AssessmentData]] = {}
    for event in events:
        if event.kind != ASSESSMENT or event.key not in finished:
            continue
        if (assessment := read_assessment(event.data)) is not None:
            found.setdefault(assessment.role, []).append(assessment)
    return [_counted(role, assessments) for role, assessments in sorted(found.items())] or None


def _counted(role: str, assessments: Sequence[AssessmentData]) -> RoleReasoning:
    qualities = [each.quality for each in assessments if each.quality is not None]
    flags = [each.flagged for each in assessments if each.flagged is not None]
    return RoleReasoning(
        role=role,
        quality=fmean(qualities) if qualities else None,
        flagged=fmean(flags) if flags else None,
        replies=len(qualities),
        judgments=sum(len(each.judges) for each in assessments),
        missing=sum(each.missing for each in assessments),
    )


def reasoning_rows(found: Iterable[RoleReasoning]) -> Iterable[tuple[str, str]]:
    """The figures as pairs of a name and a value in words."""
    for each in found:
        words = f"Q {number(each.quality, 2)}, flagged {percent(each.flagged)} (n = {each.replies:,})"
        if each.missing:
            words += f"; {each.missing:,} of {each.judgments:,} judgments missing"
        yield f"reasoning: {each.role}", words
