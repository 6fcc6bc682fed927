"""Display of a run's summary or of one of its debates, in a terminal, as JSON, or as Markdown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from moot.actors.record.store.mirror import record_path
from moot.deploy.results.detection.show import detection_blocks
from moot.deploy.results.document.blocks import document_blocks
from moot.deploy.results.document.read import build_document
from moot.deploy.results.report.blocks import Block, Heading, Note, Pairs
from moot.deploy.results.report.render import banner, show_report
from moot.deploy.results.rounds.figure import save_figure
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.run_report.worth import baseline_blocks
from moot.deploy.results.summaries.judging import judging_tables
from moot.deploy.results.summaries.model_replies import reply_blocks
from moot.deploy.results.summaries.scores import score_blocks
from moot.deploy.results.summaries.summary import Summary
from moot.deploy.results.summaries.summary_rows import summary_rows
from moot.deploy.results.transcripts.blocks import transcript_blocks
from moot.deploy.results.transcripts.transcript import build_transcript
from moot.deploy.results.transcripts.views import Transcript
from moot.protocols.errors import ConfigError


def show(
    folder: str | os.PathLike[str],
    case_id: str | None = None,
    *,
    attempt: int | None = None,
    form: str = "text",
    plot: str | Path | None = None,
    verbose: bool = False,
    console: Console | None = None,
) -> None:
    """Shows a run's summary, or one debate's transcript; for a debate on a subject, its document.

    Args:
        folder: the run's folder.
        case_id: the debate to show; None for the summary.
        attempt: number of the attempt; None for the latest one with a verdict, or the latest if none has one.
        form: `text`, `json` or `md`.
        plot: a file, .svg or .png, for a plot of the debate's rounds; an existing file is replaced.
        verbose: whether a transcript shows the path of each reply and event in the record.
        console: the console; None for standard output.

    Raises:
        ConfigError: the case, the attempt or the format is unknown, or a plot cannot be made.
        RecordError: the folder has no run or cannot be read, or the plot cannot be written.
    """
    if case_id is None:
        if plot is not None:
            raise ConfigError("--plot needs one debate: name a case")
        run = RunData(folder)
        show_report(run.summary, lambda: run_blocks(run), form, console)
        return
    debate = build_transcript(record_path(folder), case_id, attempt)
    if plot is not None:
        save_figure(debate, Path(plot))
    show_report(build_document(debate) or debate, lambda: debate_blocks(debate, verbose=verbose), form, console)


def debate_blocks(debate: Transcript, *, verbose: bool = False) -> list[Block]:
    """Report blocks of a debate: the document of a debate on a subject, the transcript of any other."""
    document = build_document(debate)
    return (
        document_blocks(document)
        if document is not None and not verbose
        else transcript_blocks(debate, verbose=verbose)
    )


def show_summary(summary: Summary, form: str = "text", console: Console | None = None) -> None:
    """Shows a summary on the console."""
    show_report(summary, lambda: summary_blocks(summary), form, console)


def run_blocks(run: RunData) -> list[Block]:
    """Report blocks of a run: its summary, with the baselines that its record has."""
    return summary_blocks(run.summary, list(baseline_blocks(run)))


def summary_blocks(summary: Summary, baselines: Sequence[Block] = ()) -> list[Block]:
    """Report blocks of a summary: warnings, figures, and tables."""
    return [
        *banner(summary.simulated),
        Heading(f"Run {summary.run}", 1),
        *(Note(f"warning: {line}", "warning") for line in summary.warnings),
        Pairs(summary_rows(summary)),
        *baselines,
        *score_blocks(summary.scores or ()),
        *([] if summary.detection is None else detection_blocks(summary.detection)),
        *reply_blocks(summary.model_replies),
        *([] if summary.judging is None else judging_tables(summary.judging)),
        Note(f"record: {summary.run}", "dim"),
    ]
