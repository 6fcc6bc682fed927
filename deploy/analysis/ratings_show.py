"""Shows how far the raters of a table agree: on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from moot.deploy.analysis.ratings import FEWEST_CLUSTERS, RatingAgreement, Statistic
from moot.deploy.reading.blocks import Block, block_markdown, block_table
from moot.deploy.reading.text import emit, markdown_inline, safe_json, visible_line

_FEW = 30
"""Independent items below which the intervals cover less than they say."""


def show_ratings(found: RatingAgreement, form: str = "text", console: Console | None = None) -> None:
    """Write the figures to the console.

    Raises:
        ConfigError: for an unknown format.
    """
    emit(form, text=lambda: _text(found), json=lambda: safe_json(found), md=lambda: _markdown(found), console=console)


def _blocks(found: RatingAgreement) -> list[Block]:
    together = [(each.name, *_figure(each)) for each in found.together]
    pairs = [(" - ".join(each.raters or ()), each.name, *_figure(each)) for each in found.pairs]
    return [
        Block("all raters together", ("", "value", "95 % interval", "n"), together),
        Block("each two raters", ("raters", "", "value", "95 % interval", "n"), pairs),
    ]


def _figure(each: Statistic) -> tuple[str, str, str]:
    ends = "-" if each.interval is None else f"[{each.interval[0]:.3f}, {each.interval[1]:.3f}]"
    return ("-" if each.value is None else f"{each.value:.3f}", ends, f"{each.n:,}")


def _head(found: RatingAgreement) -> str:
    return f"{found.source}: {found.ratings:,} ratings of {found.items:,} items by {len(found.raters)} raters"


def _notes(found: RatingAgreement) -> Sequence[str]:
    notes = [
        f"categories: {', '.join(found.categories)} (those that occur; AC2 depends on their number)",
        f"n: items that two of the raters have scored; intervals from {FEWEST_CLUSTERS} independent items on",
    ]
    if not found.numeric:
        notes.append("scores are no numbers: nominal figures only")
    if found.groups < _FEW:
        notes.append(f"{found.groups} independent items: below about {_FEW} the intervals are too narrow")
    return notes


def _text(found: RatingAgreement) -> RenderableType:
    parts: list[RenderableType] = [Text(visible_line(_head(found)))]
    for block in _blocks(found):
        parts += [Text(), Text(block.title), block_table(block)]
    return Group(*parts, Text(), *(Text(visible_line(note), style="dim") for note in _notes(found)))


def _markdown(found: RatingAgreement) -> str:
    parts = ["# Agreement of raters", markdown_inline(_head(found))]
    for block in _blocks(found):
        parts += [block.title, block_markdown(block)]
    notes = "\n".join(f"- {markdown_inline(note)}" for note in _notes(found))
    return "\n\n".join([*parts, notes]) + "\n"
