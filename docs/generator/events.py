"""The page of events."""

from __future__ import annotations

import ast
from importlib import import_module

from generator.markdown import code, page, table
from generator.source import ROOT, dotted_name, entry, is_public, tree_of


def events_page() -> str:
    """The kinds of event that protocols note."""
    intro = """What a protocol notes during a debate: rows of the table [`events`](record.md#events), and what
`moot.stream` yields. `*` in a path stands for a number or a name."""
    parts = [intro]
    noted, typed = _noted_events(), _typed_events()
    for folder in sorted({*noted, *typed}):
        parts += [f"## `{folder}`", *typed.get(folder, ())]
        parts += [table(("kind", "path", "noted in"), noted[folder])] if folder in noted else []
    return page("# Events", *parts)


def _typed_events() -> dict[str, list[str]]:
    """By folder, the entries of the types that its `events.py` defines."""
    files = sorted((ROOT / "protocols").rglob("events.py"))
    return {
        file.parent.relative_to(ROOT).as_posix(): [
            entry(node, 3)
            for node in tree_of(dotted_name(file)).body
            if isinstance(node, ast.ClassDef) and is_public(node)
        ]
        for file in files
    }


def _noted_events() -> dict[str, list[tuple[str, str, str]]]:
    """By folder, kind, path and module of every event, found where it is made.

    To be removed once each protocol defines its events as types in its `events.py`.
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
