"""Judged replies in a report: confidence along them by role, the judges' scores, and where the two disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moot.deploy.results.figures.confidence_trajectories import (
    band_charts,
    divergence_charts,
    position_charts,
    score_charts,
    signal_charts,
    trajectories,
)
from moot.deploy.results.figures.judged_replies import (
    Replies,
    ReplyFeatures,
    Stratum,
    extract_features,
    replies_of_runs,
    strata,
)
from moot.deploy.results.figures.token_confidence import (
    CASES,
    AnalysisSettings,
    divergence_tables,
    quality_and_confidence,
)
from moot.deploy.results.record import RunRecord
from moot.deploy.results.report.blocks import Block, Heading, Note
from moot.deploy.results.stats import in_units
from moot.deploy.results.text import count, shell_path
from moot.protocols.errors import RecordError
from moot.protocols.rubrics.events import ReplyAssessed
from moot.protocols.rubrics.rubric import shipped_rubric, shipped_rubrics

MOST_LISTED = 100
"""Cases to read that are listed."""

_CASE = [column.key for column in CASES].index("case")


def judged_reasoning(run: RunRecord) -> Iterator[Block]:
    """Replies that judges read under a rubric; nothing for a run without any."""
    if not run.counted_events(ReplyAssessed):
        return
    try:
        replies = replies_of_runs([run.folder])
    except RecordError:  # every judged reply is left out: of debates that failed, or are still open
        return
    yield Heading("Confidence and judged reasoning")
    if left := "; ".join(f"{count(n)} {why}" for why, n in replies.left_out.items()):
        yield Note(f"Judged replies left out: {left}.", "dim")
    yield from _replies(replies, run.info.name)


def _replies(replies: Replies, run: str) -> Iterator[Block]:
    settings = AnalysisSettings()
    measured, by_domain = extract_features(replies), strata(replies, "domain")
    named = [stratum for stratum in strata(replies) if len(stratum.rows) >= settings.too_few]
    if not named:
        yield Note(f"Fewer than {settings.too_few} replies of one role: too few for a figure.")
        return
    yield from _association(measured, named, settings, run)
    found = trajectories(replies, named)
    yield from band_charts(found)
    yield from position_charts(found)
    yield from score_charts(replies, named)
    counted, listed = divergence_tables(measured, by_domain, settings)
    yield from divergence_charts(counted.rows)
    yield from (Note(note, "dim") for note in counted.notes[:1] if counted.rows)
    yield from signal_charts(measured, by_domain, settings)
    if listed.rows:
        title = (
            f"Cases to read, where confidence, judged reasoning and answers disagree: {count(len(listed.rows))} replies"
        )
        yield listed.block(title, MOST_LISTED)._replace(case_column=_CASE)


def _association(
    measured: ReplyFeatures, named: Sequence[Stratum], settings: AnalysisSettings, run: str
) -> Iterator[Note]:
    """Association of confidence with judged quality, by role; nothing where it is unknown."""
    found = [(each, *quality_and_confidence(measured, each, settings)) for each in named]
    known = [(each, rho, n) for each, rho, n in found if rho.value is not None]
    if not known:
        return
    figures = "; ".join(f"{each.words} {in_units(rho, 2, sign='+')} (n = {count(n)})" for each, rho, n in known)
    scales = "; ".join(filter(None, map(_scale, dict.fromkeys(each.rubric for each, _, _ in known))))
    yield Note(
        f"Mean log-probability of a reply's tokens with its judged quality Q{f' ({scales})' if scales else ''}: "
        f"Spearman's rho {figures}, with 95 % intervals over cases. Above 0, confident replies are better reasoned. "
        f"More of this: moot analyze {shell_path(run)}"
    )


def _scale(rubric: str) -> str:
    """Ends of Q under a rubric of the package; empty for another one."""
    if rubric not in shipped_rubrics():
        return ""
    dimensions = shipped_rubric(rubric).dimensions.values()
    low, high = sum(each.lowest for each in dimensions), sum(each.highest for each in dimensions)
    return f"{rubric}: the sum of {len(dimensions)} scores, {low} to {high}; 0 if flagged"
