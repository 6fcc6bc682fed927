"""Shows an analysis: on a terminal, as JSON, or as Markdown. Tables of thousands of rows are left to the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel
from rich.console import Console, Group, RenderableType
from rich.text import Text

from moot.deploy.analysis.analysis import Analysis, Facts
from moot.deploy.analysis.facts_words import facts_in_words
from moot.deploy.analysis.table import Table
from moot.deploy.reading.simulated import SIMULATED
from moot.deploy.reading.summaries.compare import Block, block_table
from moot.deploy.reading.text import emit, markdown_inline, markdown_table, safe_json, visible_line


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
    return [table for table in found.tables.values() if table.rows and table.brief != 0]


def _brief(table: Table) -> Sequence[tuple[str, ...]]:
    return [tuple(table.cells(row)) for row in table.rows[: table.brief]]


def _text(found: Analysis, written: Path) -> RenderableType:
    parts: list[RenderableType] = [Text(visible_line(remark)) for remark in _remarks(found)]
    for table in _tables(found):
        parts += [Text(), Text(table.title, style="bold")]
        parts.append(block_table(Block(table.title, tuple(table.header()), _brief(table))))
        if table.brief is not None and len(table.rows) > table.brief:
            parts.append(Text(f"... and {len(table.rows) - table.brief:,} more rows"))
        parts += [Text(note, style="dim") for note in table.notes]
    return Group(*parts, Text(), Text(f"everything, with figures: {written}"))


def _markdown(found: Analysis, written: Path) -> str:
    parts = ["# Confidence signals against judged reasoning"]
    parts += [f"- {markdown_inline(remark)}" for remark in _remarks(found)]
    for table in _tables(found):
        parts += [f"\n## {table.title}\n", markdown_table(table.header(), _brief(table))]
        parts += [f"\n{markdown_inline(note)}" for note in table.notes]
    return "\n".join([*parts, "", f"Everything, with figures: {markdown_inline(str(written))}"]) + "\n"


def _json(found: Analysis, written: Path) -> Shown:
    return Shown(
        facts=found.facts,
        settings=found.settings.model_dump(),
        tables={table.name: table.arrow().to_pylist() for table in _tables(found)},
        files=str(written.parent),
    )
