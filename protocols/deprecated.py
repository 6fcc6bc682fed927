"""Deprecated names: names that pages have shown before keep working, with a warning that says the new one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any


def deprecated_names(module: str, **names: str) -> Callable[[str], Any]:
    """A module's `__getattr__` for names that it had before: each gives what the new name gives, with a
    `DeprecationWarning`.

    Args:
        module: the module's `__name__`.
        names: by old name, the new one in the same module.
    """

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is now called {names[name]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return look_up
