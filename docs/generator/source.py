"""Definitions as they stand in the source: signatures, docstrings, and where a name is defined."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from generator.markdown import code, markdown_of, prose

ROOT = Path(__file__).resolve().parents[2]
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def tree_of(name: str) -> ast.Module:
    place = ROOT.joinpath(*name.split(".")[1:])
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.parse((ROOT / "moot" / "__init__.py" if name == "moot" else file).read_text("utf-8"))


def dotted_name(file: Path) -> str:
    """The name of a module."""
    return ".".join(("moot", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def source(node: ast.AST) -> str:
    """The source of an expression, with the quotes of this project."""
    return re.sub(r"'([^'\"\\]*)'", r'"\1"', ast.unparse(node))


def imports(tree: ast.Module) -> dict[str, str]:
    """By name, the module of ours that it is imported from."""
    found = (
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and str(node.module).startswith("moot")
    )
    return {alias.asname or alias.name: str(node.module) for node in found for alias in node.names}


def definition(module: str, name: str) -> tuple[str, ast.stmt, str]:
    """Where a name is defined: the module, the statement, and the text below it, if any."""
    tree = tree_of(module)
    found = None
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if getattr(node, "name", None) == name or any(getattr(each, "id", None) == name for each in targets):
            said = below.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
            found = module, node, str(said.value) if said and targets else ""
    return found or definition(imports(tree)[name], name)


def _signature(node: _Definition, name: str = "") -> str:
    """A definition as it would stand in a stub, in one line if it fits."""
    name = name or node.name
    if isinstance(node, ast.ClassDef):
        tags = [f"tag={source(each.value)}" for each in node.keywords if each.arg == "tag"]
        bases = [*map(source, node.bases), *tags]
        return f"class {name}({', '.join(bases)})" if bases else f"class {name}"
    given = [part for part in _arguments(node.args) if part not in ("self", "cls")]
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {source(node.returns)}" if node.returns else ""
    line = f"{kind} {name}({', '.join(given)}){returns}"
    return (
        line if len(line) <= 100 else "\n".join([f"{kind} {name}(", *(f"    {each}," for each in given), f"){returns}"])
    )


def _arguments(of: ast.arguments) -> Iterator[str]:
    positional = [*of.posonlyargs, *of.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(of.defaults))
    for number, (each, default) in enumerate(zip(positional, [*defaults, *of.defaults], strict=True), start=1):
        yield _argument(each, default)
        if number == len(of.posonlyargs):
            yield "/"
    if of.vararg or of.kwonlyargs:
        yield f"*{_argument(of.vararg) if of.vararg else ''}"
    for each, default in zip(of.kwonlyargs, of.kw_defaults, strict=True):
        yield _argument(each, default)
    if of.kwarg:
        yield f"**{_argument(of.kwarg)}"


def _argument(given: ast.arg, default: ast.expr | None = None) -> str:
    name = f"{given.arg}: {source(given.annotation)}" if given.annotation else given.arg
    return name if default is None else f"{name}{' = ' if given.annotation else '='}{source(default)}"


def is_public(node: ast.stmt) -> bool:
    return isinstance(node, _Definition) and not node.name.startswith("_")


def entry(node: ast.stmt, level: int, below: str = "") -> str:
    """The entry of a function, a class with its public methods, or a constant with the text below it."""
    if not isinstance(node, _Definition):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target  # type: ignore[attr-defined]
        return f"{'#' * level} `{source(target)}`\n\n{prose(below)}"
    parts = [f"{'#' * level} `{node.name}`", f"```py\n{_signature(node)}\n```", markdown_of(node)]
    if isinstance(node, ast.ClassDef):
        fields = [
            each for each in node.body if isinstance(each, ast.AnnAssign) and not source(each.target).startswith("_")
        ]
        lines = [f"    {source(each.target)}: {source(each.annotation)}{_simple(each.value)}" for each in fields]
        parts[1] = "\n".join([f"```py\n{_signature(node)}{':' if lines else ''}", *lines, "```"])
        parts += ["\n".join(_texts_below(node))]
        parts += [method(node, each) for each in node.body if is_public(each)]
    return "\n\n".join(part for part in parts if part)


def _texts_below(node: ast.ClassDef) -> Iterator[str]:
    """The attributes of a class that are described below themselves instead of in its docstring."""
    for each, below in pairwise(node.body):
        if isinstance(each, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            yield f"- {code(source(each.target))}: {prose(str(below.value.value))}"


def _simple(value: ast.expr | None) -> str:
    return "" if value is None or isinstance(value, ast.Call) else f" = {source(value)}"


def method(owner: ast.ClassDef, node: Any) -> str:
    """The entry of a method or a property."""
    marks = {source(mark) for mark in node.decorator_list}
    if marks & {"property", "cached_property"}:
        head = f"{owner.name}.{node.name}: {source(node.returns)}"
    else:
        head = _signature(node, f"{owner.name}.{node.name}")
    return f"```py\n{head}\n```\n\n{markdown_of(node)}"
