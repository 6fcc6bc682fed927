"""Blocks of a report as JSON values; the first key of each is its kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moot.deploy.results.report.blocks import Block, Chart, Code, Heading, Items, Note, Pairs, Quote, Table
from moot.deploy.results.report.charts import chart_data
from moot.deploy.results.report.long_texts import bounded


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
