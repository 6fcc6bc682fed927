"""Summary of a judging run: scores by judge and pass, agreement, and panel verdicts by reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from rich.console import Console

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.estimates import in_units
from moot.deploy.results.record.run_record import RunRecord, once_per_record
from moot.deploy.results.report.blocks import Block, Heading, Items, Table
from moot.deploy.results.report.render import banner, show_report
from moot.deploy.results.summaries.consistency import Agreement, Consistency, judge_consistency
from moot.deploy.results.text import count, counts_in_words, mean_of, natural_sort_key, number, percent
from moot.metrics.jackknife import LEAST_CLUSTERS
from moot.protocols.rubrics.events import JudgeMark, ReplyAssessed, abstentions
from moot.protocols.rubrics.score_sheet import FLAG


class CaseAssessment(NamedTuple):
    """Assessment of a reply, with its case.

    Attributes:
        cluster: the case's group, else the case's id; dependent cases share it.
    """

    case_id: str
    attempt: int
    cluster: str
    data: ReplyAssessed


@once_per_record
def read_assessments(record: RunRecord) -> list[CaseAssessment]:
    """Assessments of the attempts that count (see `counted_rows`), in the order of the task's file.

    Raises:
        RecordError: the record cannot be read.
    """
    events = record.counted_events(ReplyAssessed)
    if not events:
        return []
    places = dict(zip(*(record.cases[name].to_pylist() for name in ("case_id", "index")), strict=True))
    group = record.references.group
    found = [CaseAssessment(place.case_id, place.attempt, group(place.case_id), data) for place, data in events]
    return sorted(found, key=lambda each: (places.get(each.case_id, 0), each.case_id, each.data.reply))


class PassScores(FrozenModel):
    """Scores of one judge in one pass over all replies; means are over the available marks.

    Attributes:
        marks: number of available marks.
        scores: mean by dimension; None without marks.
        quality: mean Q; Q is the sum of the dimensions, 0 when flagged. None without marks.
        flagged: share of the marks that flag; None without marks, or under a rubric without a flag.
        missing: number of missing marks by kind of failure.
    """

    judge: str
    model: str
    pass_index: int
    marks: int
    scores: dict[str, float | None]
    quality: float | None
    flagged: float | None
    missing: dict[str, int]


class PanelVerdict(FrozenModel):
    """Verdict of the panel on one reply; everything but the counts is None without a mark.

    Attributes:
        reply: the reply's path.
        means, medians: by dimension.
        quality: mean Q over the marks.
        flag: share of the marks that flag; None under a rubric without a flag.
        marks: number of available marks.
        missing: number of missing marks (the judge failed or abstained) by kind of failure.
    """

    case_id: str
    reply: str
    role: str
    means: dict[str, float | None]
    medians: dict[str, float | None]
    quality: float | None
    flag: float | None
    marks: int
    missing: dict[str, int]


class JudgingSummary(FrozenModel):
    """Summary of a judging run.

    Attributes:
        run: the run's folder.
        simulated: whether any judge was the simulated model; the figures then say nothing about real models.
        rubrics: names of the used rubrics, usually one.
        scales: lowest and highest score, by dimension and of the flag where there is one.
        replies: number of judged replies, those without any mark included.
        passes: scores by judge and pass.
        consistency: agreement of the judges.
        verdicts: panel verdicts, in the order of the task's file.
    """

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
        """Names of the dimensions, in the rubric's order."""
        return [name for name in self.scales if name != FLAG]


@once_per_record
def summarise_judging(record: RunRecord) -> JudgingSummary | None:
    """Summary of the assessments of a run; None without any.

    Raises:
        RecordError: the folder has no run or cannot be read.
    """
    facts, found = record.info, read_assessments(record)
    if not found:
        return None
    scales = {name: ends for each in found for name, ends in each.data.ends.items()}
    dimensions = [name for name in scales if name != FLAG]
    return JudgingSummary(
        run=facts.name,
        simulated=facts.simulated,
        rubrics=sorted({each.data.rubric for each in found}),
        scales=scales,
        replies=len(found),
        passes=_passes(found, dimensions, flagging=FLAG in scales),
        consistency=judge_consistency([each.data for each in found], [each.cluster for each in found]),
        verdicts=[_verdict(each) for each in found],
    )


def _passes(found: Sequence[CaseAssessment], dimensions: Sequence[str], *, flagging: bool) -> list[PassScores]:
    by_pass: dict[tuple[str, int], list[JudgeMark]] = {}
    for each in found:
        for mark in each.data.judges:
            by_pass.setdefault((mark.judge, mark.pass_index), []).append(mark)
    rows = []
    for judge, pass_index in sorted(by_pass, key=lambda key: (natural_sort_key(key[0]), key[1])):
        marks = by_pass[judge, pass_index]
        available = [mark for mark in marks if mark.scores is not None]
        rows.append(
            PassScores(
                judge=judge,
                model=next((mark.model for mark in marks if mark.model), ""),
                pass_index=pass_index,
                marks=len(available),
                scores={name: mean_of((mark.scores or {}).get(name) for mark in available) for name in dimensions},
                quality=mean_of(mark.total for mark in available),
                flagged=fmean(bool(mark.flag) for mark in available) if available and flagging else None,
                missing=abstentions(marks),
            )
        )
    return rows


def _verdict(each: CaseAssessment) -> PanelVerdict:
    data = each.data
    return PanelVerdict(
        case_id=each.case_id,
        reply=data.reply,
        role=data.role,
        means=data.scores,
        medians=data.medians,
        quality=data.quality,
        flag=data.flag,
        marks=len(data.given),
        missing=data.abstentions,
    )


_SHOWN = 20
"""Replies listed in a terminal; JSON has all."""


_LEGEND = "alpha, AC2: 1 is full agreement, 0 is chance; [95 % intervals], over cases"


def show_judging(found: JudgingSummary, form: str = "text", console: Console | None = None) -> None:
    """Shows the summary of a judging run on the console."""
    head = [*banner(found.simulated), Heading("Judges", 1)]
    show_report(found, lambda: [*head, *judging_tables(found)], form, console)


def judging_tables(found: JudgingSummary) -> list[Block]:
    """Report blocks of a judging run: scores, agreement between and within judges, verdicts, and caveats."""
    agreement = found.consistency
    blocks = [_scores(found)]
    if agreement.between:
        title = f"agreement of {agreement.between[0].raters} judges with each other"
        blocks.append(_agreement(title, "(replies x passes)", agreement.between))
    blocks += [_agreement(f"agreement of {each.judge} with itself", "replies", each.rows) for each in agreement.within]
    return [*blocks, _verdicts(found), Items(_caveats(found))]


def _agreement(title: str, units: str, rows: Sequence[Agreement]) -> Table:
    """Table of agreement; a number of units that all rows share is in the title."""
    counts = {row.n for row in rows}
    alike = f", n = {counts.pop():,} {units}" if len(counts) == 1 else ""
    header = ("", *(() if alike else ("n",)), "Krippendorff's alpha", "raw", "Gwet's AC2")
    cells = [(_plain(row.name), *(() if alike else (count(row.n),)), *_figures(row)) for row in rows]
    return Table(f"{title}{alike}", header, cells)


def _scores(found: JudgingSummary) -> Table:
    several = any(row.pass_index for row in found.passes)
    title = f"mean scores by judge and pass, rubric {', '.join(found.rubrics)} (Q: the sum, 0 when flagged)"
    header = ("judge", *(("pass",) if several else ()), *_score_heads(found))
    rows = [
        (
            row.judge,
            *((str(row.pass_index),) if several else ()),
            *_means(row, row.scores, row.flagged, found),
        )
        for row in found.passes
    ]
    return Table(title, header, rows)


def _score_heads(found: JudgingSummary) -> tuple[str, ...]:
    flag = ("flagged",) if FLAG in found.scales else ()
    return (*map(_plain, found.dimensions), "Q", *flag, "marks")


def _means(
    row: PassScores | PanelVerdict, means: Mapping[str, float | None], flagged: float | None, found: JudgingSummary
) -> Iterable[str]:
    """Cells of a row: means by dimension, Q, the share of flags under a rubric with a flag, and the number of marks."""
    yield from (number(means.get(name), 2) for name in found.dimensions)
    yield number(row.quality, 2)
    if FLAG in found.scales:
        yield percent(flagged)
    yield f"{row.marks:,} of {row.marks + sum(row.missing.values()):,}" if row.missing else count(row.marks)


def _verdicts(found: JudgingSummary) -> Table:
    """Table of the panel's means by ascending Q; replies without a mark come first."""
    rows = sorted(found.verdicts, key=lambda row: -1.0 if row.quality is None else row.quality)
    shown = "" if len(rows) <= _SHOWN else f", {_SHOWN} of {len(rows):,} (`--format json` lists all)"
    title = f"the panel's verdicts: means over the marks, lowest Q first{shown}"
    cells = [
        (
            row.case_id if row.reply == "reply" else f"{row.case_id} {row.reply}",
            *_means(row, row.means, row.flag, found),
        )
        for row in rows[:_SHOWN]
    ]
    return Table(title, ("case", *_score_heads(found)), cells)


def _figures(row: Agreement) -> tuple[str, ...]:
    alpha = f"- ({row.why})" if row.alpha.value is None else in_units(row.alpha, 2, unknown="-")
    return (alpha, in_units(row.raw, 2, unknown="-"), in_units(row.ac2, 2, unknown="-"))


def _caveats(found: JudgingSummary) -> list[str]:
    models = {row.judge: row.model or "no usable reply" for row in found.passes}
    caveats = ["; ".join(f"{judge}: {model}" for judge, model in models.items())]
    missing: dict[str, Counter[str]] = {}
    for row in found.passes:
        missing.setdefault(row.judge, Counter()).update(row.missing)
    caveats += [f"missing marks of {judge}: {counts_in_words(kinds)}" for judge, kinds in missing.items() if kinds]
    agreements = [*found.consistency.between, *(row for each in found.consistency.within for row in each.rows)]
    if agreements:
        caveats.append(_LEGEND)
    independent = max((row.clusters for row in agreements), default=0)
    if agreements and independent < LEAST_CLUSTERS:
        caveats.append(f"{independent} independent cases: there are intervals from {LEAST_CLUSTERS} on")
    if found.consistency.between and (same := _same_model(found.passes)):
        caveats.append(f"{same} are the same model: their agreement is no more evidence than that of its passes")
    return caveats


def _same_model(passes: Sequence[PassScores]) -> str:
    """Judges of the model that most judges share; empty when no two share one."""
    judges: dict[str, dict[str, None]] = {}
    for row in passes:
        if row.model:
            judges.setdefault(row.model, {})[row.judge] = None
    most = max(judges.values(), key=len, default={})
    return " and ".join(most) if len(most) > 1 else ""


def _plain(name: str) -> str:
    return name.replace("_", " ")
