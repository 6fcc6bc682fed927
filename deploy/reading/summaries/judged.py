"""A run of judges in figures: scores by judge and pass, how far they agree, and the panel's verdict on each reply."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from pydantic import BaseModel, ConfigDict

from moot.deploy.reading.assessments import Assessed, read_assessments
from moot.deploy.reading.natural import natural
from moot.deploy.reading.record import read_facts
from moot.deploy.reading.summaries.consistency import Consistency, judge_consistency
from moot.deploy.reading.summaries.judges import mean_of
from moot.protocols.rubrics.assessed import MarkData, abstentions
from moot.protocols.rubrics.mark_sheet import FLAG


class PassScores(BaseModel):
    """What one judge gave in one pass over all replies; means are over the marks that are there.

    Attributes:
        marks: how many are there.
        scores: by dimension the mean; None without marks.
        quality: mean Q: the sum of the dimensions, 0 when flagged.
        flagged: share of the marks that flag; None without marks, or under a rubric without a flag.
        missing: how many marks are not there, by the kind of failure.
    """

    model_config = ConfigDict(frozen=True)

    judge: str
    model: str
    pass_index: int
    marks: int
    scores: dict[str, float | None]
    quality: float | None
    flagged: float | None
    missing: dict[str, int]


class PanelVerdict(BaseModel):
    """What the panel found of one reply; everything but the counts is None when no mark is there.

    Attributes:
        reply: where it was said.
        means, medians: by dimension.
        quality: mean Q over the marks.
        flag: share of the marks that flag; None under a rubric without a flag.
        marks: how many are there.
        missing: how many are not, by the kind of failure: judges that failed or abstained.
    """

    model_config = ConfigDict(frozen=True)

    case_id: str
    reply: str
    role: str
    means: dict[str, float | None]
    medians: dict[str, float | None]
    quality: float | None
    flag: float | None
    marks: int
    missing: dict[str, int]


class Judging(BaseModel):
    """A run of judges.

    Attributes:
        run: its folder.
        simulated: whether any judge was the simulated model: then the figures mean nothing.
        rubrics: the names of the rubrics that were used, usually one.
        scales: by dimension, and for the flag where there is one, the lowest and the highest score.
        replies: how many were judged, those without any mark included.
        passes: by judge and pass.
        consistency: how far judges agree.
        verdicts: in the order of the task's file.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    simulated: bool
    rubrics: list[str]
    scales: dict[str, tuple[int, int]]
    replies: int
    passes: list[PassScores]
    consistency: Consistency
    verdicts: list[PanelVerdict]

    @property
    def dimensions(self) -> list[str]:
        """The dimensions' names, in the rubric's order."""
        return [name for name in self.scales if name != FLAG]


def judging(folder: str | Path) -> Judging | None:
    """Count the assessments of a run; None when it has none.

    Raises:
        RecordError: there is no run in the folder, or it cannot be read.
    """
    facts = read_facts(folder)
    found = read_assessments(folder)
    if not found:
        return None
    scales = {name: ends for each in found for name, ends in each.data.ends.items()}
    dimensions = [name for name in scales if name != FLAG]
    return Judging(
        run=facts.name,
        simulated=facts.simulated,
        rubrics=sorted({each.data.rubric for each in found}),
        scales=scales,
        replies=len(found),
        passes=_passes(found, dimensions, flagging=FLAG in scales),
        consistency=judge_consistency([each.data for each in found], [each.cluster for each in found]),
        verdicts=[_verdict(each) for each in found],
    )


def _passes(found: Sequence[Assessed], dimensions: Sequence[str], *, flagging: bool) -> list[PassScores]:
    by_pass: dict[tuple[str, int], list[MarkData]] = {}
    for each in found:
        for mark in each.data.judges:
            by_pass.setdefault((mark.judge, mark.pass_index), []).append(mark)
    rows = []
    for judge, number in sorted(by_pass, key=lambda key: (natural(key[0]), key[1])):
        marks = by_pass[judge, number]
        there = [mark for mark in marks if mark.scores is not None]
        rows.append(
            PassScores(
                judge=judge,
                model=next((mark.model for mark in marks if mark.model), ""),
                pass_index=number,
                marks=len(there),
                scores={name: mean_of((mark.scores or {}).get(name) for mark in there) for name in dimensions},
                quality=mean_of(mark.total for mark in there),
                flagged=fmean(bool(mark.flag) for mark in there) if there and flagging else None,
                missing=abstentions(marks),
            )
        )
    return rows


def _verdict(each: Assessed) -> PanelVerdict:
    data = each.data
    return PanelVerdict(
        case_id=each.case_id,
        reply=data.reply,
        role=data.role,
        means=data.scores,
        medians=data.medians,
        quality=data.quality,
        flag=data.flag,
        marks=len(data.marks),
        missing=data.abstentions,
    )
