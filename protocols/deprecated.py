"""Deprecated names and values: documented old ones keep working, with a warning that names the new one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
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


def deprecated_values(setting: str, values: Mapping[str, str]) -> Callable[[object], object]:
    """A validator for a setting's old values: each becomes the new value, with a `DeprecationWarning`.

    Args:
        setting: the setting's name, for the warning.
        values: new value by old value.
    """

    def renamed(value: object) -> object:
        if not isinstance(value, str) or value not in values:
            return value
        warnings.warn(f"{setting}={value} is now called {values[value]}", DeprecationWarning, stacklevel=2)
        return values[value]

    return renamed
