"""A titled table of words, and how it looks on a terminal."""

from __future__ import annotations

from moot.deploy.reading.report.blocks import Table as Block
from moot.deploy.reading.report.render import table_markdown as block_markdown
from moot.deploy.reading.report.render import table_text as block_table

__all__ = ["Block", "block_markdown", "block_table"]
