"""A reply to a prompt that asks for no known form, but whose server is to hold it to a JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moot.actors.models.simulated.turn import Draft

_WORDS = "as it is "


def write_held(schema: Mapping[str, Any]) -> Draft:
    """The shortest reply that fits.

    >>> write_held({"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}}}).text
    '{"a":"x","b":false}'
    """
    return Draft(msgspec.json.encode(_shortest(schema)).decode())


def _shortest(schema: Mapping[str, Any]) -> object:
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _shortest(schema["anyOf"][0])
    match schema.get("type"):
        case "object":
            return {name: _shortest(part) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [_shortest(schema["items"])] * schema.get("minItems", 0)
        case "string":
            least = schema.get("minLength", 1)
            return (_WORDS * (least // len(_WORDS) + 1))[: max(least, 5)] if "pattern" not in schema else "0"
        case "number" | "integer":
            return schema.get("minimum", 0)
        case "boolean":
            return False
    return None
