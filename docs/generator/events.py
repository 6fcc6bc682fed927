"""The page of events."""

from __future__ import annotations

import ast
from importlib import import_module

from generator.markdown import code, page, table
from generator.source import ROOT, dotted_name


def events_page() -> str:
    """The kinds of event that protocols note."""
    intro = """What a protocol notes while a debate goes on: rows of the table [`events`](record.md#events), and what
`moot.stream` gives. `*` in a path stands for a number or a name."""
    parts = [intro]
    for folder, rows in _noted_events().items():
        parts += [f"## `{folder}`", table(("kind", "path", "noted in"), rows)]
    return page("# Events", *parts)


def _noted_events() -> dict[str, list[tuple[str, str, str]]]:
    """By folder, kind, path and module of every event, found where it is made.

    To be replaced by the fields of the events' types once each protocol defines them in its `events.py`.
    """
    found: dict[str, set[tuple[str, str, str]]] = {}
    for file in sorted([*(ROOT / "actors").glob("*.py"), *(ROOT / "protocols").rglob("*.py")]):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Event" and len(node.args) > 1:
                kind, path = (_text(each, dotted_name(file)) for each in node.args[:2])
                folder = file.parent.relative_to(ROOT).as_posix()
                found.setdefault(folder, set()).add((code(kind), code(path), code(file.name)))
    return {folder: sorted(rows) for folder, rows in found.items()}


def _text(node: ast.expr, module: str) -> str:
    """A text as far as the source tells it, `*` for the rest."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "*" for each in node.values)
    if isinstance(node, ast.Name):
        return str(getattr(import_module(module), node.id, "*"))
    return str(node.value) if isinstance(node, ast.Constant) else "*"
