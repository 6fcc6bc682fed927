"""The page of settings."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel

import moot
from generator.markdown import code, page, prose, table
from generator.source import definition
from moot.actors.simulated.settings import SimulatedSettings
from moot.deploy.runs.flag_parsers import flags_of
from moot.protocols.registry import setting_keys

_YAML = re.compile(r"\b(None|True|False)\b")


def shown_default(value: object) -> str:
    """A default as a user would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return str(getattr(value, "name", "defaults"))
    return f"{value:g}" if isinstance(value, float) else str(value) or "empty"


def _values(schema: dict[str, Any], within: dict[str, Any]) -> str:
    """What a JSON schema lets a setting be, in words."""
    if "$ref" in schema:
        schema = within[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return ", ".join(dict.fromkeys(_values(each, within) for each in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(code(str(each)) for each in schema.get("enum", [schema.get("const")]))
    low, high, above, below = (
        None if (found := schema.get(key)) is None else f"{found:.10g}"
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    )
    bounds = [
        f"above {above}" if above else "",
        f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}" if high else "",
        f"below {below}" if below else "",
    ]
    words = {"integer": "whole number", "null": "`none`", "boolean": "`true`, `false`", "string": "text"}
    words |= {"array": "list", "object": "mapping"}
    kind = schema.get("type", "")
    return " ".join(filter(None, [words.get(kind, kind), ", ".join(filter(None, bounds))]))


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """By field, its description, or what the docstring of its class says of it."""
    of_class: dict[str, str] = {}
    _, node, _ = definition(model.__module__, model.__name__)
    said = ast.get_docstring(node) or ""  # type: ignore[arg-type]
    for block in re.split(r"\n\s*\n", said):
        if block.startswith("Attributes:\n"):
            for item in re.split(r"\n(?=\S)", textwrap.dedent(block.partition("\n")[2])):
                names, _, text = item.partition(": ")
                of_class |= dict.fromkeys(names.split(", "), text)
    described = {name: info.description for name, info in model.model_fields.items() if info.description}
    return {
        name: _YAML.sub(lambda found: code(found[0].lower()), text) for name, text in (of_class | described).items()
    }


def _setting(model: type[BaseModel], key: str) -> tuple[type[BaseModel], str, Any]:
    """Of a dotted key: the model whose field it is, the field's name, and its default in the whole tree."""
    *path, name = key.split(".")
    found: Any = model.model_construct()
    for part in path:
        found = getattr(found, part)
    return type(found), name, getattr(found, name, None)


def _settings(model: type[BaseModel], keys: Iterable[str] | None = None) -> str:
    rows = []
    for key in keys or setting_keys(model):
        owner, name, default = _setting(model, key)
        schema = owner.model_json_schema()
        allowed = _values(schema["properties"][name], schema.get("$defs", {}))
        shown = "" if owner.model_fields[name].is_required() else code(shown_default(default))
        rows.append((code(key), shown, allowed, prose(_meanings(owner)[name])))
    return table(("key", "default", "values", "meaning"), rows)


def settings_page() -> str:
    """Every setting of a run, of its roles, of its protocols and of the simulated model."""
    run, role = moot.RunConfig, moot.RoleBinding
    cluster = type(run.model_fields["cluster"].default)
    limits = next(each for each in _models_within(run.model_fields["limits"].annotation))
    early_stop = next(each for each in _models_within(role.model_fields["early_stop"].annotation))
    rows = []
    for key, info in run.model_fields.items():
        flags = " ".join(code(flag) for flag in flags_of(key).split("/") if flag)
        rows.append((code(key), code(shown_default(info.default)), flags, prose(str(info.description))))
    parts = [
        "Every setting with its default. A key with dots is in a group: `--set gate.tau_d=0.3`, or nested in YAML.",
        "## A run",
        "These are the keys of a configuration file and of `moot.run(...)`, with the flags of the command line.",
        table(("key", "default", "flag", "meaning"), rows),
        "## A role",
        "These are the keys of each entry of `roles`.",
        _settings(role),
        "### `early_stop`",
        _settings(early_stop),
        "## Limits of one model",
        "These are the keys of each entry of `limits`.",
        _settings(limits),
        "## A cluster",
        "These are the keys of `cluster`.",
        _settings(cluster),
        *_settings_of_protocols(),
        "## The simulated model",
        "Write these settings in the model's name: `simulated?competence=0.9&latency_ms=50`.",
        _settings(SimulatedSettings),
        "## An analysis",
        "These are the settings of `moot analyze` and `moot.analyze`.",
        _settings(moot.AnalysisSettings),
    ]
    return page("# Settings", *parts)


def _models_within(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in getattr(annotation, "__args__", ()):
        yield from _models_within(each)


def _settings_of_protocols() -> Iterator[str]:
    by_model: dict[type[BaseModel], list[str]] = {}
    for name, entry in moot.PROTOCOLS.items():
        by_model.setdefault(entry.settings_model, []).append(name)
    for model, names in by_model.items():
        yield f"## Protocol {', '.join(code(name) for name in names)}"
        yield _settings(model)
        different = [
            (
                code(name),
                code(key),
                code(shown_default(value)),
                "fixed" if key in moot.PROTOCOLS[name].fixed else "default",
            )
            for name in names
            for key, value in {**moot.PROTOCOLS[name].preset, **moot.PROTOCOLS[name].fixed}.items()
        ]
        if different:
            yield "These protocols have other values:"
            yield table(("protocol", "key", "value", "which is"), different)
