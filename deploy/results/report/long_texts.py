"""Bound of the texts in a report: of a very long one the beginning is shown, and how to see the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from moot.deploy.results.report.blocks import Block, Code, Heading, Items, Note, Pairs, Quote, Table

MOST_SHOWN = 100_000
"""Most characters of a text that are shown: layout takes up to ten microseconds a character. No reply within the usual
limits, and few passages, are as long."""


def beginning(text: str) -> str:
    """The text, or its first `MOST_SHOWN` characters and a line on the rest.

    >>> beginning("short"), beginning("x" * 100_001)[-74:]
    ('short', '... and 1 more characters: `moot show RUN CASE --format json` has them all')
    """
    more = len(text) - MOST_SHOWN
    return (
        f"{text[:MOST_SHOWN]}\n... and {more:,} more characters: `moot show RUN CASE --format json` has them all"
        if more > 0
        else text
    )


def bounded(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks with the beginnings of their texts."""
    return map(_bounded, blocks)


def _bounded(block: Block) -> Block:
    match block:
        case Heading() | Note() | Code():
            return replace(block, text=beginning(block.text))
        case Quote():
            return replace(block, head=beginning(block.head), text=beginning(block.text))
        case Pairs():
            return Pairs([(beginning(name), beginning(value)) for name, value in block.rows])
        case Items():
            return replace(block, items=_beginnings(block.items))
        case Table():
            terse = None if block.terse is None else block.terse._replace(rows=_rows(block.terse))
            return block._replace(rows=_rows(block), terse=terse)
        case _:
            return block


def _rows(table: Table) -> Sequence[Sequence[str]]:
    return [_beginnings(row) for row in table.rows]


def _beginnings(texts: Sequence[str]) -> Sequence[str]:
    return [beginning(text) for text in texts]
