"""Nested settings: expansion of dotted keys, and override of one set of settings by another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moot.protocols.errors import ConfigError


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Nest settings by expanding dotted keys.

    >>> nested({"gate.tau_d": 0.2, "gate": {"tau_m": 0.1}})
    {'gate': {'tau_d': 0.2, 'tau_m': 0.1}}

    Raises:
        ConfigError: a setting is given twice, or is both a value and a group.
    """
    tree: dict[str, Any] = {}
    for key, value in settings.items():
        *path, last = str(key).split(".")
        for part in reversed(path):
            value, last = {last: value}, part
        _set_nested(tree, last, value, "")
    return tree


def _set_nested(tree: dict[str, Any], name: str, value: Any, prefix: str) -> None:
    if isinstance(value, Mapping):
        branch = tree.setdefault(name, {})
        if not isinstance(branch, dict):
            raise ConfigError(f"setting `{prefix}{name}` is given twice")
        for key, inner in nested(value).items():
            _set_nested(branch, key, inner, f"{prefix}{name}.")
    elif name in tree:
        raise ConfigError(f"setting `{prefix}{name}` is given twice")
    else:
        tree[name] = value


def merge_settings(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Nest two sets of settings, and override the first by the second, key by key.

    Raises:
        ConfigError: one of them gives a setting twice.
    """
    return _overlay(nested(below), nested(above))


def _overlay(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _overlay(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged
