"""The JSON form that a prompt asks for, read from its text as a JSON schema."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from itertools import islice
from typing import Any

_START = re.compile(r'\{\s*"\w+"\s*:')
_TOKEN = re.compile(r'"[^"\n]*"|<[^<>\n]*>|[{}\[\]:,|]|[^\s"<>{}\[\]:,|]+')
_LONGEST = 4_000
_MOST_STARTS = 8
"""Beginnings of objects that are tried: a text of the user's own may hold thousands of what is no form."""
_LONGEST_KEPT = 20_000
_RANGE = re.compile(r"(?:from|between|<) ?(-?\d+(?:\.\d+)?)(?: \([^)]*\))? (?:to|and) (-?\d+(?:\.\d+)?)")
_WHOLE = re.compile(r"\bwhole\b|\binteger\b|<")
_LABELS = re.compile(r"exactly one of: *(.+?)\.?[ \t]*$", re.MULTILINE)
_LIST = re.compile(r"\blist\b")
_TRUTH = re.compile(r"\btrue\b")
_SHARE = re.compile(r"confidence|probability")


def read_form(instructions: str) -> dict[str, Any] | None:
    """The schema of the first object that instructions describe; None when they describe none.

    What stands for a value tells its type: `"..."` a text, `[...]` a list, `true | false`, `"A" | "B"`, an object. That
    of a bare `...` is told by the line that begins with the key, such as `- "score": a number from 0 to 10`. One that
    may be null beside something else is that other thing. What cannot be read is no form.

    >>> read_form('{"pros": [...], "choice": "A" | "B", "mark": ...}\\n- "mark": a number from 0 to 10')["properties"]
    ... # doctest: +NORMALIZE_WHITESPACE
    {'pros': {'type': 'array', 'items': {'type': 'string'}}, 'choice': {'enum': ['A', 'B']},
     'mark': {'type': 'number', 'minimum': 0.0, 'maximum': 10.0}}
    """
    return _kept(instructions) if len(instructions) <= _LONGEST_KEPT else _read(instructions)


def _read(instructions: str) -> dict[str, Any] | None:
    for found in islice(_START.finditer(instructions), _MOST_STARTS):
        told = instructions[found.start() : found.start() + _LONGEST]
        try:
            return _object(_TOKEN.findall(told)[::-1], told)
        except (IndexError, ValueError, RecursionError):
            continue
    return None


_kept = lru_cache(maxsize=256)(_read)  # most prompts of a run differ in what stands between tags only


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
        if not isinstance(key, str):
            raise ValueError(key)
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
    constants = [option["const"] for option in options if option.get("const", "...") != "..."]
    if len([each for each in constants if each is not None]) > 1:
        return {"enum": constants}
    example = next((option for option in options if option.get("const", ...) is not None), {"const": None})
    kinds = {bool: "boolean", str: "string", int: "number", float: "number"}
    return {"type": kinds.get(type(example["const"]), "null")} if "const" in example else example


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
    line = re.search(rf"^\s*[-*] [^:\n]*\b{re.escape(key)}\b(.+(?:\n[ \t]+\S.*)*)", told, re.MULTILINE)
    if line is None and _SHARE.search(key):
        return {"type": "number", "minimum": 0.0, "maximum": 1.0}
    return _described(line[1] if line else "")


def _described(text: str) -> dict[str, Any]:
    """The type that a description tells; a text where it tells none."""
    if labels := labels_named(text):
        return {"enum": list(labels)}
    bounds = _RANGE.search(text)
    if bounds is not None and math.isfinite(float(bounds[1])) and math.isfinite(float(bounds[2])):
        whole = _WHOLE.search(text) is not None
        return {"type": "integer" if whole else "number", "minimum": float(bounds[1]), "maximum": float(bounds[2])}
    if _TRUTH.search(text):
        return {"type": "boolean"}
    return {"type": "array", "items": {"type": "string"}} if _LIST.search(text) else {"type": "string"}


def _expect(tokens: list[str], mark: str) -> None:
    if tokens.pop() != mark:
        raise ValueError(mark)
