"""A report as one self-contained page: no script, no other file; everything in it is escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from moot.deploy.reading.report.blocks import Block, Heading
from moot.deploy.reading.text import visible


def page(title: str, blocks: Sequence[Block]) -> str:
    """The page; its headings of level 2 are linked under that of level 1."""
    parts = [block.text for block in blocks if isinstance(block, Heading) and block.level == 2]
    return _template().render(title=title, parts=parts, blocks=[(type(block).__name__, block) for block in blocks])


def _uri(svg: bytes) -> str:
    """A picture as an address that holds it: the page needs no other file, and no script in a picture would run."""
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda text: visible(text) if isinstance(text, str) and not isinstance(text, Markup) else text,
    )
    environment.filters["uri"] = _uri
    return environment.get_template("page.html.j2")
