"""Charts as Matplotlib figures, for SVG and PNG files: the series, intervals and guides that a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING

from moot.deploy.results.plotting import OF_ALL, OF_SIDES, LineStyle, plot_label
from moot.deploy.results.report.blocks import Chart, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES, _HEAD_INCHES, _PANEL_INCHES = 8.0, 0.4, 2.6
_TITLE_LENGTH, _NAME_LENGTH, _CATEGORY_LENGTH = 90, 24, 18
_ALL_BARS = 0.8
_MANY_CATEGORIES, _MOST_MARKERS = 8, 60
_LOOKS = (*OF_SIDES, *OF_ALL)


def draw_charts(charts: Sequence[Chart]) -> Figure | None:
    """A figure with a panel for each chart, one below the other; None without any chart.

    Call it inside `moot.deploy.results.plotting.plot_style`.
    """
    if not charts:
        return None
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(_WIDTH_INCHES, _HEAD_INCHES + _PANEL_INCHES * len(charts)), layout="constrained")
    places = drawn.subplots(len(charts), squeeze=False).flatten()
    for axes, chart in zip(places, charts, strict=True):
        _draw(axes, chart)
    return drawn


def _draw(axes: Axes, chart: Chart) -> None:
    categories = list(dict.fromkeys(x for series in chart.series for x in series.x if isinstance(x, str)))
    bars = [series for series in chart.series if series.mark == "bars"]
    width = _ALL_BARS / max(1, len(bars))
    for place, series in enumerate(chart.series):
        look = _LOOKS[(place if series.style is None else series.style) % len(_LOOKS)]
        across = [float(categories.index(x)) if isinstance(x, str) else float(x) for x in series.x]
        if series.mark == "bars":
            shift = (bars.index(series) + 0.5) * width - _ALL_BARS / 2
            _bars(axes, series, [x + shift for x in across], width, look)
        else:
            _curve(axes, series, across, look)
    if chart.x_log:
        axes.set_xscale("log")
    if categories:
        turned = 45 if len(categories) > _MANY_CATEGORIES else 0
        axes.set_xticks(range(len(categories)), [plot_label(each, _CATEGORY_LENGTH) for each in categories])
        axes.tick_params(axis="x", labelrotation=turned)
    _frame(axes, chart)


def _bars(axes: Axes, series: Series, across: Sequence[float], width: float, look: LineStyle) -> None:
    axes.bar(across, _known(series.y), width, label=_name(series), color=look.color, edgecolor="white")
    _intervals(axes, series, across, "black")


def _curve(axes: Axes, series: Series, across: Sequence[float], look: LineStyle) -> None:
    """Points, a line with its band, or a band alone."""
    label, color, y = _name(series), look.color, _known(series.y)
    if series.mark == "points":
        axes.plot(across, y, look.marker, label=label, color=color, markersize=look.size / 1.5)
        _intervals(axes, series, across, color)
        return
    if len(series.low):
        name = label if series.mark == "band" else None
        axes.fill_between(across, _known(series.low), _known(series.high), color=color, alpha=0.2, lw=0, label=name)
    if series.mark == "line":
        marker = look.marker if len(across) <= _MOST_MARKERS else None
        axes.plot(across, y, color=color, linestyle=look.dashes, marker=marker, markersize=3.5, label=label)


def _intervals(axes: Axes, series: Series, across: Sequence[float], color: str) -> None:
    if len(series.low):
        axes.vlines(across, _known(series.low), _known(series.high), color=color, linewidth=1.2)


def _frame(axes: Axes, chart: Chart) -> None:
    """Title, labels, ranges, guides and legend."""
    for guide in chart.guides:
        line = axes.axvline if guide.x is not None else axes.axhline
        at = guide.x if guide.x is not None else guide.y
        if at is None:
            continue
        line(at, color="#767676", linewidth=0.9, linestyle=":")
        place = (at, 0.97) if guide.x is not None else (0.01, at)
        transform = axes.get_xaxis_transform() if guide.x is not None else axes.get_yaxis_transform()
        axes.text(*place, plot_label(guide.label, _NAME_LENGTH), fontsize=7.5, va="top", transform=transform)
    axes.set_title(plot_label(chart.title, _TITLE_LENGTH, lines=3), fontsize=9.5, loc="left")
    axes.set_xlabel(plot_label(chart.x_label, _TITLE_LENGTH))
    axes.set_ylabel(plot_label(chart.y_label, _NAME_LENGTH))
    if chart.x_range is not None:
        axes.set_xlim(chart.x_range)
    if chart.y_range is not None:
        axes.set_ylim(chart.y_range)
    if len(chart.series) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _known(values: Sequence[float | None]) -> list[float]:
    return [nan if value is None else value for value in values]


def _name(series: Series) -> str:
    return plot_label(series.name, _NAME_LENGTH)
