"""A titled table of words, and how it looks on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from moot.deploy.reading.text import markdown_inline, markdown_table, visible_line


class Block(NamedTuple):
    """One table of several; the first column names the rows, and " /" in a head begins a new line on a terminal."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def block_table(block: Block) -> Table:
    """A block for a terminal, without its title."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for i, head in enumerate(block.header):
        table.add_column(Text(head.replace(" /", "\n/")), no_wrap=i == 0, overflow="fold", vertical="bottom")
    for row in block.rows:
        table.add_row(*(Text(visible_line(cell)) for cell in row))
    return table


def block_markdown(block: Block) -> str:
    """A block as a Markdown table, without its title."""
    return markdown_table([markdown_inline(head.replace(" /", " ")) for head in block.header], block.rows)
