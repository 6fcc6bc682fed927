"""Plot style of all figures: fonts, lines, a colour-blind-safe palette, and rendering to bytes."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from moot.deploy.results.text import visible_line
from moot.protocols.errors import ConfigError

if TYPE_CHECKING:
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
