"""Judges: how far they agree with each other and with themselves, position bias, and each judge against the panel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from moot.deploy.results.detection.estimates import IntervalEstimate, in_units
from moot.deploy.results.report.blocks import Block, Chart, Guide, Heading, Series, Table
from moot.deploy.results.rounds.case_means import mean_over_cases
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.summaries.judging import (
    CaseAssessment,
    JudgingSummary,
    judging_tables,
    read_assessments,
    summarise_judging,
)
from moot.deploy.results.summaries.panel_verdicts import SOCRASYNTH_KEY
from moot.deploy.results.text import count, natural_sort_key
from moot.protocols.socrasynth.events import SocraSynthPayload

Values = Mapping[str, Sequence[tuple[str, float]]]
"""Pairs of a group of cases and a value, by judge."""


def judges(run: RunData) -> Iterator[Block]:
    """The judges' agreement and biases; nothing for a run without judges that can be compared."""
    found = run.summary.judging or summarise_judging(run)
    blocks: list[Block] = []
    if found is not None:
        blocks += [*_agreement(found), *_against_panel(read_assessments(run)), *judging_tables(found)]
    blocks += _position_bias(run)
    if blocks:
        yield Heading("Judges")
        yield from blocks


def _agreement(found: JudgingSummary) -> Iterator[Block]:
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


def _position_bias(run: RunData) -> Iterator[Block]:
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
    means = [_mean(values[judge]) for judge in names]
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


def _mean(found: Sequence[tuple[str, float]]) -> IntervalEstimate:
    """Mean difference with its interval over groups of cases."""
    mean = mean_over_cases(found, lambda group: group)
    ends = None if mean.low is None or mean.high is None else (mean.low, mean.high)
    return IntervalEstimate(value=mean.mean, interval=ends)


def _estimates(name: str, x: Sequence[str], found: Sequence[IntervalEstimate]) -> Series:
    ends = [each.interval or (None, None) for each in found]
    return Series(
        name, x, [each.value for each in found], low=[low for low, _ in ends], high=[high for _, high in ends]
    )
