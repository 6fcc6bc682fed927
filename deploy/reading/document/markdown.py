"""A document as Markdown that nothing a model or a person wrote can break out of."""

from __future__ import annotations

from moot.deploy.reading.document.blocks import Block, Grid, Heading, Items, Paragraph, blocks_of
from moot.deploy.reading.document.views import Document
from moot.deploy.reading.rounds.trace import Trace
from moot.deploy.reading.rounds.trace_text import trace_markdown
from moot.deploy.reading.text import markdown_inline, markdown_quote, markdown_table


def document_markdown(document: Document) -> str:
    """The document as Markdown: what was said in block quotes, all of it escaped."""
    parts = [f"# {markdown_inline(document.subject)}"]
    if document.simulated:
        parts.append("**simulated models**")
    parts.append(markdown_inline(f"case {document.case_id}, attempt {document.attempt}, {document.state}"))
    parts += [_rendered(block) for block in blocks_of(document)]
    return "\n\n".join(parts) + "\n"


def _rendered(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {markdown_inline(block.text)}"
    if isinstance(block, Paragraph):
        text = markdown_inline(block.text)
        return f"**{text}**" if block.strong else text
    if isinstance(block, Items):
        marks = (f"{place}." if block.numbered else "-" for place in range(1, len(block.items) + 1))
        return "\n".join(f"{mark} {markdown_inline(item)}" for mark, item in zip(marks, block.items, strict=True))
    if isinstance(block, Grid):
        return markdown_table(block.header, block.rows)
    if isinstance(block, Trace):
        return trace_markdown(block)
    return f"**{markdown_inline(block.head)}**\n\n{markdown_quote(block.text)}"
