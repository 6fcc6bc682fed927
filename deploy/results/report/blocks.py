"""What a report is made of, in the order in which it is read; nothing in a block is escaped yet: renderers do that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: level 1 for the whole report, 2 for a part, 3 for what is inside of one."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Note:
    """A line or more: `strong` for what should be seen first, `warning` for what should not be missed, `dim` for how to
    read what stands above it."""

    text: str
    style: str = ""


class Table(NamedTuple):
    """A table of words, with its title where it has one; " /" in a head begins a new line on a terminal.

    Attributes:
        grouped: whether the first column heads the rows that share it, on a terminal.
        folded: whether it is too long to be read through: a page folds it up, and the other forms leave it out.
        terse: what a terminal shows in its place; None for the whole of it.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    grouped: bool = False
    folded: bool = False
    terse: Table | None = None


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names with their values; on a terminal a value may have several lines."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Items:
    """A list of single lines."""

    items: Sequence[str]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Quote:
    """A text as somebody wrote it, under a line that says who; `failed` where it could not be used."""

    head: str
    text: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TextFigure:
    """Lines drawn for a terminal of that many columns, in ASCII alone or not; Markdown leaves it out."""

    draw: Callable[[int, bool], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a page; the other forms leave it out."""

    caption: str
    svg: bytes


@dataclass(frozen=True, slots=True)
class Code:
    """A command, or a piece of a file, to be copied: it is not wrapped."""

    text: str


Block = Heading | Note | Table | Pairs | Items | Quote | TextFigure | Picture | Code
