"""What the pages' scripts print: figures with their intervals, tables and numbered findings, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap

WIDTH = 120


@dataclass(frozen=True)
class Figure:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}, {self.high:.2f})"

    @property
    def signed(self) -> str:
        """The same with signs, for differences."""
        return f"{self.value:+.2f} ({self.low:+.2f}, {self.high:+.2f})"


def table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a table; a cell without a value is a dash."""
    cells = [list(head), *(["-" if cell is None else str(cell) for cell in row] for row in rows)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def numbered(texts: Iterable[str]) -> list[str]:
    """The lines of a numbered list."""
    return [
        line
        for number, text in enumerate(texts, start=1)
        for line in wrap(text, WIDTH, initial_indent=f"{number}. ", subsequent_indent="   ", break_on_hyphens=False)
    ]
