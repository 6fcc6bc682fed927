"""Reports of blocks: no figure is cut at any width, and what models wrote stays text in every rendering."""

from __future__ import annotations

import html
import io
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from planted_records import EVIL
from rich.console import Console

from moot.deploy.results.report.blocks import Block, Code, Heading, Items, Note, Pairs, Quote, Table, TextFigure
from moot.deploy.results.report.html import SCRIPTS, report_html
from moot.deploy.results.report.render import report_markdown, report_text
from moot.deploy.results.text import markdown_quote, visible_line

SHARE = "83.3 % [72.6, 91.1] (n = 1,234)"
WIDE = Table("wide", ("run", *(f"figure /{i}" for i in range(6))), [(f"run-{i}", *[SHARE] * 6) for i in range(2)])
EVERYTHING: list[Block] = [
    Heading(EVIL, 1),
    Heading(EVIL),
    Note(EVIL, "warning"),
    Table(EVIL, (EVIL, "n"), [(EVIL, "1")]),
    Pairs([(EVIL, EVIL), ("one", "line")]),
    Items([EVIL, "second"], numbered=True),
    Quote(EVIL, EVIL, failed=True),
    TextFigure(lambda width, plain: ["-" * min(width, 20)]),
]


def terminal(blocks: list[Block], width: int) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(report_text(blocks), crop=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 1000])
def test_a_table_wraps_by_column_and_never_cuts_a_figure(width: int) -> None:
    shown = terminal([WIDE], width)
    assert shown.count(SHARE) == 12
    assert max(map(len, shown.splitlines())) <= width
    assert all(f"\n{i}" in shown or re.search(rf"\b{i}\b", shown) for i in range(6))


@pytest.mark.parametrize(
    ("width", "header", "row"),
    [
        (100, "case  how           rounds  question", f"c-1   {'h' * 12}  0       {'q' * 50}"),
        (60, "case  how           question", f"c-1   {'h' * 12}  {'q' * 39}…"),
        (40, "case  how           question", f"c-1   {'h' * 12}  {'q' * 19}…"),
        (32, "case  how           question", f"c-1   {'h' * 12}  {'q' * 11}…"),
    ],
)
def test_a_row_on_one_line_leaves_out_optional_columns_and_cuts_the_last(width: int, header: str, row: str) -> None:
    cells = ("c-1", "h" * 12, "0", "q" * 50)
    shown = terminal([Table("", ("case", "how", "rounds", "question"), [cells], one_line=True, optional=[2])], width)
    assert [line.rstrip() for line in shown.splitlines()] == [header, row]


@pytest.mark.parametrize("width", [10, 25])
def test_a_row_that_would_be_cut_too_much_wraps(width: int) -> None:
    cells = ("c" * 9, "h" * 12, "q" * 50)
    shown = terminal([Table("", ("case", "how", "question"), [cells], one_line=True)], width)
    assert shown.count("q") == 51
    assert max(map(len, shown.splitlines())) <= width


def test_a_pipe_has_no_width() -> None:
    code = (
        "from pydantic import BaseModel;from moot.deploy.results.report.render import show_report;"
        "from moot.deploy.results.report.blocks import Table;"
        f"show_report(type('M', (BaseModel,), dict())(), lambda: [Table('', ('a',) * 9, [({SHARE!r},) * 9])])"
    )
    where = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=where).stdout
    assert shown.splitlines()[1].count(SHARE) == 9


def test_what_models_wrote_is_text_in_every_block() -> None:
    text = terminal(EVERYTHING, 100)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert text.count("[bold red]x[/]") == 11
    markdown = report_markdown(EVERYTHING)
    assert not re.search(r"(?<!\\)\[bold|<script|^# out|^```", markdown, re.MULTILINE)
    assert re.search(r"^1\. .*\n2\. second$", markdown, re.MULTILINE)
    assert "| one | line |" in markdown


def test_a_page_escapes_texts_and_needs_nothing_else() -> None:
    shown = report_html(EVIL, [*EVERYTHING, Table(EVIL, ("a",), [(EVIL,)], folded=True)])
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    assert shown.count("<script") == 1 + len(SCRIPTS)
    assert shown.count("[bold red]x[/]") == 17
    assert '<h2 id="part-1">' in shown
    assert '<a href="#part-1">' in shown
    assert "default-src 'none'" in html.unescape(shown)
    assert re.search("<details><summary>.*<table>", shown, re.DOTALL)


def test_what_belongs_to_a_page_or_a_terminal_is_left_out_elsewhere() -> None:
    terse = Table("", ("model", "n"), [("m-1", "3"), ("m-1", "4"), ("m-2", "5")], grouped=True)
    blocks: list[Block] = [
        Table("b", ("a",), [("1",)], folded=True),
        Table("", ("all",), [("2",)], terse=terse),
    ]
    lines = [line.rstrip() for line in terminal(blocks, 80).splitlines()]
    assert lines == ["m-1", "  n", "  3", "  4", "m-2", "  n", "  5"]
    assert report_markdown(blocks) == "| all |\n|---|\n| 2 |\n"


def test_what_is_to_be_copied_is_whole() -> None:
    assert terminal([Code("word " * 40)], 80).splitlines() == ["word " * 40]
    assert report_markdown([Code("a ``` b")]) == "````text\na ``` b\n````\n"


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
