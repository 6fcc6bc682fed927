"""Cells of a grid, from `--over` flags or from values in Python: one run for every combination of values."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from moot.actors.telemetry.redaction import redact
from moot.deploy.runs.flag_parsers import flag_of, read_value
from moot.deploy.runs.nested_settings import nested
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.registry import PROTOCOLS, setting_keys

RUN_FIELDS = ("protocol", "model", "agents", "seed", "encoder")
"""Fields of a run that may vary; every other key is the models of a role, or a setting of the protocol."""

ROLE = "role."
"""Prefix of the key of a role's models: `role.debater`."""

_AS_TYPED = frozenset({"protocol", "model", "encoder"})
_UNSAFE = re.compile(r"[^A-Za-z0-9._=+-]+")
_LONGEST = 180
"""Maximum length of a cell's name, which is also a folder name."""


@dataclass(frozen=True)
class AxisValue:
    """Value of a key.

    Attributes:
        name: text for the name of a folder.
        text: as typed, without secrets.
        value: the parsed value.
    """

    name: str
    text: str
    value: Any


@dataclass(frozen=True)
class Axis:
    """Key with its values, two or more."""

    key: str
    values: tuple[AxisValue, ...]


@dataclass(frozen=True)
class Cell:
    """One combination of values.

    Attributes:
        name: `KEY=VALUE,KEY=VALUE`, the name of a folder.
        values: by key, in the order of the axes.
    """

    name: str
    values: Mapping[str, AxisValue]


def make_axes(over: Mapping[str, Sequence[Any]] | Iterable[str]) -> list[Axis]:
    """Axes of a grid: values by key, or flags for `parse_axes`. Strings among the values of a key are not parsed.

    >>> [axis.key for axis in make_axes({"gate.tau_d": [0.2, False], "agents": [2, 3]})]
    ['gate.tau_d', 'agents']

    Raises:
        ConfigError: a value is given twice, or there is nothing to compare.
    """
    if not isinstance(over, Mapping):
        return parse_axes([over] if isinstance(over, str) else over)
    axes = []
    for key, values in over.items():
        if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
            raise ConfigError(f"over {key}: expected a list of values, such as [2, 3]")
        axes.append(Axis(key, _values(key, [(_value_text(value), _python_value(key, value)) for value in values])))
    return _not_empty(axes)


def parse_axes(flags: Iterable[str]) -> list[Axis]:
    """Parse `--over KEY=VALUE,VALUE...` flags; values are parsed as for `--set`.

    A comma inside quotes or brackets is part of a value.

    >>> [(axis.key, [each.value for each in axis.values]) for axis in parse_axes(["gate.tau_d=0.2,off", "agents=2,3"])]
    [('gate.tau_d', [0.2, False]), ('agents', [2, 3])]

    Raises:
        ConfigError: a flag is malformed, a key or a value is given twice, or there is nothing to compare.
    """
    axes: list[Axis] = []
    for flag in flags:
        key, equals, text = flag.partition("=")
        key, texts = key.strip(), _split_values(text)
        if not (key and equals and all(texts)):
            raise ConfigError(f"--over {redact(flag)!r}: expected KEY=VALUE,VALUE..., such as gate.tau_d=0.2,0.35")
        if key in {axis.key for axis in axes}:
            raise ConfigError(f"--over {key} is given twice: list its values with commas")
        axes.append(Axis(key, _values(key, [(text, _read(key, text)) for text in texts])))
    return _not_empty(axes)


def _not_empty(axes: list[Axis]) -> list[Axis]:
    if not axes:
        raise ConfigError("nothing varies: give --over KEY=VALUE,VALUE..., such as --over agents=2,3")
    return axes


def _value_text(value: Any) -> str:
    """Text of a value given in Python, as it would be typed."""
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return f"[{','.join(value)}]"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_json_value)


def _json_value(value: Any) -> Any:
    """JSON value of an object, such as a member of a role."""
    return value.model_dump(exclude_defaults=True) if isinstance(value, BaseModel) else str(value)


def _python_value(key: str, value: Any) -> Any:
    """Value given in Python; the models of a role become a list of members."""
    if not key.startswith(ROLE):
        return value
    members = value if isinstance(value, list | tuple) else [value]
    return [{"model": one} if isinstance(one, str) else dict(one) for one in members]


def _split_values(text: str) -> list[str]:
    """Split at commas outside of quotes and brackets."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and parts[-1].strip()[-1:] in ("", "[", "{", ",", ":"):
            quote = character
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        if character == "," and not quote and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _values(key: str, given: Sequence[tuple[str, Any]]) -> tuple[AxisValue, ...]:
    """Values of a key, each given as its text and its value."""
    texts, read = [text for text, _ in given], [value for _, value in given]
    for number, value in enumerate(read):
        same = next((text for text, before in zip(texts, read[:number], strict=False) if _same(value, before)), None)
        if same is not None:
            first, second = redact(same), redact(texts[number])
            both = f"{first!r} and {second!r} both mean {json.dumps(value, ensure_ascii=False, default=str)}"
            problem = f"the value {first!r} is given twice" if first == second else f"{both}: leave one out"
            raise ConfigError(f"--over {key}: {problem}")
    if len(read) < 2:
        flag = "--role" if key.startswith(ROLE) else flag_of(key) if key in RUN_FIELDS else "--set"
        raise ConfigError(f"--over {key}: one value is no comparison: name another, or use {flag}")
    shown = [redact(text) for text in texts]
    names = [_UNSAFE.sub("-", _folder_text(key, text)) for text in shown]
    with_digest = [f"{name}-{_digest(text)}" for name, text in zip(names, texts, strict=True)]
    unique = [suffixed if names.count(name) > 1 else name for name, suffixed in zip(names, with_digest, strict=True)]
    return tuple(map(AxisValue, unique, shown, read))


def _folder_text(key: str, text: str) -> str:
    """Text of a value for a folder name, in which commas between a role's models are `+`."""
    return "+".join(_split_values(text[1:-1])) if key.startswith(ROLE) and _in_brackets(text) else text


def _read(key: str, text: str) -> Any:
    if key.startswith(ROLE):
        return _members(key, text)
    value = read_value(text, f"--over {key}={redact(text)}")
    return text if key in _AS_TYPED and not isinstance(value, str) else value


def _members(key: str, text: str) -> list[dict[str, Any]]:
    """Members of a role: one model's name, or several in brackets; not parsed as YAML, which splits at `?`."""
    texts = _split_values(text[1:-1]) if _in_brackets(text) else [text]
    if not all(texts):
        raise ConfigError(f"--over {key}={redact(text)}: expected a model's name, or several in brackets, as in [A,B]")
    where = f"--over {key}={redact(text)}"
    read = [read_value(one, where) if one[0] in "{\"'" else one for one in texts]
    return [dict(one) if isinstance(one, Mapping) else {"model": str(one)} for one in read]


def _in_brackets(text: str) -> bool:
    return text.startswith("[") and text.endswith("]")


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal; `True` does not equal 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def cells_of(axes: Sequence[Axis]) -> list[Cell]:
    """Cells of every combination of values; those of the last key vary fastest.

    >>> [cell.name for cell in cells_of(parse_axes(["gate.tau_d=0.2,off", "agents=2,3"]))]
    ['gate.tau_d=0.2,agents=2', 'gate.tau_d=0.2,agents=3', 'gate.tau_d=off,agents=2', 'gate.tau_d=off,agents=3']
    """
    keys = [axis.key for axis in axes]
    combinations = itertools.product(*(axis.values for axis in axes))
    return [_cell(dict(zip(keys, values, strict=True))) for values in combinations]


def _cell(values: Mapping[str, AxisValue]) -> Cell:
    name = ",".join(f"{_UNSAFE.sub('-', key)}={value.name}" for key, value in values.items())
    short = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{_digest(name)}"
    return Cell(short, values)


def baseline_of(axes: Sequence[Axis], named: Mapping[str, Any] | Iterable[str]) -> Cell:
    """Baseline cell: values by key or `--baseline KEY=VALUE` flags, and the first value of any other key.

    Raises:
        ConfigError: a flag is malformed, or names a key or a value that the grid does not have.
    """
    values = {axis.key: axis.values[0] for axis in axes}
    known = {axis.key: axis.values for axis in axes}
    for key, text in _baseline_texts(named):
        if key not in known:
            raise unknown_name("key of --baseline", key, known)
        value_wanted = _python_value(key, named[key]) if isinstance(named, Mapping) else _read(key, text)
        matching = [value for value in known[key] if _same(value.value, value_wanted)]
        if not matching:
            texts = ", ".join(value.text for value in known[key])
            raise ConfigError(f"--baseline {key}={redact(text)}: the grid has no such value; it has {texts}")
        values[key] = matching[0]
    return _cell(values)


def _baseline_texts(named: Mapping[str, Any] | Iterable[str]) -> Iterator[tuple[str, str]]:
    """Keys of the baseline, each with its value as it was or would be typed."""
    if isinstance(named, Mapping):
        yield from ((key, _value_text(value)) for key, value in named.items())
        return
    for flag in [named] if isinstance(named, str) else named:
        key, equals, text = (part.strip() for part in flag.partition("="))
        if not (key and equals and text):
            raise ConfigError(f"--baseline {redact(flag)!r}: expected KEY=VALUE, such as agents=3")
        yield key, text


def check_keys(axes: Sequence[Axis], base: RunConfig, flags: Mapping[str, Any]) -> None:
    """Refuse keys that cannot vary.

    Args:
        base: common configuration of the cells.
        flags: given flags by field of a run's configuration; None where not given.

    Raises:
        ConfigError: a key does not exist, would change the cases, or is fixed by a flag.
    """
    typed = _dotted(nested(flags.get("set") or {}))
    keys = [axis.key for axis in axes]
    for key in keys:
        if key not in RUN_FIELDS and key in RunConfig.model_fields:
            raise ConfigError(f"--over {key}: only settings, role.NAME and {', '.join(RUN_FIELDS)} can vary")
        if key.startswith(ROLE) and key.removeprefix(ROLE) in (flags.get("roles") or {}):
            raise ConfigError(f"--over {key} and --role {key.removeprefix(ROLE)} contradict each other: leave one out")
        if key in typed or flags.get(key) is not None:
            fixing = f"--set {key}" if key in typed else flag_of(key)
            raise ConfigError(f"--over {key} and {fixing} contradict each other: leave one out")
    if "," in base.protocol:
        raise ConfigError(f"--protocol {base.protocol}: one protocol is expected; vary it with --over protocol=A,B")
    if "protocol" not in keys and base.protocol in PROTOCOLS:
        settings = list(setting_keys(PROTOCOLS[base.protocol].settings_model))
        for key in (key for key in keys if key not in RUN_FIELDS and not key.startswith(ROLE)):
            if key not in settings and not any(s.startswith(f"{key}.") for s in settings):
                raise unknown_name("key of --over", key, {*settings, *RUN_FIELDS})


def _dotted(tree: Mapping[str, Any], prefix: str = "") -> set[str]:
    keys: set[str] = set()
    for name, value in tree.items():
        keys |= _dotted(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}"}
    return keys


def cell_config(base: RunConfig, cell: Cell, out: str) -> RunConfig:
    """Configuration of a cell, with the folder OUT/CELL; a preset applies only to cells of its protocol.

    Raises:
        ConfigError: a value is invalid for its key.
    """
    fields = {key: value.value for key, value in cell.values.items() if key in RUN_FIELDS}
    others = {key: value.value for key, value in cell.values.items() if key not in RUN_FIELDS}
    roles = {key.removeprefix(ROLE): members for key, members in others.items() if key.startswith(ROLE)}
    settings = {key: value for key, value in others.items() if not key.startswith(ROLE)}
    changes = {**fields, "roles": roles or None, "set": settings, "out": f"{out}/{cell.name}"}
    common = base.model_copy(update={"preset": base.preset_for(fields.get("protocol", base.protocol))})
    return RunConfig.build(common, changes, lambda key: f"--over {key}")
