"""Importer of objects that users name as `module:Class`."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from moot.protocols.errors import nearest
from moot.protocols.regular_files import MOST_TEXT_BYTES, read_regular

LOOK_IN: list[str] = []
"""Folders searched after everything that is installed; the console command adds the current one. They join `sys.path`
with the first `module:Class`, so that no other command can import files beside its data."""


def named_object(path: str) -> Any:
    """Object named by `module:Name` or `module:Outer.Name`.

    Raises:
        ImportError: there is no such module; any exception of its import is also raised.
        AttributeError: the module has no such name; the message suggests the nearest one.
    """
    module, _, name = path.partition(":")
    sys.path += [place for place in LOOK_IN if place not in sys.path]
    found: Any = importlib.import_module(module)
    holder = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise AttributeError(_missing(holder, part, found) or str(error)) from error
        holder = f"{holder}.{part}"
    return found


def own_classes(name: str) -> list[str]:
    """Classes of a module in `LOOK_IN`, as `module:Class`, those with a `run` first; nothing is imported.

    Args:
        name: of the module, or of its file.
    """
    module = name.removesuffix(".py")
    for folder in LOOK_IN:
        try:
            tree = ast.parse(read_regular(Path(folder) / f"{module}.py", MOST_TEXT_BYTES))
        except (OSError, ValueError, SyntaxError):
            continue
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        methods = (ast.FunctionDef, ast.AsyncFunctionDef)
        classes.sort(key=lambda node: not any(isinstance(each, methods) and each.name == "run" for each in node.body))
        return [f"{module}:{node.name}" for node in classes]
    return []


def _missing(holder: str, name: str, within: Any) -> str:
    """Hint for a missing name of a module or class; empty without similar names or classes."""
    members = {key: value for key, value in getattr(within, "__dict__", {}).items() if not key.startswith("_")}
    if close := nearest(name, (key for key, value in members.items() if not inspect.ismodule(value))):
        return f"{holder} has no {name!r}: did you mean {close!r}?"
    own = sorted(key for key, value in members.items() if inspect.isclass(value) and value.__module__ == holder)
    return f"{holder} has no {name!r}; its classes are {', '.join(own)}" if own else ""
