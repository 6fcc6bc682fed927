"""Renderers of a report: terminal, Markdown and JSON. Texts of models and files are escaped."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pydantic import BaseModel
from rich.align import Align
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, OverflowMethod, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as Grid
from rich.text import Text

from moot.deploy.results.report.blocks import (
    Block,
    Chart,
    Code,
    Heading,
    Items,
    Note,
    Pairs,
    Quote,
    Table,
    TextFigure,
    bounded,
    one_line_title,
)
from moot.deploy.results.report.charts import chart_data
from moot.deploy.results.text import (
    check_output_format,
    markdown_block,
    markdown_inline,
    markdown_quote,
    markdown_table,
    safe_json,
    visible,
    visible_line,
)

SIMULATED = "simulated models: these figures show that the machinery works; they say nothing about any real model"
"""Warning above all results of the simulated model."""


_WIDTH_OF_A_PIPE = 1000
"""Characters per line of output that is not a terminal: text is not wrapped there."""

_GAP, _LONGEST_RULE = 2, 120
_STYLES = {"strong": "bold", "warning": "bold yellow", "dim": "dim"}
_FIGURE = re.compile(r"[-+<]?\s?\d\S*( \[[^\]]*\])?( %| x| USD)?( \[[^\]]*\])?( \(n = [\d,]+\))?")
_LEAST_CUT, _LEAST_LAST, _ENOUGH = 12, 24, 40
"""Fewest characters of a truncated cell; those for which the last column has the others truncated further; width of
the last column below which an optional column is omitted."""

_WORD_LENGTH = 24
"""Characters of a word in a cell that are not broken at most."""


def banner(simulated: bool) -> list[Block]:
    """Block of the warning above results of the simulated model; empty for real models."""
    return [Note(SIMULATED, "warning")] if simulated else []


def report_text(blocks: Iterable[Block]) -> RenderableType:
    """Report as a renderable of rich, for a terminal."""
    return Group(*(part for block in bounded(blocks) for part in _terminal(block)))


def report_string(blocks: Iterable[Block]) -> str:
    """Report as text of the current terminal's width, without colours."""
    console = Console(file=io.StringIO(), width=shutil.get_terminal_size((_LONGEST_RULE, 0)).columns, color_system=None)
    with console.capture() as captured:
        console.print(report_text(blocks), crop=False)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def report_markdown(blocks: Iterable[Block]) -> str:
    """Report as Markdown; Markdown and HTML in its texts are escaped."""
    return "\n\n".join(part for block in bounded(blocks) for part in _markdown(block)) + "\n"


def show_report(
    found: BaseModel, blocks: Callable[[], Iterable[Block]], form: str = "text", console: Console | None = None
) -> None:
    """Shows a report on the console; JSON and Markdown are not wrapped.

    Characters that the encoding of standard output does not have are written as their codes, except in JSON.

    Args:
        found: the content of the JSON format.
        blocks: function that makes the blocks of the other formats.
        form: `text`, `json` or `md`.
        console: the console; None for standard output.

    Raises:
        ConfigError: the format is unknown.
    """
    check_output_format(form)
    if console is None:
        console = Console()
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console.width = _WIDTH_OF_A_PIPE
        if isinstance(console.file, io.TextIOWrapper) and form != "json":
            console.file.reconfigure(errors="backslashreplace")
    if form == "text":
        console.print(report_text(blocks()), crop=False)
        return
    written = safe_json(found) if form == "json" else report_markdown(blocks())
    console.file.write(written.rstrip("\n") + "\n")
    console.file.flush()


def _terminal(block: Block) -> Iterator[RenderableType]:
    if isinstance(block, Heading):
        text = Text(visible_line(block.text), style="bold")
        yield Constrain(Rule(text, align="left"), _LONGEST_RULE) if block.level == 2 else text
    elif isinstance(block, Note):
        yield Text(visible_line(block.text), style=_STYLES.get(block.style, ""))
    elif isinstance(block, Table):
        yield from _titled(block)
    elif isinstance(block, Pairs):
        yield _pairs(block)
    elif isinstance(block, Items):
        for mark, item in _marked(block):
            yield Padding(Text(f"{mark} {visible_line(item)}"), (0, 0, 0, 2), expand=False)
    elif isinstance(block, Quote):
        yield Text(visible_line(block.head), style="bold red" if block.failed else "bold")
        if block.text:
            yield Padding(Text(visible(block.text)), (0, 0, 0, 4), expand=False)
    elif isinstance(block, Code):
        yield Text(visible(block.text), style="bold", no_wrap=True, overflow="ignore")
    elif isinstance(block, TextFigure):
        yield _Drawn(block)


def _pairs(block: Pairs) -> Grid:
    table = Grid(show_header=False, box=None, padding=(0, _GAP, 0, 0))
    table.add_column(style="bold", no_wrap=max((len(name) for name, _ in block.rows), default=0) < 40)
    table.add_column(overflow="fold")
    for name, value in block.rows:
        table.add_row(Text(visible_line(name)), Text(visible(value)))
    return table


def _titled(table: Table) -> Iterator[RenderableType]:
    if table.folded:
        return
    if table.title:
        yield from (Text(), Text(visible_line(table.title), style="bold"))
    shown = table.terse or table
    if not shown.grouped:
        yield _Fitted(shown)
        return
    for head, members in groupby(shown.rows, key=lambda row: row[0]):
        yield Text(visible_line(head), style="italic")
        part = Table("", shown.header[1:], [row[1:] for row in members])
        yield Padding(_Fitted(part), (0, 0, 0, 2), expand=False)


def _markdown(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"{'#' * block.level} {markdown_inline(block.text)}"
    elif isinstance(block, Note):
        text = markdown_inline(block.text)
        yield f"**{text}**" if block.style in ("strong", "warning") else text
    elif isinstance(block, Code):
        yield markdown_block(block.text)
    elif isinstance(block, Table) and not block.folded:
        if block.title:
            yield f"**{markdown_inline(block.title)}**"
        yield markdown_table([markdown_inline(one_line_title(head)) for head in block.header], block.rows)
    elif isinstance(block, Pairs):
        short = [(name, value) for name, value in block.rows if "\n" not in value]
        yield markdown_table(("", "value"), short)
        for name, value in block.rows:
            if "\n" in value:
                yield from (f"**{markdown_inline(name)}**", markdown_quote(value))
    elif isinstance(block, Items):
        yield "\n".join(f"{mark} {markdown_inline(item)}" for mark, item in _marked(block))
    elif isinstance(block, Quote):
        yield f"**{markdown_inline(block.head)}**"
        if block.text:
            yield markdown_quote(block.text)


def _marked(block: Items) -> Iterator[tuple[str, str]]:
    for place, item in enumerate(block.items, start=1):
        yield f"{place}." if block.numbered else "-", item


@dataclass(frozen=True, slots=True)
class _Fitted:
    """Table that fits the width: its columns are split into parts, and cells wrap between words, never within a figure.

    Every part begins with the first column, which names the rows. A table of one-line rows is truncated, not split.
    """

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        heads = [Text(visible(head).replace(" /", "\n/")) for head in self.table.header]
        cells = [[Text(visible_line(cell)) for cell in row] for row in self.table.rows]
        columns = [[head, *(row[i] for row in cells)] for i, head in enumerate(heads)]
        least = [max(_least(cell.plain, options.max_width) for cell in column) for column in columns]
        whole = [max(cell_len(line) for cell in column for line in cell.plain.split("\n")) for column in columns]
        cut = _cut_widths(self.table, whole, options.max_width)
        if cut is not None:
            yield _grid(heads, cells, cut, cut_cells=True)
            return
        for number, part in enumerate(_parts(least, options.max_width)):
            if number:
                yield Text()
            room = options.max_width - sum(least[i] + _GAP for i in part) + _GAP
            more = {i: max(0, whole[i] - least[i]) for i in part}
            wanted = sum(more.values())
            widths = {i: least[i] + (n if wanted <= room else n * max(0, room) // wanted) for i, n in more.items()}
            yield _grid(heads, cells, widths)


def _grid(
    heads: Sequence[Text], cells: Sequence[Sequence[Text]], widths: Mapping[int, int], *, cut_cells: bool = False
) -> Grid:
    """Grid of the columns that have widths; longer cells are truncated, or wrap."""
    grid = Grid(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    overflow: OverflowMethod = "ellipsis" if cut_cells else "fold"
    for i, width in widths.items():
        head = Align(heads[i], vertical="bottom")
        grid.add_column(head, width=width, overflow=overflow, no_wrap=cut_cells)
    for row in cells:
        grid.add_row(*(row[i] for i in widths))
    return grid


def _least(text: str, most: int) -> int:
    """Minimum width of a cell: that of its longest figure with interval and base, or of its longest word."""
    kept = [found.group() for found in _FIGURE.finditer(text)]
    words = [word[:_WORD_LENGTH] for word in text.split()]
    return min(most, max(map(cell_len, (*kept, *words)), default=1))


def _cut_widths(table: Table, whole: Sequence[int], width: int) -> dict[int, int] | None:
    """Widths by column with which each row has one line; None if cells must wrap."""
    if not table.one_line:
        return None
    _, *middle, last = range(len(whole))
    optional = list(table.optional)
    while optional and width - sum(whole[i] + _GAP for i in (0, *middle)) < min(whole[last], _ENOUGH):
        middle.remove(optional.pop(0))
    room = width - whole[0] - _GAP * (len(middle) + 1)
    most = min(width, max(whole[i] for i in middle))
    while most > _LEAST_CUT and sum(min(whole[i], most) for i in middle) + min(whole[last], _LEAST_LAST) > room:
        most -= 1
    if sum(min(whole[i], most) for i in middle) + min(whole[last], _LEAST_CUT) > room:
        return None
    widths = {0: whole[0]} | {i: min(whole[i], most) for i in middle}
    return widths | {last: min(whole[last], room - sum(widths[i] for i in middle))}


def _parts(least: Sequence[int], width: int) -> Iterator[list[int]]:
    """Parts of the columns that fit the width; the first column is in every part."""
    part = [0]
    for i in range(1, len(least)):
        if len(part) > 1 and sum(least[each] + _GAP for each in (*part, i)) - _GAP > width:
            yield part
            part = [0]
        part.append(i)
    yield part


@dataclass(frozen=True, slots=True)
class _Drawn:
    figure: TextFigure

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from (Text(line, overflow="fold") for line in self.figure.draw(options.max_width, options.ascii_only))


def blocks_data(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Blocks as JSON values, without text figures, which repeat the numbers of tables."""
    return [data for block in bounded(blocks) if (data := _block_data(block)) is not None]


def _block_data(block: Block) -> dict[str, Any] | None:
    match block:
        case Heading():
            return {"heading": block.text, "level": block.level}
        case Note():
            return {"note": block.text, "style": block.style}
        case Table():
            return {"table": block.rows, "header": block.header, "title": block.title}
        case Pairs():
            return {"pairs": block.rows}
        case Items():
            return {"items": block.items}
        case Quote():
            return {"quote": block.text, "head": block.head}
        case Code():
            return {"code": block.text}
        case Chart():
            return {"chart": {**chart_data(block), "note": block.note}}
        case _:
            return None
