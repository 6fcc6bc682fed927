"""JSON schemas of replies: closed, without references, and in the dialect of a server.

Based on each server's documentation (November 2026). A keyword that a dialect lacks is omitted where the reply can do
without it; a number between two bounds becomes a list of values where bounds of numbers are not enforced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal, get_args

from pydantic import BaseModel

from moot.protocols.asked_lengths import ASKED_LENGTH
from moot.protocols.errors import ConfigError
from moot.protocols.reply_limits import CASE_LABEL, SIZE_SLOT

DialectName = Literal["openai", "anthropic", "llama.cpp", "vllm", "sglang", "ollama", "llguidance", "portable"]

_STEPS = 20
"""Steps of a number that is written as a list of values: for a share 0, 0.05, ... 1."""


@dataclass(frozen=True, slots=True)
class SchemaDialect:
    """JSON-schema features that a server supports, in addition to closed objects, lists, scalars, `enum` and `anyOf`.

    Attributes:
        lengths: whether `minLength` and `maxLength` of texts are enforced.
        patterns: whether `pattern` of texts is enforced; it then replaces their lengths.
        items: whether `minItems` and `maxItems` of lists are enforced; `least one`: only a `minItems` of 0 or 1 is
            accepted.
        numbers: whether `minimum` and `maximum` are enforced: for all numbers, for integers, or for none.
        listed: whether a number with two bounds becomes a list of values where `numbers` does not cover it.
        most_values: most values of one `enum`; a longer one is omitted.
        most_characters: most characters of all values of one `enum`.
    """

    lengths: bool = False
    patterns: bool = False
    items: bool | Literal["least one"] = False
    numbers: Literal["all", "integers", "none"] = "none"
    listed: bool = False
    most_values: int = 10_000
    most_characters: int = 1_000_000


_GRAMMAR = SchemaDialect(lengths=True, patterns=True, items=True, numbers="integers", listed=True)
_XGRAMMAR = SchemaDialect(lengths=True, patterns=True, items=True, numbers="all")

DIALECTS: Mapping[DialectName, SchemaDialect] = {
    # strict mode has bounds of numbers and lists, no lengths; 1,000 values in a schema, 15,000 characters beyond 250
    "openai": SchemaDialect(patterns=True, items=True, numbers="all", most_values=250, most_characters=15_000),
    # no bounds of numbers or texts; of lists only that one may not be empty
    "anthropic": SchemaDialect(items="least one", most_values=250, most_characters=15_000),
    # its grammar has no bounds of decimal numbers
    "llama.cpp": _GRAMMAR,
    "ollama": _GRAMMAR,
    "vllm": _XGRAMMAR,
    "sglang": _XGRAMMAR,
    # of local/PATH: it has bounds of decimal numbers, but none of their digits
    "llguidance": _GRAMMAR,
    # for an unknown server: only what all of the above support
    "portable": SchemaDialect(listed=True, most_values=100, most_characters=5_000),
}
assert set(DIALECTS) == set(get_args(DialectName))


def through(schema: Mapping[str, Any], change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Maps the direct subschemas of a schema; returns a copy."""
    written = dict(schema)
    if "anyOf" in written:
        written["anyOf"] = [change(member) for member in written["anyOf"]]
    if "properties" in written:
        written["properties"] = {name: change(part) for name, part in written["properties"].items()}
    if "items" in written:
        written["items"] = change(written["items"])
    return written


def in_dialect(schema: Mapping[str, Any], dialect: SchemaDialect) -> dict[str, Any]:
    """Rewrites a schema in a server's dialect.

    >>> in_dialect({"type": "number", "minimum": 0, "maximum": 1}, DIALECTS["llama.cpp"])["enum"][:3]
    [0, 0.05, 0.1]
    """
    written = _without(through(schema, partial(in_dialect, dialect=dialect)), ASKED_LENGTH)
    if "enum" in written:
        return _chosen(written, dialect)
    match written.get("type"):
        case "array":
            return _list(written, dialect)
        case "string":
            return _text(written, dialect)
        case "number" | "integer":
            return _number(written, dialect)
    return written


def _chosen(written: dict[str, Any], dialect: SchemaDialect) -> dict[str, Any]:
    """An `enum`; free text of the longest value's length where there are too many values."""
    values = written["enum"]
    texts = [value for value in values if isinstance(value, str)]
    if len(values) <= dialect.most_values and sum(map(len, texts)) <= dialect.most_characters:
        return written
    text = {**_without(written, "enum"), "type": "string"}
    return {**text, "minLength": 1, "maxLength": max(map(len, texts), default=1)} if dialect.lengths else text


def _text(written: dict[str, Any], dialect: SchemaDialect) -> dict[str, Any]:
    if "pattern" in written and dialect.patterns:
        return _without(written, "minLength", "maxLength")
    bare = _without(written, "pattern")
    return bare if dialect.lengths else _without(bare, "minLength", "maxLength")


def _list(written: dict[str, Any], dialect: SchemaDialect) -> dict[str, Any]:
    if dialect.items is True:
        return written
    bare = _without(written, "minItems", "maxItems")
    one = dialect.items == "least one" and written.get("minItems") == 1
    return {**bare, "minItems": 1} if one else bare


def _number(written: dict[str, Any], dialect: SchemaDialect) -> dict[str, Any]:
    whole = written["type"] == "integer"
    if dialect.numbers == "all" or (whole and dialect.numbers == "integers"):
        return written
    bare = _without(written, "minimum", "maximum")
    if not dialect.listed or not {"minimum", "maximum"} <= written.keys():
        return bare
    values = _values(written["minimum"], written["maximum"], whole)
    return {**bare, "enum": values} if len(values) <= dialect.most_values else bare


def _values(lowest: float, highest: float, whole: bool) -> list[int | float]:
    """Values of a number written as an `enum`: every integer, or evenly spaced ones."""
    if whole:
        return list(range(int(lowest), int(highest) + 1))
    spaced = (round(lowest + (highest - lowest) * step / _STEPS, 6) for step in range(_STEPS + 1))
    return [int(value) if value == int(value) else value for value in spaced]


def _without(written: Mapping[str, Any], *words: str) -> dict[str, Any]:
    return {key: value for key, value in written.items() if key not in words}


_SCALARS = ("string", "number", "integer", "boolean", "null")
_LIMITS = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}


@lru_cache(maxsize=256)
def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """JSON schema of a reply without limits; shared between callers, so do not mutate it.

    Every object is closed, with its properties in the order of the model's fields and all of them required, because
    vendors refuse anything else. Limits on numbers, texts and lists, which some also refuse, are omitted: the model
    validates the reply itself in any case.

    Raises:
        ConfigError: a field cannot be expressed in such a schema: a free mapping, `Any`, a tuple, or a recursive model.
    """
    whole = model.model_json_schema(mode="validation")
    return _Closing(model.__name__, whole.get("$defs", {}), limits=False).schema(whole, "", ())


@lru_cache(maxsize=256)
def limited_schema(model: type[BaseModel]) -> dict[str, Any]:
    """JSON schema with the limits of the model's fields, and with the keys `CASE_LABEL`, `SIZE_SLOT` and `ASKED_LENGTH`
    where a field has them.

    Raises:
        ConfigError: see `json_schema`.
    """
    whole = model.model_json_schema(mode="validation")
    return _Closing(model.__name__, whole.get("$defs", {}), limits=True).schema(whole, "", ())


class _Closing:
    """Rewriter of one model's schema; `where` is the field, `inside` the definitions that are being expanded."""

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
        """Limits of a field's size, and markers for what the ask determines, labels and sizes, and for what it asks."""
        if not self._limits:
            return {}
        words = (*_LIMITS.get(given["type"], ()), CASE_LABEL, SIZE_SLOT, ASKED_LENGTH)
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
