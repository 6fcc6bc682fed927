"""Importing what users name as `module:Class`."""

from __future__ import annotations

import importlib
import sys
from typing import Any

LOOK_IN: list[str] = []
"""Folders that are searched behind everything that is installed; the console command names the current one. They join
`sys.path` with the first `module:Class`, so that no other command can import what lies beside its data."""


def named_object(path: str) -> Any:
    """What `module:Name` or `module:Outer.Name` names.

    Raises:
        ImportError: there is no such module; so does whatever its import raises.
        AttributeError: the module has no such name.
    """
    module, _, name = path.partition(":")
    sys.path += [place for place in LOOK_IN if place not in sys.path]
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
