"""Form parser: from the JSON form that a prompt asks for to a JSON schema."""

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
"""Most object starts that are tried: a user's text may contain thousands that are no form."""
_LONGEST_KEPT = 20_000
_RANGE = re.compile(r"(?:from|between|<) ?(-?\d+(?:\.\d+)?)(?: \([^)]*\))? (?:to|and) (-?\d+(?:\.\d+)?)")
_WHOLE = re.compile(r"\bwhole\b|\binteger\b|<")
_LABELS = re.compile(r"exactly one of: *(.+?)\.?[ \t]*$", re.MULTILINE)
_LIST = re.compile(r"\blist\b")
_TRUTH = re.compile(r"\btrue\b")
_SHARE = re.compile(r"confidence|probability")


def read_form(instructions: str) -> dict[str, Any] | None:
    """Schema of the first object that the instructions describe; None when they describe none.

    A value's placeholder determines its type: `"..."` a text, `[...]` a list, `true | false`, `"A" | "B"`, an object.
    The type of a bare `...` comes from the line that begins with the key, such as `- "score": a number from 0 to 10`.
    An optional value (`null | ...`) has the type of its alternative. Text that cannot be parsed is no form.

    >>> read_form('{"pros": [...], "choice": "A" | "B", "mark": ...}\\n- "mark": a number from 0 to 10')["properties"]
    ... # doctest: +NORMALIZE_WHITESPACE
    {'pros': {'type': 'array', 'items': {'type': 'string'}}, 'choice': {'enum': ['A', 'B']},
     'mark': {'type': 'number', 'minimum': 0.0, 'maximum': 10.0}}
    """
    return _read_cached(instructions) if len(instructions) <= _LONGEST_KEPT else _read(instructions)


def _read(instructions: str) -> dict[str, Any] | None:
    for found in islice(_START.finditer(instructions), _MOST_STARTS):
        excerpt = instructions[found.start() : found.start() + _LONGEST]
        try:
            return _object(_TOKEN.findall(excerpt)[::-1], excerpt)
        except (IndexError, ValueError, RecursionError):
            continue
    return None


_read_cached = lru_cache(maxsize=256)(_read)  # most prompts of a run differ between tags only


def labels_named(instructions: str) -> tuple[str, ...]:
    """Labels listed after `exactly one of:`, up to the end of the line; may be empty."""
    named = _LABELS.search(instructions)
    parts = (part.strip() for part in named[1].split(", ")) if named else ()
    return tuple(dict.fromkeys(part for part in parts if part))


def _object(tokens: list[str], excerpt: str) -> dict[str, Any]:
    """Parses one object from the reversed token list."""
    _expect(tokens, "{")
    properties: dict[str, Any] = {}
    while tokens[-1] != "}":
        key = json.loads(tokens.pop())
        if not isinstance(key, str):
            raise ValueError(key)
        _expect(tokens, ":")
        properties[key] = _typed(key, _value(tokens, excerpt), excerpt)
        if tokens[-1] == ",":
            tokens.pop()
    tokens.pop()
    return {"type": "object", "properties": properties, "required": list(properties)}


def _value(tokens: list[str], excerpt: str) -> dict[str, Any]:
    """Parses a value's placeholder; an empty schema where it determines no type."""
    options = [_option(tokens, excerpt)]
    while tokens[-1] == "|":
        tokens.pop()
        options.append(_option(tokens, excerpt))
    constants = [option["const"] for option in options if option.get("const", "...") != "..."]
    if len([each for each in constants if each is not None]) > 1:
        return {"enum": constants}
    example = next((option for option in options if option.get("const", ...) is not None), {"const": None})
    kinds = {bool: "boolean", str: "string", int: "number", float: "number"}
    return {"type": kinds.get(type(example["const"]), "null")} if "const" in example else example


def _option(tokens: list[str], excerpt: str) -> dict[str, Any]:
    if tokens[-1] == "{":
        return _object(tokens, excerpt)
    token = tokens.pop()
    if token == "[":
        items: dict[str, Any] = {"type": "string"}
        while tokens[-1] != "]":
            if tokens[-1] in (",", "..."):
                tokens.pop()
            else:
                items = _value(tokens, excerpt)
        tokens.pop()
        return {"type": "array", "items": items or {"type": "string"}}
    if token.startswith("<"):
        return _described(token)
    return {} if token == "..." else {"const": json.loads(token)}


def _typed(key: str, schema: dict[str, Any], excerpt: str) -> dict[str, Any]:
    if schema:
        return schema
    line = re.search(rf"^\s*[-*] [^:\n]*\b{re.escape(key)}\b(.+(?:\n[ \t]+\S.*)*)", excerpt, re.MULTILINE)
    if line is None and _SHARE.search(key):
        return {"type": "number", "minimum": 0.0, "maximum": 1.0}
    return _described(line[1] if line else "")


def _described(text: str) -> dict[str, Any]:
    """Type from a description; text by default."""
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
