"""The page of events."""

from __future__ import annotations

import ast
from importlib import import_module
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from generator.markdown import attributes_of, code, page, prose_of, table
from generator.source import ROOT, dotted_name, entry, is_public, method, source, tree_of

_BASES = ("EventData", "DebateEvent")
"""What every type extends; shown as code."""


def events_page() -> str:
    """The kinds of event that protocols note."""
    intro = """An event is what a protocol notes during a debate. Events are the rows of the table
[`events`](record.md#events), and `moot.stream` yields them. Each table on this page lists the keys of an event's data,
or of a part of it, including those of base types. A key with a default may be absent."""
    parts = [intro]
    folder = None
    for file in sorted((ROOT / "protocols").rglob("*events.py"), key=lambda each: (each.parent, each.name)):
        module = dotted_name(file)
        nodes = [each for each in tree_of(module).body if isinstance(each, ast.ClassDef) and is_public(each)]
        entries = [entry(each, 3) if each.name in _BASES else _entry(module, each) for each in nodes]
        parts += [] if file.parent == folder else [f"## `{file.parent.relative_to(ROOT).as_posix()}`"]
        parts += entries
        folder = file.parent
    return page("# Events", *parts)


def _entry(module: str, node: ast.ClassDef) -> str:
    """A type: its kind, its docstring, its keys, and its methods."""
    event: type[BaseModel] = getattr(import_module(module), node.name)
    kind = getattr(event, "kind", None)
    bases = [code(base.__name__) for base in event.__bases__ if base.__name__ not in _BASES]
    facts = [f"Kind {code(kind)}."] if kind else []
    facts += [f"Extends {' and '.join(bases)}."] if bases else []
    rows = [_row(event, name, field) for name, field in event.model_fields.items() if not field.exclude]
    parts = [f"### {code(node.name)}", " ".join(facts), prose_of(node), table(("key", "type", "default", ""), rows)]
    parts += [method(node, each) for each in node.body if is_public(each)]
    return "\n\n".join(part for part in parts if part)


def _row(event: type[BaseModel], name: str, field: FieldInfo) -> tuple[str, str, str, str]:
    """A key: the nearest type that declares it says of what type it is, the nearest that describes it what it means."""
    owners = [_definition(base) for base in event.__mro__ if base.__module__.startswith("moot.")]
    declared = next(found for owner in owners if (found := _declared(owner).get(name)))
    meaning = next((said for owner in owners if (said := attributes_of(owner).get(name))), "")
    default = "" if field.is_required() else code(repr(field.get_default(call_default_factory=True)).replace("'", '"'))
    return code(field.serialization_alias or name), code(source(declared)), default, meaning


def _definition(of: type[Any]) -> ast.ClassDef:
    classes = (each for each in tree_of(of.__module__).body if isinstance(each, ast.ClassDef))
    return next(each for each in classes if each.name == of.__name__)


def _declared(node: ast.ClassDef) -> dict[str, ast.expr]:
    return {source(each.target): each.annotation for each in node.body if isinstance(each, ast.AnnAssign)}
