"""The trace of a debate for a terminal: tables as wide as it is, and under them a small plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from moot.deploy.reading.rounds.measures import Measure, Panel
from moot.deploy.reading.rounds.sparkline import BLOCKS, PLAIN, sparkline
from moot.deploy.reading.rounds.trace import Series, Trace, aligned
from moot.deploy.reading.text import markdown_inline, markdown_table, number, visible_line

_GAP = 2
_ROUND = "round"


@dataclass(frozen=True, slots=True)
class TraceText:
    """A trace as it is printed: one row per round, columns in as many tables as the width asks for, then the plot."""

    trace: Trace

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rounds = [str(n) for n in self.trace.rounds]
        for i, columns in enumerate(_fitting(_columns(self.trace), options.max_width - len(_ROUND) - _GAP)):
            if i:
                yield Text()
            table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
            for heading in (_ROUND, *(column.heading for column in columns)):
                table.add_column(Text(heading), justify="right", vertical="bottom", no_wrap=True)
            for row, name in enumerate(rounds):
                table.add_row(name, *(Text(column.cells[row]) for column in columns))
            yield table
        if len(rounds) > 1:
            yield Text()
            yield from _plot(self.trace, options.max_width, PLAIN if options.ascii_only else BLOCKS)


@dataclass(frozen=True, slots=True)
class _Column:
    heading: str
    cells: list[str]

    @property
    def width(self) -> int:
        return max(map(len, (*self.heading.split("\n"), *self.cells)))


def _columns(trace: Trace) -> list[_Column]:
    return [_Column(_heading(series), aligned(series.shown, series.measure.digits)) for series in trace.series]


def _heading(series: Series) -> str:
    of = visible_line(series.of).replace(">", ">\n")
    name = series.measure.heading.replace(" ", "\n", 1) if " " in series.name else series.measure.heading
    return f"{name}\n{of}" if of else name


def _fitting(columns: Sequence[_Column], width: int) -> Iterable[list[_Column]]:
    """Columns side by side as far as they fit, at least one."""
    line: list[_Column] = []
    for column in columns:
        if line and sum(each.width + _GAP for each in (*line, column)) > width:
            yield line
            line = []
        line.append(column)
    yield line


def _plot(trace: Trace, width: int, levels: str) -> Iterable[Text]:
    """A line per series that has a panel; those of one panel are on one scale, which its first line names."""
    plotted = [(panel, one) for one in trace.series if (panel := one.measure.panel) is not None]
    names = [visible_line(one.title) for _, one in plotted]
    ends = [_ends(one.shown, one.measure) for _, one in plotted]
    beside = max(map(len, names), default=0) + max(map(len, ends), default=0) + 2 * _GAP
    across = max(1, width - beside)
    cells = max(1, min(3, across // len(trace.rounds)))
    for begin in range(0, len(trace.rounds), across):
        part = slice(begin, begin + across)
        if len(trace.rounds) > across:
            yield Text(f"rounds {trace.rounds[part][0]} to {trace.rounds[part][-1]}", style="bold")
        said: set[Panel] = set()
        for (panel, one), name, end in zip(plotted, names, ends, strict=True):
            low, high = _scale(panel, [other.shown for its, other in plotted if its == panel])
            if panel not in said:
                said.add(panel)
                yield Text(f"{panel.axis}, {number(low)} to {number(high)}", style="dim", overflow="fold")
            line = sparkline(one.shown[part], low, high, levels, cells)
            yield Text(f"{name:<{max(map(len, names))}}{'':{_GAP}}{line}{'':{_GAP}}{end}".rstrip(), no_wrap=True)


def _ends(values: Sequence[float | None], measure: Measure) -> str:
    known = [number(value, measure.digits) for value in values if value is not None]
    return f"{known[0]} to {known[-1]}" if known else number(None)


def _scale(panel: Panel, several: Iterable[Sequence[float | None]]) -> tuple[float, float]:
    known = [value for values in several for value in values if value is not None]
    return min([0.0, *known]), max([panel.top or 0.0, *known])


def trace_markdown(trace: Trace) -> str:
    """The trace as a Markdown table."""
    header = [_ROUND, *(markdown_inline(_heading(series).replace("\n", " ")) for series in trace.series)]
    columns = [column.cells for column in _columns(trace)]
    rows = [[str(n), *(cells[i] for cells in columns)] for i, n in enumerate(trace.rounds)]
    return markdown_table(header, rows)
