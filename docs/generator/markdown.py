"""Markdown of pages, of tables and of docstrings."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

COMMAND = "python docs/generate.py"
MARKER = f"<!-- Generated from here on: change the code or its docstrings, then run `{COMMAND}`. -->\n"
"""What stands above this line of a page is written by hand."""

_ITEM = re.compile(r"(\*{0,2}\w+(?:, \w+)*): (.*)", re.DOTALL)
_ATTRIBUTES = re.compile(r"^Attributes:\n((?:.+\n?)+)\n*", re.MULTILINE)
_CODE = re.compile(r"(`[^`]*`)")


def page(*parts: str) -> str:
    """The generated part of a page."""
    return MARKER + "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell does not end it."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """A text in monospace; nothing for none."""
    return f"`{text}`" if text else ""


def prose(text: str) -> str:
    """Text of a docstring as Markdown: nothing outside of code is markup."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(
        each if i % 2 else re.sub(r"([*\[\]])", r"\\\1", each).replace("<", "&lt;") for i, each in enumerate(parts)
    )


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a docstring as Markdown: prose, lists as they stand, examples as code."""
    for block in re.split(r"\n\s*\n", text):
        if block.lstrip().startswith(">>>"):
            yield f"```pycon\n{textwrap.dedent(block)}\n```"
            continue
        head, _, body = block.partition("\n")
        if head in ("Returns:", "Yields:"):
            yield f"{head} {prose(body)}"
        elif head in ("Args:", "Attributes:", "Raises:"):
            yield head
            yield "\n".join(_items(body))
        elif block.startswith("- "):
            yield "\n".join(f"- {prose(item)}" for item in re.split(r"(?:^|\n)- ", block) if item)
        else:
            yield prose(block)


def _items(body: str) -> Iterator[str]:
    for item in re.split(r"\n(?=\S)", textwrap.dedent(body)):
        named = _ITEM.match(item)
        names = [] if named is None else named[1].split(", ")
        yield f"- {', '.join(map(code, names))}: {prose(named[2])}" if named else f"- {prose(item)}"


def markdown_of(node: ast.AST) -> str:
    """A docstring as Markdown."""
    return "\n\n".join(_paragraphs(ast.get_docstring(node) or ""))  # type: ignore[arg-type]


def prose_of(node: ast.AST) -> str:
    """A docstring as Markdown, but for what it says of attributes."""
    return "\n\n".join(_paragraphs(_ATTRIBUTES.sub("", ast.get_docstring(node) or "").strip()))  # type: ignore[arg-type]


def attributes_of(node: ast.AST) -> dict[str, str]:
    """By attribute, what a docstring says of it, as Markdown."""
    found = _ATTRIBUTES.search(ast.get_docstring(node) or "")  # type: ignore[arg-type]
    items = re.split(r"\n(?=\S)", textwrap.dedent(found[1])) if found else []
    named = [match for item in items if (match := _ITEM.match(item)) is not None]
    return {name: prose(match[2]) for match in named for name in match[1].split(", ")}


def first_paragraph(text: str) -> str:
    """The first paragraph of a docstring as Markdown."""
    return prose(re.split(r"\n\s*\n", text)[0])
