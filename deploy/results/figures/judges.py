"""Judges: stability over evidence, agreement with each other and with themselves, scores and position bias."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console

from moot.actors.record.schema import CaseKey
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.costs import JUDGE_PASS, verdict_sources
from moot.deploy.results.figures.subjects import SOCRASYNTH_KEY
from moot.deploy.results.record import RunRecord, VerdictRow, once_per_record
from moot.deploy.results.report.blocks import Block, Chart, Guide, Heading, Items, Series, Table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.report.render import banner, show_report
from moot.deploy.results.stats import IntervalEstimate, in_units, mean_over_cases, with_ends
from moot.deploy.results.text import count, counts_in_words, mean_of, natural_sort_key, number, percent
from moot.metrics.agreement import (
    Level,
    Weights,
    ac2_interval,
    alpha_interval,
    gwet_ac2,
    krippendorff_alpha,
    raw_agreement,
    raw_agreement_interval,
)
from moot.metrics.distribution import Floats
from moot.metrics.evidence_weighting import judge_stability
from moot.metrics.jackknife import LEAST_CLUSTERS
from moot.protocols.rubrics.events import JudgeMark, ReplyAssessed, abstentions
from moot.protocols.rubrics.score_sheet import FLAG
from moot.protocols.selene.events import CandidatesJudged
from moot.protocols.selene.scoring import contradicts_score
from moot.protocols.socrasynth.events import SocraSynthPayload


def judge_figures(record: RunRecord, finished: Sequence[VerdictRow]) -> dict[str, Any]:
    """Stability and flip rate of the verdicts' own judging and of audits, by field of `Summary`.

    Each is in [0, 1], None when unknown, a mean over cases, whose number is at the same name with `_cases`. Evidence
    that could not be perturbed does not count. `_split` covers the judgings of at least two answers: a single answer
    cannot flip. `judgments_at_odds` counts the own judgments whose support contradicts their score, among the
    `judgments_read`; None without any.

    Raises:
        RecordError: the record cannot be read.
    """
    keys = {verdict.key for verdict in finished}
    judgings = [(event.key, judged) for event, judged in record.typed_events(CandidatesJudged) if event.key in keys]
    sources = verdict_sources(record)
    paths = {"skip": ("judge/consensus",), "debate": ("judge",)}
    own = [
        judged
        for key, judged in judgings
        if judged.path != "audit/judge" and judged.path in paths.get(sources.get(key, ""), (judged.path,))
    ]
    audit = [judged for _, judged in judgings if judged.path == "audit/judge"]
    stabilities = _stabilities(own) if judgings else _stabilities_of_judgments(record.folder, keys)
    return {
        **_mean("judge_stability", stabilities),
        **_mean("flip_rate", _flip_rates(own)),
        **_mean("flip_rate_split", _flip_rates(filter(_is_split, own))),
        **_mean("judge_stability_audit", _stabilities(audit)),
        **_mean("flip_rate_audit", _flip_rates(audit)),
        **_mean("flip_rate_audit_split", _flip_rates(filter(_is_split, audit))),
        "audit_variants": sorted({judged.variants or "unknown" for judged in audit if not judged.unperturbed}),
        **_at_odds(own),
    }


def _mean(name: str, by_case: Iterable[float | None]) -> dict[str, Any]:
    """Mean over the cases with a known value, and their number."""
    known = [value for value in by_case if value is not None]
    return {name: mean_of(known), f"{name}_cases": len(known)}


def _flip_rates(judgings: Iterable[CandidatesJudged]) -> list[float | None]:
    return [judged.flip_rate for judged in judgings if not judged.unperturbed]


def _is_split(judged: CandidatesJudged) -> bool:
    return len({candidate.answer for candidate in judged.candidates}) > 1


def _stabilities(judgings: Iterable[CandidatesJudged]) -> list[float | None]:
    """Stability by case, the mean of its candidates'."""
    return [
        mean_of(candidate.stability for candidate in judged.candidates) for judged in judgings if not judged.unperturbed
    ]


def _at_odds(judgings: Iterable[CandidatesJudged]) -> dict[str, int | None]:
    """Counts of contradictory judgments, from support and score, which records of all versions have."""
    judgments = [one for judged in judgings for candidate in judged.candidates for one in candidate.judgments]
    read = [(one.support, one.score) for one in judgments if one.support and one.score is not None]
    return {
        "judgments_read": len(read) or None,
        "judgments_at_odds": sum(contradicts_score(support, score) for support, score in read) if read else None,
    }


def _stabilities_of_judgments(folder: str | Path, keys: set[CaseKey]) -> list[float | None]:
    """Stability by case from the table of judgments and their paths, for protocols without `judging` events."""
    scores: dict[CaseKey, dict[str, dict[int, list[float]]]] = {}
    for row in read_table(folder, "judgments", ["score"]).to_pylist():
        place, key = JUDGE_PASS.fullmatch(row["path"]), (row["case_id"], row["attempt"])
        if place is not None and row["score"] is not None and key in keys:
            variants = scores.setdefault(key, {}).setdefault(place[1], {})
            variants.setdefault(int(place[2]), []).append(row["score"])
    return [
        mean_of(
            judge_stability([fmean(variant) for variant in variants.values()])
            for variants in steps.values()
            if len(variants) > 1
        )
        for steps in scores.values()
    ]


FEWEST_UNITS = 2
"""Units with at least two ratings below which no agreement is computed."""


class Agreement(FrozenModel):
    """Agreement of raters on one dimension, or on the flag.

    Attributes:
        name: the dimension's name, or `critical_flag`.
        raters: judges, or passes.
        n: units with at least two ratings: replies within a judge, replies times passes between judges.
        clusters: number of independent cases (or groups of cases) with these units.
        alpha: Krippendorff's alpha, ordinal for a dimension and nominal for the flag; at most 1, 0 for chance.
        raw: raw agreement, the share of equal pairs of ratings, in [0, 1].
        ac2: Gwet's AC2 with ordinal weights; AC1 for the flag.
        why: the reason why alpha is unknown; empty when it is known.
    """

    name: str
    raters: int
    n: int
    clusters: int
    alpha: IntervalEstimate
    raw: IntervalEstimate
    ac2: IntervalEstimate
    why: str


class WithinJudge(FrozenModel):
    """Intra-judge agreement: one judge's agreement with itself over its passes."""

    judge: str
    model: str
    rows: list[Agreement]


class Consistency(FrozenModel):
    """Agreement between and within the judges of a panel.

    Attributes:
        between: inter-judge agreement by dimension, then on the flag; empty with a single judge. Passes of the same
            number are compared.
        within: intra-judge agreement by judge; empty with a single pass.
    """

    between: list[Agreement]
    within: list[WithinJudge]


def judge_consistency(read: Sequence[ReplyAssessed], clusters: Sequence[str | int]) -> Consistency:
    """Agreement between and within judges, from the events `assessment`.

    Args:
        read: the events.
        clusters: the cluster of each event: its case, or its case's group.

    Raises:
        ValueError: the numbers of clusters and assessments differ.
    """
    if len(read) != len(clusters):
        raise ValueError(f"{len(read)} assessments but {len(clusters)} clusters")
    _, numbers = np.unique(np.array([str(cluster) for cluster in clusters]), return_inverse=True)
    marks = {(i, mark.judge, mark.pass_index): mark for i, each in enumerate(read) for mark in each.judges}
    judges = sorted({judge for _, judge, _ in marks}, key=natural_sort_key)
    passes = sorted({number for _, _, number in marks})
    scales = _scales(read)
    between, within = list[Agreement](), list[WithinJudge]()
    if len(judges) > 1:
        units = [(i, number) for i in range(len(read)) for number in passes]
        table = [[marks.get((i, judge, number)) for i, number in units] for judge in judges]
        between = _agreements(table, scales, numbers[[i for i, _ in units]])
    for judge in judges:
        table = [[marks.get((i, judge, number)) for i in range(len(read))] for number in passes]
        model = next((mark.model for row in table for mark in row if mark is not None and mark.model), "")
        if len(passes) > 1:
            within.append(WithinJudge(judge=judge, model=model, rows=_agreements(table, scales, numbers)))
    return Consistency(between=between, within=within)


def _scales(read: Sequence[ReplyAssessed]) -> dict[str, tuple[int, int]]:
    """Lowest and highest score by dimension and of the flag: the stated ends, and the scores that occur."""
    seen: dict[str, list[int]] = defaultdict(list)
    for each in read:
        for name, ends in each.ends.items():
            seen[name] += ends
        for mark in each.judges:
            for name, score in (mark.scores or {}).items():
                seen[name].append(score)
            if mark.flag is not None and not each.scales:
                seen[FLAG] += (0, 1)
    scales = {name: (min(scores), max(scores)) for name, scores in seen.items()}
    flag = {FLAG: scales.pop(FLAG)} if FLAG in scales else {}
    return scales | flag


def _agreements(
    table: Sequence[Sequence[JudgeMark | None]], scales: Mapping[str, tuple[int, int]], clusters: npt.NDArray[Any]
) -> list[Agreement]:
    """Agreement by dimension, then on the flag; `table` has the marks by rater and unit."""
    found = []
    for name, (lowest, highest) in scales.items():
        ratings = np.array([[_rating(mark, name) for mark in row] for row in table], dtype=np.float64)
        found.append(_agreement(name, ratings, range(lowest, highest + 1), clusters))
    return found


def _rating(mark: JudgeMark | None, name: str) -> float:
    if mark is None or mark.scores is None:
        return np.nan
    if name == FLAG:
        return np.nan if mark.flag is None else float(mark.flag)
    return float(mark.scores.get(name, np.nan))


def _agreement(name: str, ratings: Floats, levels: Sequence[int], clusters: npt.NDArray[Any]) -> Agreement:
    pairable = (~np.isnan(ratings)).sum(axis=0) >= 2
    ratings, clusters = ratings[:, pairable], clusters[pairable]
    n, independent = int(pairable.sum()), len(np.unique(clusters))
    made = partial(Agreement, name=name, raters=len(ratings), n=n, clusters=independent)
    unknown = IntervalEstimate()
    if n < FEWEST_UNITS:
        return made(alpha=unknown, raw=unknown, ac2=unknown, why=f"fewer than {FEWEST_UNITS} to compare")
    level: Level = "nominal" if name == FLAG else "ordinal"
    weights: Weights = "identity" if name == FLAG else "ordinal"
    categories = [float(each) for each in levels]
    alpha = krippendorff_alpha(ratings, level)
    ac2 = unknown
    if len(categories) > 1:
        ac2 = with_ends(gwet_ac2(ratings, categories, weights), *ac2_interval(ratings, categories, weights, clusters))
    return made(
        alpha=with_ends(alpha, *alpha_interval(ratings, level, clusters)),
        raw=with_ends(raw_agreement(ratings), *raw_agreement_interval(ratings, clusters)),
        ac2=ac2,
        why="all ratings on one level" if isnan(alpha) else "",
    )


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
        blocks.append(_agreement_table(title, "(replies x passes)", agreement.between))
    blocks += [
        _agreement_table(f"agreement of {each.judge} with itself", "replies", each.rows) for each in agreement.within
    ]
    return [*blocks, _verdicts(found), Items(_caveats(found))]


def _agreement_table(title: str, units: str, rows: Sequence[Agreement]) -> Table:
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


Values = Mapping[str, Sequence[tuple[str, float]]]
"""Pairs of a group of cases and a value, by judge."""


def judges(run: RunRecord) -> Iterator[Block]:
    """The judges' agreement and biases; nothing for a run without judges that can be compared."""
    found = summarise_judging(run)
    blocks: list[Block] = []
    if found is not None:
        blocks += [*_agreement_blocks(found), *_against_panel(read_assessments(run)), *judging_tables(found)]
    blocks += _position_bias(run)
    if blocks:
        yield Heading("Judges")
        yield from blocks


def _agreement_blocks(found: JudgingSummary) -> Iterator[Block]:
    """Krippendorff's alpha by dimension, between the judges and of each with itself."""
    groups = {"between judges": found.consistency.between}
    groups |= {f"{each.judge} with itself": each.rows for each in found.consistency.within}
    series = [
        _estimates(name, [row.name.replace("_", " ") for row in rows], [row.alpha for row in rows])
        for name, rows in groups.items()
        if any(row.alpha.value is not None for row in rows)
    ]
    if series:
        yield Chart(
            "agreement",
            "How far the judges agree: Krippendorff's alpha",
            series,
            y_label="alpha",
            guides=[Guide("chance", y=0.0)],
            note="1 is full agreement, 0 is chance. Bars are 95 % intervals over groups of cases.",
        )


def _against_panel(found: Sequence[CaseAssessment]) -> Iterator[Block]:
    """Each judge's quality score less the mean of the others' on the same reply."""
    values: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for each in found:
        totals: dict[str, list[float]] = defaultdict(list)
        for mark in each.data.judges:
            if mark.total is not None:
                totals[mark.judge].append(mark.total)
        means = {judge: fmean(scores) for judge, scores in totals.items()}
        for judge, mean in means.items():
            if others := [other for name, other in means.items() if name != judge]:
                values[judge].append((each.cluster, mean - fmean(others)))
    yield from _differences(
        values,
        "panel",
        "Each judge against the panel: quality score less the mean of the other judges",
        "points of Q",
        "Above 0 a judge is more lenient than the others, below 0 stricter.",
    )


def _position_bias(run: RunRecord) -> Iterator[Block]:
    """First-position advantage by judge, where judges saw both orders."""
    finished = {verdict.key for verdict in run.verdicts if not verdict.failed}
    values: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for (case_id, attempt), payload in run.payloads(SocraSynthPayload, SOCRASYNTH_KEY):
        if (case_id, attempt) not in finished:
            continue
        for judge, bias in payload.position_bias.items():
            if bias is not None:
                values[judge].append((run.references.group(case_id), bias))
    yield from _differences(
        values,
        "position-bias",
        "Position bias: what coming first is worth to a side",
        "marks",
        "Each judge read both orders. Above 0 the first side gains by coming first.",
    )


def _differences(values: Values, name: str, title: str, unit: str, note: str) -> Iterator[Block]:
    names = sorted(values, key=natural_sort_key)
    if not names:
        return
    means = [_mean_over_replies(values[judge]) for judge in names]
    yield Chart(
        name,
        title,
        [_estimates("judges", names, means)],
        y_label=unit,
        guides=[Guide("none", y=0.0)],
        note=f"{note} Bars are 95 % intervals over groups of cases.",
    )
    rows = [(judge, in_units(mean, 2), count(len(values[judge]))) for judge, mean in zip(names, means, strict=True)]
    yield Table("", ("judge", f"{unit} [95 % interval]", "n"), rows)


def _mean_over_replies(found: Sequence[tuple[str, float]]) -> IntervalEstimate:
    """Mean difference with its interval over groups of cases."""
    mean = mean_over_cases(found, lambda group: group)
    ends = None if mean.low is None or mean.high is None else (mean.low, mean.high)
    return IntervalEstimate(value=mean.mean, interval=ends)


def _estimates(name: str, x: Sequence[str], found: Sequence[IntervalEstimate]) -> Series:
    ends = [each.interval or (None, None) for each in found]
    return Series(
        name, x, [each.value for each in found], low=[low for low, _ in ends], high=[high for _, high in ends]
    )
