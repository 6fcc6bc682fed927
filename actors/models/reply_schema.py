"""Reply schema of one ask: a reply type with the case's labels, fitted to the reply's tokens, in a server's dialect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

import msgspec
from pydantic import BaseModel

from moot.actors.models.interface import ReplySchema
from moot.actors.models.schema_dialects import DIALECTS, DialectName, in_dialect, json_schema, limited_schema, through
from moot.actors.models.token_bounds import bytes_per_character
from moot.protocols.asked_lengths import ASKED_LENGTH, ASKED_LENGTHS, AskedLength
from moot.protocols.reply_limits import CASE_LABEL, SIZE_SLOT

CHARACTERS_PER_TOKEN = 3
"""Least average characters of a token of prose in Latin script: English has four to five."""

_LONGEST_TEXT = 300
"""Characters of a text whose reply type has no bound."""

_MOST_ITEMS = 5
"""Items of a list whose reply type has no bound."""

_SHORTEST_TEXT = 60
"""Characters below which no text is shortened to make the whole fit."""

_LONGEST_NAME = 64
_NUMBER, _BOOLEAN, _AROUND = 6, 5, 6
"""Characters of a number, of a truth value, and of the punctuation around a field."""


@lru_cache(maxsize=1024)
def reply_schema(
    model: type[BaseModel],
    dialect: DialectName | None,
    labels: tuple[str, ...] | None = None,
    max_tokens: int = 400,
    *,
    listed_labels: bool = True,
    sizes: tuple[tuple[str, int], ...] = (),
    bytes_each: int = 1,
) -> ReplySchema:
    """Builds the schema of an ask; its properties come in the order of the type's fields, in every dialect.

    Args:
        model: the reply type.
        dialect: of the server; None gives the bare schema that preceded dialects, without limits.
        labels: the case's closed set, for its `answer` and other fields with a label; None for an open set.
        max_tokens: length limit of the reply: the longest reply that the schema permits fits into it, as far as texts
            can be shortened.
        listed_labels: whether labels become an `enum`; False for a server that refused so many.
        sizes: bounds of lists and integers from the ask's slots; see `slot_sizes`.
        bytes_each: bytes per character of the reply's script; see `bytes_per_character`.

    Raises:
        ConfigError: the reply type cannot be expressed as a schema.
    """
    name = re.sub(r"[^A-Za-z0-9_-]", "_", model.__name__)[:_LONGEST_NAME]
    if dialect is None:
        return ReplySchema(name, msgspec.json.encode(json_schema(model)))
    schema = _schema_of_ask(model, labels, max_tokens, listed_labels, sizes, bytes_each)
    return ReplySchema(name, msgspec.json.encode(in_dialect(schema, DIALECTS[dialect])))


def _schema_of_ask(
    model: type[BaseModel],
    labels: tuple[str, ...] | None,
    max_tokens: int,
    listed_labels: bool,
    sizes: tuple[tuple[str, int], ...],
    bytes_each: int,
) -> dict[str, Any]:
    limited = _sized(limited_schema(model), dict(sizes))
    if labels and not listed_labels:
        limited = _with_room(limited, max(map(len, labels)))
    schema = _bounded(_with_labels(limited, labels if listed_labels else None, "answer"))
    if getattr(model, "length_follows_input", False):
        return schema
    return _fitted(schema, max_tokens, bytes_each)


@lru_cache(maxsize=1024)
def fitting_lengths(
    model: type[BaseModel],
    labels: tuple[str, ...] | None,
    max_tokens: int,
    sizes: tuple[tuple[str, int], ...] = (),
    bytes_each: int = 1,
) -> Mapping[str, AskedLength]:
    """Lengths that a prompt may ask for, by name, so that a reply of these lengths fits into its tokens and schema.

    Args:
        model, labels, max_tokens, sizes, bytes_each: see `reply_schema`.

    Raises:
        ConfigError: the reply type cannot be expressed as a schema.
    """
    fitting: dict[str, AskedLength] = {}
    for part in _marked(_schema_of_ask(model, labels, max_tokens, True, sizes, bytes_each)):
        name, room = part[ASKED_LENGTH], part["maxItems" if part["type"] == "array" else "maxLength"]
        fitting[name] = fitting.get(name, ASKED_LENGTHS[name]).within(room)
    return fitting


@lru_cache(maxsize=256)
def declares_lengths(model: type[BaseModel]) -> bool:
    """Whether a reply type has fields whose length its prompt asks for.

    Raises:
        ConfigError: the reply type cannot be expressed as a schema.
    """
    return any(True for _ in _marked(limited_schema(model)))


def _marked(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parts of a schema whose length a prompt asks for."""
    if ASKED_LENGTH in schema:
        yield schema
    for part in _parts(schema):
        yield from _marked(part)


def slot_sizes(model: type[BaseModel], slots: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Sizes in a reply that the ask's slots determine: the slots that the reply type names, with their numbers.

    Raises:
        ConfigError: the reply type cannot be expressed as a schema.
    """
    found = {name: slots.get(name) for name in _size_slots(model)}
    sizes = {name: len(value) if isinstance(value, list) else value for name, value in found.items()}
    return tuple((name, value) for name, value in sizes.items() if type(value) is int)


@lru_cache(maxsize=256)
def _size_slots(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(sorted(set(_named_slots(limited_schema(model)))))


def _named_slots(schema: Mapping[str, Any]) -> Iterator[str]:
    if SIZE_SLOT in schema:
        yield schema[SIZE_SLOT]
    for part in _parts(schema):
        yield from _named_slots(part)


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from schema.get("anyOf", ())
    yield from schema.get("properties", {}).values()
    if "items" in schema:
        yield schema["items"]


def longest_reply(schema: Mapping[str, Any], bytes_each: int = 1) -> int:
    """Length in characters of the longest reply that a schema with limits permits, in compact JSON.

    Characters count as in Latin script, `CHARACTERS_PER_TOKEN` to a token: a character of another script counts as the
    tokens that its bytes may be.

    Args:
        bytes_each: bytes per character of its texts; 1 for Latin script.

    >>> longest_reply({"type": "array", "items": {"type": "boolean"}, "maxItems": 3})
    23
    >>> longest_reply({"type": "string", "maxLength": 100}), longest_reply({"type": "string", "maxLength": 100}, 3)
    (102, 902)
    """
    if "anyOf" in schema:
        return max(longest_reply(member, bytes_each) for member in schema["anyOf"])
    if "enum" in schema:
        return max(_length(msgspec.json.encode(value).decode()) for value in schema["enum"])
    match schema["type"]:
        case "object":
            parts = schema["properties"].items()
            return 2 + sum(len(name) + _AROUND + longest_reply(part, bytes_each) for name, part in parts)
        case "array":
            return 2 + int(schema["maxItems"]) * (longest_reply(schema["items"], bytes_each) + 2)
        case "string":
            return 2 + int(schema["maxLength"]) * _weight(bytes_each)
        case "boolean" | "null":
            return _BOOLEAN
        case _:
            return _NUMBER


def _length(text: str) -> int:
    """Length of a text as in `longest_reply`."""
    return len(text) * _weight(bytes_per_character([text]))


def _weight(bytes_each: int) -> int:
    return 1 if bytes_each == 1 else bytes_each * CHARACTERS_PER_TOKEN


def _with_labels(schema: Mapping[str, Any], labels: tuple[str, ...] | None, answer: str = "") -> dict[str, Any]:
    """Adds an `enum` where a label is expected.

    A list of labelled objects has no more items than there are labels. `answer` names a property of this object that
    has a label though its type does not state it, unless the type lists its values itself; empty for none.
    """
    written = dict(schema)
    holds_label = written.pop(CASE_LABEL, False)
    if labels and written.get("type") == "string" and holds_label:
        return {"type": "string", "enum": list(labels), **_described(written)}
    if "anyOf" in written:
        written["anyOf"] = [_with_labels(member, labels) for member in written["anyOf"]]
    if "properties" in written:
        marked = {
            name: {**part, CASE_LABEL: True} if name == answer and _is_open_text(part) else part
            for name, part in written["properties"].items()
        }
        written["properties"] = {name: _with_labels(part, labels) for name, part in marked.items()}
    if "items" in written:
        if labels and any(part.get(CASE_LABEL) for part in written["items"].get("properties", {}).values()):
            written["maxItems"] = min(written.get("maxItems", len(labels)), len(labels))
        written["items"] = _with_labels(written["items"], labels)
    return written


def _is_open_text(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "string" and "enum" not in part


def _sized(schema: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Bounds lists and integers by the sizes from the slots; lists by one item at least, because not every server
    accepts a list that must be empty."""
    written = through(schema, partial(_sized, sizes=sizes))
    size = sizes.get(written.pop(SIZE_SLOT, ""))
    if size is not None:
        word, least = ("maxItems", "minItems") if written["type"] == "array" else ("maximum", "minimum")
        written[word] = max(size, written.get(least, 0), 1)
    return written


def _with_room(schema: Mapping[str, Any], longest_label: int) -> dict[str, Any]:
    """Raises text limits to fit the longest label wherever a label is written as free text."""
    written = through(schema, partial(_with_room, longest_label=longest_label))
    if written.get(CASE_LABEL):
        written["maxLength"] = max(written.get("maxLength", 0), longest_label)
    return written


def _described(written: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": written["description"]} if "description" in written else {}


def _bounded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Adds a bound to every text and list."""
    if "enum" in schema:
        return dict(schema)
    written = through(schema, _bounded)
    if written.get("type") == "array":
        written.setdefault("maxItems", max(_MOST_ITEMS, written.get("minItems", 0)))
    if written.get("type") == "string":
        written.setdefault("maxLength", max(_LONGEST_TEXT, written.get("minLength", 0)))
    return written


def _fitted(schema: dict[str, Any], max_tokens: int, bytes_each: int) -> dict[str, Any]:
    """Shortens all texts by the same factor so that the longest reply fits; short texts are unchanged.

    Before a sentence that the prompt asks for becomes less than a short one, the lists whose numbers the prompt states
    are shortened. If the shortest texts do not fit either, all lists are.
    """
    shortest = _SHORTEST_TEXT // bytes_each

    def fits(found: Mapping[str, Any]) -> bool:
        return longest_reply(found, bytes_each) <= max_tokens * CHARACTERS_PER_TOKEN

    if fits(schema):
        return schema
    to_sentences = partial(_cut, share=0.0, shortest=shortest, keeps_sentences=True)
    if not fits(to_sentences(schema)):
        fewer_asked = partial(_with_fewer_items, schema, only_asked=True)
        schema = fewer_asked(_largest_share(lambda share: fits(to_sentences(fewer_asked(share)))))
    cut = partial(_cut, schema, shortest=shortest, keeps_sentences=fits(to_sentences(schema)))
    if fits(cut(0.0)):
        return cut(_largest_share(lambda share: fits(cut(share))))
    fewer = partial(_with_fewer_items, cut(0.0))
    return fewer(_largest_share(lambda share: fits(fewer(share))))


def _largest_share(fits: Callable[[float], bool]) -> float:
    """Largest factor that fits, by bisection; 0 if none does."""
    least, most = 0.0, 1.0
    for _ in range(20):  # bisection: the length grows with the share
        middle = (least + most) / 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    return least


def _with_fewer_items(schema: Mapping[str, Any], share: float, only_asked: bool = False) -> dict[str, Any]:
    """Shortens lists; with `only_asked`, those whose number of items the prompt states."""
    written = through(schema, partial(_with_fewer_items, share=share, only_asked=only_asked))
    if written.get("type") == "array" and (ASKED_LENGTH in written or not only_asked):
        written["maxItems"] = max(1, written.get("minItems", 0), int(written["maxItems"] * share))
    return written


def _cut(schema: Mapping[str, Any], share: float, shortest: int, keeps_sentences: bool) -> dict[str, Any]:
    """Shortens texts that are longer than `shortest`; with `keeps_sentences`, those of sentences to a short one."""
    written = through(schema, partial(_cut, share=share, shortest=shortest, keeps_sentences=keeps_sentences))
    if written.get("type") == "string" and written.get("maxLength", 0) > shortest:
        asked = ASKED_LENGTHS.get(written.get(ASKED_LENGTH, "")) if keeps_sentences else None
        least = max(shortest, written.get("minLength", 0), asked.least if asked else 0)
        written["maxLength"] = max(least, int(written["maxLength"] * share))
    return written
