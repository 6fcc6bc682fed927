"""The trace of a debate as blocks of a report: a table, and a small plot of lines of characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moot.deploy.reading.report.blocks import Block, Figure, Table
from moot.deploy.reading.rounds.measures import Measure, Panel
from moot.deploy.reading.rounds.trace import Series, Trace, aligned
from moot.deploy.reading.text import number, visible_line

_GAP = 2

BLOCKS = "▁▂▃▄▅▆▇█"
"""Levels from lowest to highest where the terminal's encoding has them."""

PLAIN = "_.:-=+*#"
"""The same in ASCII."""


def trace_blocks(trace: Trace) -> list[Block]:
    """A table with a row per round, and under it, of several rounds, a small plot."""
    columns = [aligned(series.shown, series.measure.digits) for series in trace.series]
    rows = [[str(n), *(cells[i] for cells in columns)] for i, n in enumerate(trace.rounds)]
    table = Table("", ["round", *map(_heading, trace.series)], rows)
    plot = Figure(lambda width, plain: _plot(trace, width, PLAIN if plain else BLOCKS))
    return [table, plot] if len(rows) > 1 else [table]


def _heading(series: Series) -> str:
    return f"{series.measure.heading} {visible_line(series.of)}".rstrip()


def _plot(trace: Trace, width: int, levels: str) -> Iterable[str]:
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
            yield f"rounds {trace.rounds[part][0]} to {trace.rounds[part][-1]}"
        said: set[Panel] = set()
        for (panel, one), name, end in zip(plotted, names, ends, strict=True):
            low, high = _scale(panel, [other.shown for its, other in plotted if its == panel])
            if panel not in said:
                said.add(panel)
                yield f"{panel.axis}, {number(low)} to {number(high)}"
            line = sparkline(one.shown[part], low, high, levels, cells)
            yield f"{name:<{max(map(len, names))}}{'':{_GAP}}{line}{'':{_GAP}}{end}".rstrip()


def _ends(values: Sequence[float | None], measure: Measure) -> str:
    known = [number(value, measure.digits) for value in values if value is not None]
    return f"{known[0]} to {known[-1]}" if known else number(None)


def _scale(panel: Panel, several: Iterable[Sequence[float | None]]) -> tuple[float, float]:
    known = [value for values in several for value in values if value is not None]
    return min([0.0, *known]), max([panel.top or 0.0, *known])


def sparkline(values: Sequence[float | None], low: float, high: float, levels: str = BLOCKS, cells: int = 1) -> str:
    """A line of `cells` characters per value; an unknown value is a gap, the lowest known one is not.

    Args:
        low, high: ends of the scale; where they are equal every known value is on the lowest level.

    >>> sparkline([0.0, 0.5, None, 1.0], 0.0, 1.0)
    '▁▅ █'
    >>> sparkline([0.0, 0.5, None, 1.0], 0.0, 1.0, PLAIN, cells=2)
    '__==  ##'
    """
    return "".join(
        cells * (" " if value is None else levels[_level(value, low, high, len(levels))]) for value in values
    )


def _level(value: float, low: float, high: float, n: int) -> int:
    share = (value - low) / (high - low) if high > low else 0.0
    return min(n - 1, max(0, int(share * n)))
