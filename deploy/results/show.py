"""What `moot show` prints: a run's summary, or one of its debates, with a figure of its rounds as SVG or PNG."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from rich.console import Console

from moot.actors.record.files import write_whole
from moot.actors.record.store.mirror import record_path
from moot.deploy.results.figures.round_trace import PlotPanel, RoundTrace, Series
from moot.deploy.results.figures.summary import Summary, record_summary, summary_blocks
from moot.deploy.results.figures.worth import baseline_blocks
from moot.deploy.results.protocol_parts import document_of
from moot.deploy.results.record import RunRecord
from moot.deploy.results.recorded_data import Transcript
from moot.deploy.results.report.blocks import Block
from moot.deploy.results.report.display import displays
from moot.deploy.results.report.plots import (
    OF_ALL,
    OF_SIDES,
    LineStyle,
    plot_style,
    plot_text,
    render_figure,
    require_matplotlib,
)
from moot.deploy.results.report.render import show_report
from moot.deploy.results.text import natural_sort_key, visible_line
from moot.deploy.results.transcript import build_transcript
from moot.deploy.results.transcript_blocks import transcript_blocks
from moot.protocols.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SUFFIXES = (".svg", ".png")
"""Suffixes of a figure's file."""

_WIDTH_INCHES, _ROW_INCHES, _HEAD_INCHES = 8.0, 1.5, 0.9
_LABEL_LENGTH = 18
_NAME_LENGTH = 48
_MOST_LINES = 8


def check_figure_file(file: Path) -> None:
    """Validates the file name of a figure.

    Raises:
        ConfigError: it has none of the `SUFFIXES`, it is a folder, or matplotlib is not installed.
    """
    if file.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"--plot {file}: a figure's name ends in {' or '.join(SUFFIXES)}")
    if file.is_dir():
        raise ConfigError(f"--plot {file}: that is a folder")
    require_matplotlib("--plot")


def save_figure(debate: Transcript, file: Path) -> None:
    """Writes a debate's figure; an existing file is replaced atomically, a missing folder is made.

    Raises:
        ConfigError: see `check_figure_file`; or no round of the debate has a plotted measure.
        RecordError: the file cannot be written.
    """
    check_figure_file(file)
    write_whole(file, draw_figure(debate, file.suffix.lower().removeprefix(".")))


def draw_figure(debate: Transcript, form: str) -> bytes:
    """Draws a debate's figure.

    Args:
        form: `svg` or `png`.

    Raises:
        ConfigError: no round of the debate has a plotted measure.
    """
    panels = _panels(debate.trace)
    if debate.trace is None or not panels:
        raise ConfigError(f"case {visible_line(debate.case_id)!r} has no rounds with numbers: there is nothing to plot")
    from matplotlib.figure import Figure

    height = _HEAD_INCHES + _ROW_INCHES * len(panels)
    with plot_style():
        drawn = Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")
        drawn.suptitle(_title(debate), fontsize=11, fontweight="bold" if debate.simulated else "normal")
        places = drawn.subplots(len(panels), sharex=True, squeeze=False).flatten()
        for axes, (panel, several) in zip(places, panels.items(), strict=True):
            _draw(axes, panel, several, debate.trace.rounds)
        _label_rounds(places[-1], debate.trace.rounds)
        drawn.align_ylabels(places)
        return render_figure(drawn, form)


def _panels(trace: RoundTrace | None) -> dict[PlotPanel, list[Series]]:
    found: dict[PlotPanel, list[Series]] = {}
    for series in trace.series if trace is not None else ():
        if series.measure.panel is not None and any(value is not None for value in series.values):
            found.setdefault(series.measure.panel, []).append(series)
    return found


def _title(debate: Transcript) -> str:
    texts = [plot_text(name) for name in (Path(debate.run).name, debate.case_id)]
    run, case = (text if len(text) <= _NAME_LENGTH else f"{text[: _NAME_LENGTH - 3]}..." for text in texts)
    return f"{run}, case {case}" + ("\nSIMULATED models" if debate.simulated else "")


def _draw(axes: Axes, panel: PlotPanel, every: Sequence[Series], rounds: Sequence[int]) -> None:
    several = sorted(every, key=lambda series: bool(series.of))[:_MOST_LINES]
    for series, look in zip(several, _looks(several), strict=True):
        axes.plot(
            rounds,
            [nan if value is None else value for value in series.shown],
            label=plot_text(series.title),
            color=look.color,
            marker=look.marker,
            markersize=look.size,
            markerfacecolor="none",
            linestyle=look.dashes,
            clip_on=False,
            zorder=4 if series.of else 3,
        )
    axes.set_ylabel(fill(panel.axis, _LABEL_LENGTH))
    lowest = min(value for series in several for value in series.shown if value is not None)
    low, high = axes.get_ylim()
    axes.set_ylim(low if lowest < 0.0 else 0.0, panel.top if panel.top is not None else max(high, 1e-9))
    more = f"and {len(every) - len(several)} more" if len(every) > len(several) else None
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), title=more, title_fontsize=8.5)


def _label_rounds(axes: Axes, rounds: Sequence[int]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("round")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlim(rounds[0] - 0.2, rounds[-1] + 0.2)


def _looks(several: Sequence[Series]) -> Iterator[LineStyle]:
    """Line style of each series: a side has one style in every panel, a pair that of its first side unless taken."""
    sides = sorted({series.of.partition(">")[0] for series in several if series.of}, key=natural_sort_key)
    free = [*OF_SIDES, *OF_ALL]
    for series in several:
        own = OF_SIDES[sides.index(series.of.partition(">")[0]) % len(OF_SIDES)] if series.of else OF_ALL[0]
        look = own if own in free else next(one for one in (free if series.of else reversed(free)))
        free.remove(look)
        yield look


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
        run = RunRecord(folder)
        show_report(record_summary(run), lambda: run_blocks(run), form, console)
        return
    debate = build_transcript(record_path(folder), case_id, attempt)
    if plot is not None:
        save_figure(debate, Path(plot))
    show_report(document_of(debate) or debate, lambda: debate_blocks(debate, verbose=verbose), form, console)


@displays(Transcript)
def debate_blocks(debate: Transcript, *, verbose: bool = False) -> list[Block]:
    """Report blocks of a debate: its protocol's own view of it, else the transcript."""
    document = None if verbose else document_of(debate)
    return transcript_blocks(debate, verbose=verbose) if document is None else list(document.report_blocks())


def show_summary(summary: Summary, form: str = "text", console: Console | None = None) -> None:
    """Shows a summary on the console."""
    show_report(summary, lambda: summary_blocks(summary), form, console)


def run_blocks(run: RunRecord) -> list[Block]:
    """Report blocks of a run: its summary, with the baselines that its record has."""
    return summary_blocks(record_summary(run), list(baseline_blocks(run)))
