"""The JSON form that a prompt asks for, read from its text as a JSON schema."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

_START = re.compile(r'\{\s*"\w+"\s*:')
_TOKEN = re.compile(r'"[^"\n]*"|<[^<>\n]*>|[{}\[\]:,|]|[^\s"<>{}\[\]:,|]+')
_LONGEST = 4_000
_RANGE = re.compile(r"(?:from|between|<) ?(-?\d+(?:\.\d+)?)(?: \([^)]*\))? (?:to|and) (-?\d+(?:\.\d+)?)")
_WHOLE = re.compile(r"\bwhole\b|\binteger\b|<")
_LABELS = re.compile(r"exactly one of: *(.+?)\.?[ \t]*$", re.MULTILINE)
_LIST = re.compile(r"\blist\b")
_TRUTH = re.compile(r"\btrue\b")
_SHARE = re.compile(r"confidence|probability")


@lru_cache(maxsize=256)  # most prompts of a run differ in what stands between tags only
def read_form(instructions: str) -> dict[str, Any] | None:
    """The schema of the first object that instructions describe; None when they describe none.

    What stands for a value tells its type: `"..."` a text, `[...]` a list, `true | false`, `"A" | "B"`, an object. That
    of a bare `...` is told by the line that begins with the key, such as `- "score": a number from 0 to 10`.

    >>> read_form('{"pros": [...], "choice": "A" | "B", "mark": ...}\\n- "mark": a number from 0 to 10')["properties"]
    ... # doctest: +NORMALIZE_WHITESPACE
    {'pros': {'type': 'array', 'items': {'type': 'string'}}, 'choice': {'enum': ['A', 'B']},
     'mark': {'type': 'number', 'minimum': 0.0, 'maximum': 10.0}}
    """
    for found in _START.finditer(instructions):
        told = instructions[found.start() : found.start() + _LONGEST]
        try:
            return _object(_TOKEN.findall(told)[::-1], told)
        except (IndexError, ValueError):
            continue
    return None


def labels_named(instructions: str) -> tuple[str, ...]:
    """The closed set that follows `exactly one of:` up to the end of its line; may be empty."""
    named = _LABELS.search(instructions)
    parts = (part.strip() for part in named[1].split(", ")) if named else ()
    return tuple(dict.fromkeys(part for part in parts if part))


def _object(tokens: list[str], told: str) -> dict[str, Any]:
    """Of the tokens, the next of which is the last of the list, those of one object."""
    _expect(tokens, "{")
    properties: dict[str, Any] = {}
    while tokens[-1] != "}":
        key = json.loads(tokens.pop())
        _expect(tokens, ":")
        properties[key] = _typed(key, _value(tokens, told), told)
        if tokens[-1] == ",":
            tokens.pop()
    tokens.pop()
    return {"type": "object", "properties": properties, "required": list(properties)}


def _value(tokens: list[str], told: str) -> dict[str, Any]:
    """What stands for a value; an empty schema where that does not tell the type."""
    options = [_option(tokens, told)]
    while tokens[-1] == "|":
        tokens.pop()
        options.append(_option(tokens, told))
    if len(options) > 1:
        return {"enum": [option["const"] for option in options if "const" in option]}
    kinds = {bool: "boolean", str: "string", int: "number", float: "number"}
    return {"type": kinds.get(type(options[0]["const"]), "null")} if "const" in options[0] else options[0]


def _option(tokens: list[str], told: str) -> dict[str, Any]:
    if tokens[-1] == "{":
        return _object(tokens, told)
    token = tokens.pop()
    if token == "[":
        items: dict[str, Any] = {"type": "string"}
        while tokens[-1] != "]":
            if tokens[-1] in (",", "..."):
                tokens.pop()
            else:
                items = _value(tokens, told)
        tokens.pop()
        return {"type": "array", "items": items or {"type": "string"}}
    if token.startswith("<"):
        return _described(token)
    return {} if token == "..." else {"const": json.loads(token)}


def _typed(key: str, schema: dict[str, Any], told: str) -> dict[str, Any]:
    if schema:
        return schema
    line = re.search(rf"^\s*[-*] [^:\n]*\b{key}\b(.+(?:\n[ \t]+\S.*)*)", told, re.MULTILINE)
    if line is None and _SHARE.search(key):
        return {"type": "number", "minimum": 0.0, "maximum": 1.0}
    return _described(line[1] if line else "")


def _described(text: str) -> dict[str, Any]:
    """The type that a description tells; a text where it tells none."""
    if labels := labels_named(text):
        return {"enum": list(labels)}
    if bounds := _RANGE.search(text):
        whole = _WHOLE.search(text) is not None
        return {"type": "integer" if whole else "number", "minimum": float(bounds[1]), "maximum": float(bounds[2])}
    if _TRUTH.search(text):
        return {"type": "boolean"}
    return {"type": "array", "items": {"type": "string"}} if _LIST.search(text) else {"type": "string"}


def _expect(tokens: list[str], mark: str) -> None:
    if tokens.pop() != mark:
        raise ValueError(mark)
