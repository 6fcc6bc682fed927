"""What was said as a block quote of Markdown: plain text to whoever renders it, whatever it holds."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from moot.deploy.reading.text import markdown_quote, visible_line

PIECES = [
    *"ab 1.)-+*_=~`#>|:!&;<>[]()\\\n\t$@/",
    "&lt;",
    "&#35;",
    "|a|\n|---|\n",
    "<b>",
    "](u)",
    "```\n",
    "---\n",
    "\n    ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_a_quote_is_one_block_of_plain_text(text: str) -> None:
    """Whatever is in it: no list, heading, table, code, link or HTML, and every line where it was."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(f"before\n\n{markdown_quote(text)}\n\nafter")
    kinds = [token.type for token in tokens]
    paragraph = ["paragraph_open", "inline", "paragraph_close"]
    inside = kinds[4:-4]
    assert (kinds[3], kinds[-4]) == ("blockquote_open", "blockquote_close")
    assert inside == paragraph * (len(inside) // 3)
    pieces = [token.children or [] for token in tokens if token.type == "inline"][1:-1]
    assert {child.type for children in pieces for child in children} <= {"text", "hardbreak"}
    read = "\n\n".join("".join(child.content or "\n" for child in children) for children in pieces)
    paragraphs = re.split(r"\n{2,}", "\n".join(visible_line(line) for line in text.split("\n")).strip("\n"))
    assert read == "\n\n".join(paragraphs)
