"""Data and tables of a report's charts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from moot.deploy.results.report.blocks import Chart, Series, Table
from moot.deploy.results.text import number, visible_line

MOST_POINTS = 20_000
"""Points of one series that a page draws at most; of a longer series, it draws every n-th point."""

MOST_ROWS = 200
"""Rows of a chart's table at most."""

_DIGITS = 5


def chart_data(chart: Chart) -> dict[str, Any]:
    """Data of a chart for a page, as JSON values; null for a number that is not finite."""
    return {
        "name": chart.name,
        "title": visible_line(chart.title),
        "x": {"label": visible_line(chart.x_label), "range": chart.x_range, "log": chart.x_log},
        "y": {"label": visible_line(chart.y_label), "range": chart.y_range},
        "guides": [{"label": visible_line(guide.label), "x": guide.x, "y": guide.y} for guide in chart.guides],
        "series": [_series_data(series) for series in chart.series],
    }


def chart_table(chart: Chart) -> Table:
    """Table of a chart's numbers, with at most `MOST_ROWS` rows; its title states their total number."""
    has_interval = any(len(series.low) for series in chart.series)
    has_cases = any(len(series.cases) for series in chart.series)
    header = ["series", chart.x_label or "x", chart.y_label or "y"]
    header += ["low", "high"] if has_interval else []
    header += ["case"] if has_cases else []
    rows = list(islice(_rows(chart, has_interval, has_cases), MOST_ROWS))
    total = sum(len(series.x) for series in chart.series)
    shown = (
        f"first {len(rows):,} of {total:,} points"
        if total > len(rows)
        else f"{total:,} point{'s' if total != 1 else ''}"
    )
    case_column = len(header) - 1 if has_cases else None
    return Table(f"Numbers of this figure: {shown}", header, rows, folded=True, case_column=case_column)


def _rows(chart: Chart, has_interval: bool, has_cases: bool) -> Iterator[list[str]]:
    for series in chart.series:
        for i, x in enumerate(series.x):
            row = [series.name, _words(x), _words(_at(series.y, i))]
            row += [_words(_at(series.low, i)), _words(_at(series.high, i))] if has_interval else []
            row += [series.cases[i] if len(series.cases) else ""] if has_cases else []
            yield row


def _series_data(series: Series) -> Mapping[str, Any]:
    step = math.ceil(len(series.x) / MOST_POINTS) or 1
    data: dict[str, Any] = {"name": visible_line(series.name), "mark": series.mark, "style": series.style}
    data["x"] = [_finite(x) for x in series.x[::step]]
    for name in ("y", "low", "high"):
        if len(values := getattr(series, name)):
            data[name] = [_finite(value) for value in values[::step]]
    if len(series.cases):
        data["cases"] = list(series.cases[::step])
    if step > 1:
        data["sampled"] = f"1 of {step} points"
    return data


def _at(values: Sequence[float | None], i: int) -> float | None:
    return values[i] if len(values) else None


def _finite(value: float | str | None) -> float | str | None:
    """Number rounded to `_DIGITS` significant digits, None if it is not finite; or text escaped by `visible_line`."""
    if value is None or isinstance(value, str):
        return value if value is None else visible_line(value)
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _words(value: float | str | None) -> str:
    return value if isinstance(value, str) else number(value, 4)
