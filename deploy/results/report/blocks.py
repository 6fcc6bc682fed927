"""Blocks of a report. Their texts are not escaped; renderers escape them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple


@dataclass(frozen=True, slots=True)
class Heading:
    """Heading: level 1 for the report, 2 for a section, 3 for a subsection."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Note:
    """Paragraph. Styles: `strong` for the main result, `warning`, `dim` for an explanation of the block above."""

    text: str
    style: str = ""


class Table(NamedTuple):
    """Table of texts with an optional title; " /" in a column's title begins a new line in a terminal.

    Attributes:
        grouped: whether a terminal groups rows under the values of the first column.
        folded: whether an HTML page collapses the table and other formats omit it, because it is long.
        terse: a shorter table for terminals; None for the same one.
        case_column: index of the column of case ids, which a page links to their transcripts; None without one.
        one_line: whether a terminal shows each row on one line: the first column is complete, the others are truncated,
            the last one first.
        optional: indices of columns that a terminal omits, in this order, if the last column would be truncated; used
            with `one_line`.
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


def one_line_title(head: str) -> str:
    """Title of a column on one line, outside a terminal.

    >>> one_line_title("tokens /case"), one_line_title("F1 /macro")
    ('tokens per case', 'F1 macro')
    """
    return head.replace(" /case", " per case").replace(" /", " ")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Name-value pairs; in a terminal a value may have several lines."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Items:
    """List of single lines."""

    items: Sequence[str]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Quote:
    """Verbatim quotation under a line that names its author; `failed` for an unusable one."""

    head: str
    text: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TextFigure:
    """Text figure; `draw` returns its lines for a width in characters, in ASCII only or not. Markdown omits it."""

    draw: Callable[[int, bool], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Series:
    """Series of a chart.

    Attributes:
        name: name in the legend.
        x: positions, all numbers or all texts (categories).
        y: values, None for an unknown one; empty for a band without a line in it.
        low, high: ends of each value's interval: error bars of points and bars, a band around a line; empty without
            intervals.
        cases: case id of each point, whose transcript a click opens; empty where points are not cases.
        style: index of its colour, marker and dashes; series with the same style belong together. None for its index in
            the chart.
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
    """Straight line across a chart, such as a threshold, at an x or at a y."""

    label: str
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """Chart: a page draws it with a table of its numbers; the other formats omit it.

    Attributes:
        name: name of its anchor and its files, of letters, digits and hyphens; unique in a report.
        title: its title, one line.
        note: its explanation.
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
    """Command or file excerpt to copy; it is not wrapped."""

    text: str


Block = Heading | Note | Table | Pairs | Items | Quote | TextFigure | Chart | Code


MOST_SHOWN = 100_000
"""Most characters of a text that are shown: layout takes up to ten microseconds a character. No reply within the usual
limits, and few passages, are as long."""


_LINE = 100
"""Characters that the line on the rest has at most."""


def beginning(text: str, whole: str = ": `moot show RUN CASE --format json` has them all") -> str:
    """The text, or its beginning and a line on the rest, `MOST_SHOWN` characters at most.

    Args:
        text: any.
        whole: end of that line: where the whole text is; empty where there is no record of it yet.

    >>> beginning("short"), beginning("x" * 100_001)[-76:]
    ('short', '... and 101 more characters: `moot show RUN CASE --format json` has them all')
    """
    if len(text) <= MOST_SHOWN:
        return text
    shown = MOST_SHOWN - _LINE
    return f"{text[:shown]}\n... and {len(text) - shown:,} more characters{whole}"


def bounded(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks with the beginnings of their texts."""
    return map(_bounded, blocks)


def _bounded(block: Block) -> Block:
    match block:
        case Heading() | Note() | Code():
            return replace(block, text=beginning(block.text))
        case Quote():
            return replace(block, head=beginning(block.head), text=beginning(block.text))
        case Pairs():
            return Pairs([(beginning(name), beginning(value)) for name, value in block.rows])
        case Items():
            return replace(block, items=_beginnings(block.items))
        case Table():
            terse = None if block.terse is None else block.terse._replace(rows=_rows(block.terse))
            return block._replace(rows=_rows(block), terse=terse)
        case _:
            return block


def _rows(table: Table) -> Sequence[Sequence[str]]:
    return [_beginnings(row) for row in table.rows]


def _beginnings(texts: Sequence[str]) -> Sequence[str]:
    return [beginning(text) for text in texts]
