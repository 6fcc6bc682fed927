"""Figures as files: charts drawn by matplotlib, in one style with a colour-blind-safe palette."""

from __future__ import annotations

import math
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from moot.actors.record.files import write_whole
from moot.deploy.results.report.blocks import Block, Chart, Guide, Series
from moot.deploy.results.report.charts import MOST_POINTS
from moot.deploy.results.text import visible_line
from moot.protocols.errors import ConfigError, RecordError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DOTS_PER_INCH = 200
_NO_XML = re.compile("[\ufffe\uffff]")
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "moot",
    "text.parse_math": False,
    "text.usetex": False,
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e4e4e4",
    "axes.edgecolor": "#767676",
    "lines.linewidth": 1.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.columnspacing": 1.2,
    "legend.borderaxespad": 0.2,
}


class LineStyle(NamedTuple):
    """Line style; markers and dashes distinguish lines without colour. The palette is Okabe and Ito's.

    Markers are open and of different sizes, so that they are visible where lines coincide.
    """

    color: str
    marker: str
    size: float
    dashes: str


OF_ALL = (LineStyle("#000000", "D", 8.0, "-"), LineStyle("#767676", "x", 5.0, ":"))
"""Styles of series over all sides."""

OF_SIDES = (
    LineStyle("#0072B2", "o", 6.0, "-"),
    LineStyle("#D55E00", "s", 4.0, "--"),
    LineStyle("#009E73", "^", 7.0, "-."),
    LineStyle("#CC79A7", "v", 7.0, ":"),
    LineStyle("#56B4E9", "P", 6.0, "-"),
    LineStyle("#E69F00", "X", 6.0, "--"),
)
"""Styles of the sides, in order."""


def has_matplotlib() -> bool:
    """Whether matplotlib is installed."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def require_matplotlib(what: str) -> None:
    """Checks that matplotlib is installed.

    Raises:
        ConfigError: it is not installed; `what` needs it.
    """
    if not has_matplotlib():
        raise ConfigError(f"{what} needs matplotlib, which is not installed: pip install 'moot[plot]'")


def plot_text(written: str) -> str:
    """Text of a model or a file, sanitised for a figure."""
    return _NO_XML.sub("\ufffd", visible_line(written))


def plot_label(written: str, width: int, lines: int = 2) -> str:
    """Sanitised text wrapped into a few lines of `width` characters; a longer text keeps its beginning and its end.

    >>> print(plot_label("set-7 / http://127.0.0.1:8000/v1#some/model / T 0.3 / auditor", 20))
    set-7 / http … l / T
    0.3 / auditor
    """
    text, most = plot_text(written), width * lines * 4 // 5
    if len(text) > width * lines:
        text = f"{text[: most * 2 // 5].rstrip()} … {text[-(most * 3 // 5) :].lstrip()}"
    return "\n".join(textwrap.wrap(text, width)[: lines + 1])


@contextmanager
def plot_style() -> Iterator[None]:
    """Context manager of the common plot style, for drawing and rendering figures."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def render_figure(drawn: Figure, form: str) -> bytes:
    """Renders a figure as `svg` or `png`, deterministically. Call it inside `plot_style`."""
    written = BytesIO()
    drawn.savefig(written, format=form, dpi=_DOTS_PER_INCH, metadata={"Date": None} if form == "svg" else None)
    return written.getvalue()


FORMS = ("svg", "png")
"""File formats of every figure."""

_STYLES = (*OF_SIDES, *OF_ALL)
_HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++", "oo")
_WIDTHS = {"bars": 0.8, "points": 0.3}
"""Share of a category's width for the bars, or points, of all series."""

_SIZE_INCHES = (8.0, 4.2)
_HEAD_INCHES, _PANEL_INCHES = 0.4, 2.6
_TITLE, _LABEL, _CATEGORY, _NOTE = 90, 70, 16, 120
"""Characters per line of the title, of an axis label, of a category and of the caption."""

_MANY = 2_000
"""Points of a series that are SVG elements at most; a larger series is embedded as a picture."""

_MARKED = 60
"""Points of a line with markers at most; a longer line has none."""


def check_figures_folder(folder: Path) -> None:
    """Checks that figures can be drawn, and written to a folder, which may not exist yet.

    Raises:
        ConfigError: matplotlib is not installed, or the folder is a file.
    """
    require_matplotlib("--figures")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--figures {folder}: that is a file; name a folder")


def save_figures(blocks: Iterable[Block], folder: Path, *, simulated: bool) -> list[Path]:
    """Writes each chart as NAME.svg and NAME.png, deterministically; existing files are replaced.

    Args:
        blocks: blocks of a report.
        folder: the folder, which is created if it does not exist.
        simulated: whether the titles state that the models are simulated.

    Returns:
        The paths of the files.

    Raises:
        ConfigError: matplotlib is not installed, or the folder is a file.
        RecordError: a file cannot be written.
    """
    check_figures_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"--figures {folder}: {error.strerror or error}") from error
    files = []
    for chart in (block for block in blocks if isinstance(block, Chart)):
        for form in FORMS:
            files.append(folder / f"{chart.name}.{form}")
            write_whole(files[-1], draw_chart(chart, form, simulated=simulated))
    return files


def draw_chart(chart: Chart, form: str, *, simulated: bool = False) -> bytes:
    """Image of a chart.

    Args:
        chart: the chart.
        form: `svg` or `png`.
        simulated: whether the title states that the models are simulated.
    """
    from matplotlib.figure import Figure

    with plot_style():
        drawn = Figure(figsize=_SIZE_INCHES, layout="constrained")
        axes = drawn.subplots()
        _draw_on(axes, chart)
        title = plot_label(chart.title, _TITLE)
        axes.set_title(f"{title}\nSIMULATED models" if simulated else title, loc="left", fontsize=10.5)
        if chart.note:
            drawn.supxlabel(textwrap.fill(plot_text(chart.note), _NOTE), x=0.01, ha="left", fontsize=8, color="#444444")
        return render_figure(drawn, form)


def draw_charts(charts: Sequence[Chart]) -> Figure | None:
    """Figure with a panel for each chart, one below the other; None without a chart.

    Call it inside `plot_style`.
    """
    if not charts:
        return None
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(_SIZE_INCHES[0], _HEAD_INCHES + _PANEL_INCHES * len(charts)), layout="constrained")
    for axes, chart in zip(drawn.subplots(len(charts), squeeze=False).flatten(), charts, strict=True):
        _draw_on(axes, chart)
        axes.set_title(plot_label(chart.title, _TITLE, lines=3), loc="left", fontsize=9.5)
    return drawn


def _draw_on(axes: Axes, chart: Chart) -> None:
    axes.set_axisbelow(True)
    categories = list(dict.fromkeys(x for series in chart.series for x in series.x if isinstance(x, str)))
    for place, series in enumerate(chart.series):
        style = (place if series.style is None else series.style) % len(_STYLES)
        _draw(axes, chart, series, style, categories)
    _axes(axes, chart, categories)
    for guide in chart.guides:
        _guide(axes, guide)
    if len(chart.series) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _dodge(series: Series, several: Sequence[Series], categories: Sequence[str]) -> tuple[float, float]:
    """Layout of a series within a category: its width, and its distance from the middle, in categories."""
    alike = [each for each in several if each.mark == series.mark]
    width = _WIDTHS.get(series.mark, 0.0) / len(alike)
    place = next(i for i, each in enumerate(alike) if each is series)
    return width, (place - (len(alike) - 1) / 2) * width if categories else 0.0


def _draw(axes: Axes, chart: Chart, series: Series, style: int, categories: Sequence[str]) -> None:
    step = math.ceil(len(series.x) / MOST_POINTS) or 1
    width, shift = _dodge(series, chart.series, categories)
    x = _positions(series.x[::step], categories) + shift
    y, low, high = (_numbers(values[::step]) for values in (series.y, series.low, series.high))
    line_style, label = _STYLES[style], plot_label(series.name, 28, 3)
    marked: dict[str, Any] = {
        "marker": line_style.marker,
        "markersize": line_style.size,
        "markerfacecolor": "none",
        "color": line_style.color,
    }
    if series.mark == "bars":
        axes.bar(x, y, width, color=line_style.color, edgecolor="white", hatch=_HATCHES[style], label=label)
    elif series.mark == "points":
        axes.plot(x, y, linestyle="", label=label, zorder=3, clip_on=False, rasterized=len(x) > _MANY, **marked)
    elif len(y):
        marked["marker"] = line_style.marker if len(x) <= _MARKED else ""
        axes.plot(x, y, linestyle=line_style.dashes, label=label, zorder=3, **marked)
    if len(low) and series.mark in _WIDTHS:
        axes.vlines(x, low, high, color="black" if series.mark == "bars" else line_style.color, linewidth=1.1, zorder=2)
    elif len(low):
        named = label if series.mark == "band" else None
        axes.fill_between(x, low, high, color=line_style.color, alpha=0.18, linewidth=0, label=named)


def _positions(values: Sequence[float | str], categories: Sequence[str]) -> np.ndarray:
    places = {word: float(place) for place, word in enumerate(categories)}
    return np.array([places[value] if isinstance(value, str) else value for value in values], dtype=float)


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def _axes(axes: Axes, chart: Chart, categories: Sequence[str]) -> None:
    if categories:
        words = [plot_label(word, 2 * _CATEGORY) for word in categories]
        is_long = max(map(len, categories)) > _CATEGORY or len(categories) > 10
        axes.set_xticks(
            range(len(categories)), words, rotation=30 if is_long else 0, ha="right" if is_long else "center"
        )
        axes.set_xlim(-0.6, len(categories) - 0.4)
    if chart.x_log:
        axes.set_xscale("log")
    if chart.x_range is not None:
        axes.set_xlim(*chart.x_range)
    if chart.y_range is not None:
        axes.set_ylim(*chart.y_range)
    axes.set_xlabel(plot_label(chart.x_label, _LABEL))
    axes.set_ylabel(plot_label(chart.y_label, _LABEL // 2))


def _guide(axes: Axes, guide: Guide) -> None:
    """Draws a dashed line across the chart, with its label at an end."""
    style: dict[str, Any] = {"color": "#767676", "linewidth": 1.0, "linestyle": (0, (5, 4)), "zorder": 1}
    label = plot_text(guide.label)
    words: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "color": "#444444"}
    if guide.x is not None:
        axes.axvline(guide.x, **style)
        is_right = guide.x > sum(axes.get_xlim()) / 2
        side: dict[str, Any] = {"xytext": (-3 if is_right else 3, -9), "ha": "right" if is_right else "left"}
        axes.annotate(label, (guide.x, 1.0), xycoords=("data", "axes fraction"), **side, **words)
    elif guide.y is not None:
        axes.axhline(guide.y, **style)
        axes.annotate(label, (0.0, guide.y), xycoords=("axes fraction", "data"), xytext=(3, 3), **words)
