"""Deprecated names: documented old names keep working, with a warning that names the new one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any


def deprecated_names(module: str, **names: str) -> Callable[[str], Any]:
    """A module's `__getattr__` for its old names: each resolves to the new name's object, with a `DeprecationWarning`.

    Args:
        module: the module's `__name__`.
        names: new name in the same module, by old name.
    """

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is now called {names[name]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return look_up
