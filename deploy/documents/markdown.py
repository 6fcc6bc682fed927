"""Markdown as text, by way of the HTML that it stands for."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from moot.deploy.documents.plain_text import read_plain_text
from moot.deploy.documents.web_page import text_of_html

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n.*?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def read_markdown(raw: bytes) -> str:
    """The text of a Markdown file (CommonMark and tables) without its marks and without front matter.

    Raises:
        ConfigError: these are no bytes of a text.
    """
    source = _FRONT_MATTER.sub("", read_plain_text(raw))
    return text_of_html(MarkdownIt("commonmark").enable("table").render(source))
