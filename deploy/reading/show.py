"""Shows a run's summary: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from moot.actors.record.store.mirror import record_path
from moot.deploy.reading.detection.show import detection_markdown, detection_text
from moot.deploy.reading.document.markdown import document_markdown
from moot.deploy.reading.document.read import document_of
from moot.deploy.reading.document.text import document_text
from moot.deploy.reading.rounds.figure import save_figure
from moot.deploy.reading.simulated import SIMULATED
from moot.deploy.reading.summaries.judged_show import judging_tables, judging_tables_markdown
from moot.deploy.reading.summaries.model_replies_show import REPLIES_NOTE, reply_table
from moot.deploy.reading.summaries.scores import SCORES_HEADER, SCORES_NOTE, score_rows, scores_markdown
from moot.deploy.reading.summaries.summary import Summary, summarise
from moot.deploy.reading.summaries.summary_rows import summary_rows
from moot.deploy.reading.text import (
    emit,
    markdown_inline,
    markdown_table,
    safe_json,
    visible_line,
)
from moot.deploy.reading.transcripts.markdown import transcript_markdown
from moot.deploy.reading.transcripts.text import transcript_text
from moot.deploy.reading.transcripts.transcript import transcript
from moot.deploy.reading.transcripts.views import Transcript
from moot.protocols.errors import ConfigError


def show(
    folder: str | Path,
    case_id: str | None = None,
    *,
    attempt: int | None = None,
    form: str = "text",
    plot: str | Path | None = None,
    console: Console | None = None,
) -> None:
    """Write a run's summary, or one debate's transcript, to the console; of a debate on a subject, a document.

    Args:
        folder: the run's folder.
        case_id: the debate to show; None for the summary.
        attempt: of the case; None for the latest.
        form: `text`, `json` or `md`.
        plot: a file, .svg or .png, that the debate's rounds are plotted into; an existing one is replaced.
        console: standard output when None.

    Raises:
        ConfigError: for an unknown case, attempt or format, or a plot that cannot be made.
        RecordError: when there is no run in the folder or it cannot be read, or the plot cannot be written.
    """
    if case_id is None:
        if plot is not None:
            raise ConfigError("--plot is of one debate: name a case")
        show_summary(summarise(folder), form, console)
        return
    debate = transcript(record_path(folder), case_id, attempt)
    if plot is not None:
        save_figure(debate, Path(plot))
    document = document_of(debate)
    emit(
        form,
        text=lambda: debate_text(debate),
        json=lambda: safe_json(document or debate),
        md=lambda: transcript_markdown(debate) if document is None else document_markdown(document),
        console=console,
    )


def debate_text(debate: Transcript) -> RenderableType:
    """A debate for a terminal as `show` gives it: of a debate on a subject a document, of any other its transcript."""
    document = document_of(debate)
    return transcript_text(debate) if document is None else document_text(document)


def show_summary(summary: Summary, form: str = "text", console: Console | None = None) -> None:
    """Write a summary to the console."""
    emit(
        form,
        text=lambda: summary_text(summary),
        json=lambda: safe_json(summary),
        md=lambda: summary_markdown(summary),
        console=console,
    )


def summary_text(summary: Summary) -> RenderableType:
    """The summary for a terminal."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in summary_rows(summary):
        table.add_row(Text(visible_line(name)), Text(visible_line(value)))
    parts: list[RenderableType] = [
        table,
        *_scores(summary),
        *_replies(summary),
        Text(f"record: {visible_line(summary.run)}", style="dim"),
    ]
    if summary.detection is not None:
        parts.insert(-1, detection_text(summary.detection))
    if summary.judging is not None:
        parts += [Text(), judging_tables(summary.judging)]
    parts[:0] = [Text(visible_line(f"warning: {line}"), style="bold yellow") for line in summary.warnings]
    if summary.simulated:
        parts.insert(0, Text(SIMULATED, style="bold yellow"))
    return Group(*parts)


def _replies(summary: Summary) -> list[RenderableType]:
    """What the models did, as a table of its own, where anything is noteworthy."""
    header, rows = reply_table(summary.model_replies)
    if not rows:
        return []
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in header:
        table.add_column(name, overflow="fold")
    for cells in rows:
        table.add_row(*(Text(visible_line(cell)) for cell in cells))
    return [Text(), Text(REPLIES_NOTE, style="dim"), table, Text()]


def _scores(summary: Summary) -> list[RenderableType]:
    """How scores of texts agree with the raters, as a table of its own with its note."""
    if not summary.scores:
        return []
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in SCORES_HEADER:
        table.add_column(name, no_wrap=True)
    for cells in score_rows(summary.scores):
        table.add_row(*(Text(visible_line(cell)) for cell in cells))
    return [Text(), table, Text(SCORES_NOTE, style="dim"), Text()]


def summary_markdown(summary: Summary) -> str:
    """The summary as Markdown."""
    head = f"# Run {markdown_inline(summary.run)}\n\n"
    if summary.simulated:
        head += f"**{SIMULATED}**\n\n"
    head += "".join(f"**warning:** {markdown_inline(line)}\n\n" for line in summary.warnings)
    header, rows = reply_table(summary.model_replies)
    replies = f"\n\n{REPLIES_NOTE}\n\n{markdown_table(header, rows)}" if rows else ""
    tables = "" if summary.judging is None else f"\n{judging_tables_markdown(summary.judging)}"
    scores = f"\n\n{scores_markdown(summary.scores)}" if summary.scores else ""
    claims = f"\n\n{detection_markdown(summary.detection)}" if summary.detection is not None else ""
    return head + markdown_table(("", "value"), summary_rows(summary)) + scores + claims + replies + "\n" + tables
