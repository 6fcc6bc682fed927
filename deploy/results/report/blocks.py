"""Blocks of a report, in reading order. Their texts are not escaped: renderers do that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: level 1 for the report, 2 for a section, 3 for a subsection."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph. Styles: `strong` for the main result, `warning`, `dim` for how to read the block above."""

    text: str
    style: str = ""


class Table(NamedTuple):
    """A table of texts with an optional title; " /" in a column's title begins a new line on a terminal.

    Attributes:
        grouped: whether rows are grouped under the values of the first column, on a terminal.
        folded: whether it is too long to be read: an HTML page collapses it, and other formats leave it out.
        terse: a shorter table for terminals; None for the same one.
        case_column: the column of case ids, which a page links to their transcripts; None where there is none.
        one_line: whether a terminal gives each row one line: the first column stays whole, the others are cut, the last
            one first.
        optional: columns that a terminal then leaves out where the last one would be cut, the first one first.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    grouped: bool = False
    folded: bool = False
    terse: Table | None = None
    case_column: int | None = None
    one_line: bool = False
    optional: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Pairs:
    """Name-value pairs; on a terminal a value may have several lines."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Items:
    """A list of single lines."""

    items: Sequence[str]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Quote:
    """A verbatim quotation under a line that names its author; `failed` when it could not be used."""

    head: str
    text: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TextFigure:
    """A text figure, drawn for a number of columns, in ASCII only or not; Markdown leaves it out."""

    draw: Callable[[int, bool], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a chart.

    Attributes:
        name: what the legend calls it.
        x: positions, all numbers or all words (categories).
        y: values, None for an unknown one; empty for a band without a line in it.
        low, high: ends of each value's interval: error bars of points and bars, a band around a line; empty where
            there are none.
        cases: the case of each point, whose transcript a click opens; empty where points are not cases.
        style: which of the series' colours, markers and dashes it has; series of one style belong together. None for
            its place in the chart.
    """

    name: str
    x: Sequence[float | str]
    y: Sequence[float | None] = ()
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    mark: Literal["points", "line", "bars", "band"] = "points"
    cases: Sequence[str] = ()
    style: int | None = None


class Guide(NamedTuple):
    """A straight line across a chart, such as a threshold: at that x, or at that y."""

    label: str
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: a page draws it with a table of its numbers; the other forms leave it out.

    Attributes:
        name: unique in a report, of letters, digits and hyphens: its anchor, and its file's name.
        title: what it shows, in one line.
        note: how to read it.
        x_range, y_range: ends of the axes; None to fit the values.
        x_log: whether the x axis is logarithmic.
    """

    name: str
    title: str
    series: Sequence[Series]
    x_label: str = ""
    y_label: str = ""
    note: str = ""
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    x_log: bool = False
    guides: Sequence[Guide] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """A command or a file excerpt to copy: it is not wrapped."""

    text: str


Block = Heading | Note | Table | Pairs | Items | Quote | TextFigure | Chart | Code
