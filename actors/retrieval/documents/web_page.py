"""HTML and Markdown text extraction: the visible text, without scripts, styles and metadata."""

from __future__ import annotations

import re

from bs4 import BeautifulSoup
from bs4.dammit import EncodingDetector
from bs4.element import NavigableString, PreformattedString, Tag
from markdown_it import MarkdownIt

from moot.actors.retrieval.documents.parser_client import read_plain_text

_UNSEEN = frozenset({"script", "style", "template", "noscript", "head", "svg", "object", "iframe", "select"})
_HEADINGS = {f"h{level}": f"\n\n{'#' * level} " for level in range(1, 7)}
_ITEMS = frozenset({"li", "tr"})
_CELLS = frozenset({"td", "th"})
# fmt: off
_INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "button", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "img", "input", "ins", "kbd", "label", "mark", "math", "meter", "nobr", "output", "progress", "q", "rp", "rt",
    "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})
# fmt: on
_PROLOGUE = re.compile(r"\A\s*<\?xml[^>]*>")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n.*?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_SPACE = re.compile(r"\s+")
_MANY_BREAKS = re.compile(r"\n[ \n]*\n")


def read_web_page(raw: bytes) -> str:
    """Extracts the text of an HTML file: a paragraph per block, `#` before headings, a line per list item or table row.

    Raises:
        ConfigError: the bytes are not a text.
    """
    return html_to_text(_decoded(raw))


def read_markdown(raw: bytes) -> str:
    """Extracts the text of a Markdown file (CommonMark and tables), without markup and front matter.

    Raises:
        ConfigError: the bytes are not a text.
    """
    source = _FRONT_MATTER.sub("", read_plain_text(raw))
    return html_to_text(MarkdownIt("commonmark").enable("table").render(source))


def _decoded(raw: bytes) -> str:
    """Decodes as UTF-8 if valid, else as the page declares; never guessed from the content."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        declared = EncodingDetector.find_declared_encoding(raw, is_html=True)
    try:
        return raw.decode(declared or "utf-8")
    except (UnicodeDecodeError, LookupError):
        return read_plain_text(raw)


def html_to_text(html: str) -> str:
    """Extracts the text of HTML markup; see `read_web_page`."""
    parts: list[str] = []
    soup = BeautifulSoup("\n" + _PROLOGUE.sub("", html), "html.parser")  # newline: no text passes for a file name
    waiting: list[tuple[Tag | NavigableString | str, bool]] = [(soup, False)]
    while waiting:  # not by recursion: a page may be nested to any depth
        node, verbatim = waiting.pop()
        if isinstance(node, Tag):
            waiting += _opened(node, verbatim)
        elif not isinstance(node, NavigableString):
            parts.append(node)
        elif not isinstance(node, PreformattedString):  # comments, doctypes
            parts.append(str(node) if verbatim else _SPACE.sub(" ", node))
    lines = (line.strip() for line in "".join(parts).split("\n"))
    return _MANY_BREAKS.sub("\n\n", "\n".join(lines)).strip()


def _opened(tag: Tag, verbatim: bool) -> list[tuple[Tag | NavigableString | str, bool]]:
    """Content of a tag, in reverse order, between the breaks that it causes."""
    if tag.name in _UNSEEN:
        return []
    before, after = _breaks(tag)
    inside = [(node, verbatim or tag.name == "pre") for node in tag.contents if isinstance(node, Tag | NavigableString)]
    return [(after, False), *reversed(inside), (before, False)]


def _breaks(tag: Tag) -> tuple[str, str]:
    if tag.name in _HEADINGS:
        return _HEADINGS[tag.name], "\n\n"
    if tag.name in _ITEMS:
        return "\n- ", "\n"
    if tag.name == "p" and tag.parent is not None and tag.parent.name in _ITEMS | _CELLS:
        return "", "\n"
    if tag.name in _CELLS:
        before = tag.find_previous([*_CELLS, "tr"])  # an unclosed cell contains the next one
        return " | " if isinstance(before, Tag) and before.name in _CELLS else "", ""
    if tag.name == "br":
        return "\n", ""
    if tag.name == "img":
        return f" {tag.get('alt') or ''} ", ""
    return ("", "") if tag.name in _INLINE else ("\n\n", "\n\n")
