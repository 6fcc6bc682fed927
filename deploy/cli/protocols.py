"""`moot protocols NAME`: a protocol's settings, its presets, and what a preset's paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from moot.protocols.errors import unknown_name
from moot.protocols.presets.preset import Preset, find_preset, preset_names, presets_of
from moot.protocols.registry import PROTOCOLS, make_protocol, read_settings, setting_keys

_WIDTH = 110


def describe_protocol(name: str) -> list[str]:
    """Description of a protocol (settings, defaults, presets) or of one preset, as lines.

    Raises:
        ConfigError: there is no protocol and no preset of that name.
    """
    if name in PROTOCOLS:
        read = ", ".join(["question", "labels", *sorted(make_protocol(name).reads or ())])
        lines = [
            f"{name}: {PROTOCOLS[name].description}",
            f"reads of a case: {read}",
            "",
            "settings (--set KEY=VALUE) and their defaults:",
        ]
        lines += [f"  {key} = {_shown(value)}" for key, value in _defaults(name).items()]
        for preset_name, preset in presets_of(name).items():
            lines += ["", *_of_preset(preset_name, preset)]
        return lines
    if name in preset_names():
        return _of_preset(name, find_preset(name))
    raise unknown_name("protocol or preset", name, {*PROTOCOLS, *preset_names()})


def _of_preset(name: str, preset: Preset) -> list[str]:
    lines = [f"--preset {name} (protocol {preset.protocol}), after {preset.paper}", "", "it sets:"]
    lines += _table(list(_rows(preset)))
    lines += [
        "",
        *_wrapped("models of the paper, which it does not set: ", preset.models),
        "",
        "the paper leaves open:",
    ]
    return [*lines, *(line for sentence in preset.open for line in _wrapped("- ", sentence))]


def _rows(preset: Preset) -> Iterator[tuple[str, str, str]]:
    defaults = _defaults(preset.protocol)
    for key, stated in preset.settings.items():
        differs = "" if _shown(defaults[key]) == _shown(stated.value) else f" (default {_shown(defaults[key])})"
        yield key, f"{_shown(stated.value)}{differs}", stated.source
    for role, keys in preset.decoding.items():
        for key, stated in keys.items():
            yield (
                f"{key} of {role}",
                "the vendor's default" if stated.value is None else _shown(stated.value),
                stated.source,
            )


def _table(rows: list[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return [f"  {key:<{widths[0]}}  {value:<{widths[1]}}  {source}" for key, value, source in rows]


def _defaults(protocol: str) -> dict[str, Any]:
    """Default values of a protocol's settings, by dotted key."""
    entry = PROTOCOLS[protocol]
    tree = read_settings(entry.settings_model, {}, name=protocol, preset=entry.preset, fixed=entry.fixed)
    data = tree.model_dump(mode="json")
    return {key: _at(data, key) for key in setting_keys(entry.settings_model)}


def _at(tree: Mapping[str, Any], key: str) -> Any:
    value: Any = tree
    for part in key.split("."):
        value = value[part]
    return value


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return str(value.get("name", "..."))
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)


def _wrapped(lead: str, text: str) -> list[str]:
    return wrap(f"{lead}{text}", _WIDTH, initial_indent="  " if lead == "- " else "", subsequent_indent="    ")
