"""From a pydantic model to the JSON schema that a reply is held to: one closed object without references."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from moot.protocols.errors import ConfigError
from moot.protocols.reply_limits import CASE_LABEL, SIZE_SLOT

_SCALARS = ("string", "number", "integer", "boolean", "null")
_LIMITS = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}


@lru_cache(maxsize=256)
def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a reply without limits; shared between callers, so not to be changed.

    Every object is closed, with its properties in the order of the model's fields and all of them required, since
    vendors refuse anything else. Limits on numbers, texts and lists, which some also refuse, are left out: the reply is
    validated by the model itself in any case.

    Raises:
        ConfigError: a field cannot be written in such a schema: a free mapping, `Any`, a tuple, or a model that holds
            itself.
    """
    whole = model.model_json_schema(mode="validation")
    return _Closing(model.__name__, whole.get("$defs", {}), limits=False).schema(whole, "", ())


@lru_cache(maxsize=256)
def limited_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The same with the limits that the model's fields state, with `CASE_LABEL` and `SIZE_SLOT` where a field has them.

    Raises:
        ConfigError: as `json_schema`.
    """
    whole = model.model_json_schema(mode="validation")
    return _Closing(model.__name__, whole.get("$defs", {}), limits=True).schema(whole, "", ())


class _Closing:
    """Rewrites the schema of one model; `where` is the field, `inside` the definitions that are being written out."""

    def __init__(self, name: str, definitions: Mapping[str, Any], *, limits: bool) -> None:
        self._name, self._definitions, self._limits = name, definitions, limits

    def schema(self, given: Mapping[str, Any], where: str, inside: tuple[str, ...]) -> dict[str, Any]:
        closed = self._kind(given, where, inside)
        if "description" in given and where:
            closed["description"] = given["description"]
        return closed

    def _kind(self, given: Mapping[str, Any], where: str, inside: tuple[str, ...]) -> dict[str, Any]:
        if "$ref" in given:
            return self._written_out(given["$ref"].rpartition("/")[2], where, inside)
        if "const" in given:
            return {"enum": [given["const"]], **_typed(given)}
        if "enum" in given:
            return {"enum": list(given["enum"]), **_typed(given)}
        for union in ("anyOf", "oneOf", "allOf"):
            if union in given:
                members = [self.schema(member, where, inside) for member in given[union]]
                return members[0] if len(members) == 1 else self._union(union, members, where)
        if given.get("type") == "object" and "properties" in given:
            return self._object(given, where, inside)
        if given.get("type") == "array" and "items" in given:
            return {"type": "array", "items": self.schema(given["items"], where, inside), **self._limits_of(given)}
        if given.get("type") in _SCALARS:
            return {"type": given["type"], **self._limits_of(given)}
        raise self._impossible(where, "is neither a text, a number, a truth value, a list, a choice nor a model")

    def _limits_of(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the field says of its size, and of what the ask decides: labels and sizes."""
        if not self._limits:
            return {}
        words = (*_LIMITS.get(given["type"], ()), CASE_LABEL, SIZE_SLOT)
        return {word: given[word] for word in words if word in given}

    def _written_out(self, name: str, where: str, inside: tuple[str, ...]) -> dict[str, Any]:
        if name in inside:
            raise self._impossible(where, "holds itself")
        return self.schema(self._definitions[name], where, (*inside, name))

    def _union(self, word: str, members: list[dict[str, Any]], where: str) -> dict[str, Any]:
        if word == "allOf":
            raise self._impossible(where, "must fit several schemas at once")
        return {"anyOf": members}

    def _object(self, given: Mapping[str, Any], where: str, inside: tuple[str, ...]) -> dict[str, Any]:
        properties = {
            name: self.schema(part, f"{where}.{name}" if where else name, inside)
            for name, part in given["properties"].items()
        }
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def _impossible(self, where: str, why: str) -> ConfigError:
        field = f"field `{where}` of the reply {self._name}" if where else f"the reply {self._name}"
        return ConfigError(
            f"{field} {why}, so no backend can hold a reply to it: set `structured: false` for the role, or change it"
        )


def _typed(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": given["type"]} if "type" in given else {}
