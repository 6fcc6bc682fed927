"""Importing what users name as `module:Class`."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from moot.protocols.errors import nearest

LOOK_IN: list[str] = []
"""Folders that are searched behind everything that is installed; the console command names the current one. They join
`sys.path` with the first `module:Class`, so that no other command can import what lies beside its data."""


def named_object(path: str) -> Any:
    """What `module:Name` or `module:Outer.Name` names.

    Raises:
        ImportError: there is no such module; so does whatever its import raises.
        AttributeError: the module has no such name; the nearest one that it defines is named.
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
    """The classes of a module in `LOOK_IN`, as `module:Class`, those with a `run` first; nothing is imported.

    Args:
        name: of the module, or of its file.
    """
    module = name.removesuffix(".py")
    for folder in LOOK_IN:
        try:
            tree = ast.parse((Path(folder) / f"{module}.py").read_bytes())
        except (OSError, ValueError, SyntaxError):
            continue
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        methods = (ast.FunctionDef, ast.AsyncFunctionDef)
        classes.sort(key=lambda node: not any(isinstance(each, methods) and each.name == "run" for each in node.body))
        return [f"{module}:{node.name}" for node in classes]
    return []


def _missing(holder: str, name: str, within: Any) -> str:
    """What is said of a name that a module or class has not; empty where nothing is near and there are no classes."""
    members = {key: value for key, value in getattr(within, "__dict__", {}).items() if not key.startswith("_")}
    if close := nearest(name, (key for key, value in members.items() if not inspect.ismodule(value))):
        return f"{holder} has no {name!r}: did you mean {close!r}?"
    own = sorted(key for key, value in members.items() if inspect.isclass(value) and value.__module__ == holder)
    return f"{holder} has no {name!r}; its classes are {', '.join(own)}" if own else ""
