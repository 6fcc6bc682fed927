"""A document for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from moot.deploy.reading.document.blocks import Block, Grid, Heading, Items, Paragraph, Said, blocks_of
from moot.deploy.reading.document.views import Document
from moot.deploy.reading.rounds.trace import Trace
from moot.deploy.reading.rounds.trace_text import TraceText
from moot.deploy.reading.text import visible, visible_line


def document_text(document: Document) -> RenderableType:
    """The document for a terminal; whatever models and people wrote is plain text."""
    parts: list[RenderableType] = [Text("simulated models", style="bold yellow")] if document.simulated else []
    parts.append(Text(visible(document.subject), style="bold"))
    parts.append(Text(visible_line(f"case {document.case_id}, attempt {document.attempt}, {document.state}"), "dim"))
    for block in blocks_of(document):
        parts += _rendered(block)
    return Group(*parts)


def _rendered(block: Block) -> Iterable[RenderableType]:
    if isinstance(block, Heading):
        text = Text(visible_line(block.text), style="bold")
        yield Rule(text, align="left") if block.level == 2 else text
    elif isinstance(block, Paragraph):
        yield Text(visible_line(block.text), style="bold" if block.strong else "")
    elif isinstance(block, Items):
        for place, item in enumerate(block.items, start=1):
            mark = f"{place}. " if block.numbered else "- "
            yield Padding(Text(mark + visible_line(item)), (0, 0, 0, 2))
    elif isinstance(block, Grid):
        table = Table(*block.header)
        for row in block.rows:
            table.add_row(*(Text(visible_line(cell)) for cell in row))
        yield table
    elif isinstance(block, Trace):
        yield TraceText(block)
    elif isinstance(block, Said):
        yield Text(visible_line(block.head), style="bold")
        yield Padding(Text(visible(block.text)), (0, 0, 0, 4))
