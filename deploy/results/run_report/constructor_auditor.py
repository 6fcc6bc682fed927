"""Judged replies in a report: confidence along them by role, the judges' scores, and where the two disagree."""

from __future__ import annotations

from collections.abc import Iterator

from moot.deploy.results.analysis.charts import (
    band_charts,
    divergence_charts,
    position_charts,
    score_charts,
    signal_charts,
)
from moot.deploy.results.analysis.divergences import CASES, divergence_tables
from moot.deploy.results.analysis.recorded import replies_of_runs
from moot.deploy.results.analysis.replies import Replies, extract_features, strata
from moot.deploy.results.analysis.settings import AnalysisSettings
from moot.deploy.results.analysis.trajectories import trajectories
from moot.deploy.results.report.blocks import Block, Heading, Note
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.text import count
from moot.protocols.errors import RecordError
from moot.protocols.rubrics.events import ReplyAssessed

MOST_LISTED = 100
"""Cases to read that are listed."""

_CASE = [column.key for column in CASES].index("case")


def constructor_auditor(run: RunData) -> Iterator[Block]:
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
    yield from _replies(replies)


def _replies(replies: Replies) -> Iterator[Block]:
    settings = AnalysisSettings()
    measured, by_domain = extract_features(replies), strata(replies, "domain")
    named = [stratum for stratum in strata(replies) if len(stratum.rows) >= settings.too_few]
    if not named:
        yield Note(f"Fewer than {settings.too_few} replies of one role: too few for a figure.")
        return
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
