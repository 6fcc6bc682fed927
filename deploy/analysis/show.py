"""Shows an analysis: on a terminal, as JSON, or as Markdown. Tables of thousands of rows are left to the files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from moot.deploy.analysis.analysis import Analysis, Facts
from moot.deploy.analysis.facts_words import facts_in_words
from moot.deploy.analysis.table import Table, cell
from moot.deploy.reading.blocks import Block, block_table
from moot.deploy.reading.plotting import has_matplotlib
from moot.deploy.reading.simulated import SIMULATED
from moot.deploy.reading.text import emit, markdown_inline, markdown_table, safe_json, visible_line

_EVERYTHING = {
    True: "everything, with figures",
    False: "everything but figures, which need matplotlib (pip install 'moot[plot]')",
}


class Shown(BaseModel):
    """An analysis as JSON.

    Attributes:
        tables: rows by table; NaN is null.
        files: the folder with everything.
    """

    facts: Facts
    settings: dict[str, object]
    tables: dict[str, list[dict[str, object]]]
    files: str


def show_analysis(found: Analysis, written: Path, form: str = "text", console: Console | None = None) -> None:
    """Write an analysis to the console.

    Args:
        found: the analysis.
        written: its page.
        form: `text`, `json` or `md`.

    Raises:
        ConfigError: for an unknown format.
    """
    emit(
        form,
        text=lambda: _text(found, written),
        json=lambda: safe_json(_json(found, written)),
        md=lambda: _markdown(found, written),
        console=console,
    )


def _remarks(found: Analysis) -> list[str]:
    return ([SIMULATED] if found.facts.simulated else []) + facts_in_words(found.facts)


def _tables(found: Analysis) -> list[Table]:
    return [table for table in found.tables.values() if table.rows and not table.in_files_only]


def _blocks(table: Table) -> Iterator[tuple[str, Block]]:
    """The rows that share the first column, which heads them, as a terminal shows them.

    There is little room: a cell does not repeat what its heading says (`confident ->`).
    """
    columns, rows = table.for_terminal()
    columns = tuple(replace(column, digits=2) if column.interval else column for column in columns)
    header = tuple(column.short for column in columns)
    for head, members in groupby(rows, key=lambda row: cell(row, table.shown[0])):
        cells = [[cell(row, column).removeprefix(f"{column.short} ") for column in columns] for row in members]
        yield head, Block(table.title, header, [tuple(each) for each in cells])


def _text(found: Analysis, written: Path) -> RenderableType:
    parts: list[RenderableType] = [Text(visible_line(remark)) for remark in _remarks(found)]
    for table in _tables(found):
        parts += [Text(), Text(table.title, style="bold")]
        for head, block in _blocks(table):
            parts += [Text(visible_line(head), style="italic"), Padding(block_table(block), (0, 0, 0, 2))]
        parts += [Text(note, style="dim") for note in table.notes[:1]]  # the others are on columns of the page
    return Group(*parts, Text(), Text(visible_line(f"{_EVERYTHING[has_matplotlib()]}: {written}"), overflow="fold"))


def _markdown(found: Analysis, written: Path) -> str:
    parts = ["# Confidence signals against judged reasoning"]
    parts += [f"- {markdown_inline(remark)}" for remark in _remarks(found)]
    for table in _tables(found):
        parts += [f"\n## {table.title}\n", markdown_table(table.header(), [table.cells(row) for row in table.rows])]
        parts += [f"\n{markdown_inline(note)}" for note in table.notes]
    return "\n".join([*parts, "", markdown_inline(f"{_EVERYTHING[has_matplotlib()]}: {written}")]) + "\n"


def _json(found: Analysis, written: Path) -> Shown:
    return Shown(
        facts=found.facts,
        settings=found.settings.model_dump(),
        tables={table.name: table.arrow().to_pylist() for table in _tables(found)},
        files=str(written.parent),
    )
