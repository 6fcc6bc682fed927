"""Bounds of a case's texts, and the length from which work on texts leaves the event loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

MOST_CHARACTERS = 400_000
"""Most characters of a case's texts: about 100,000 tokens, more than most models read at once."""

LONG = 20_000
"""Length in characters from which splitting, rendering or reading takes some milliseconds."""

_BESIDE_PIECE = 40
"""Overhead of a piece of text in characters: a prompt adds tags."""


def is_long(value: object) -> bool:
    """Whether work on texts is too much for an event loop; takes constant time.

    Args:
        value: a text, or lists, mappings and structs of texts, nested less deep than Python recurses.

    >>> is_long("a few words"), is_long("word " * 10_000), is_long({"evidence": ["."] * 1_000})
    (False, True, True)
    """
    return _left(value, LONG) < 0


def _left(value: object, room: int) -> int:
    """Remainder of `room` for further characters; negative when the value alone is longer."""
    if isinstance(value, str):
        return room - len(value) - _BESIDE_PIECE
    for each in _inner(value):
        room = _left(each, room - 1)
        if room < 0:
            break
    return room


def characters(value: object) -> int:
    """Total number of characters of the texts in a value.

    >>> characters({"question": "why?", "documents": ("so", "because"), "images": None})
    13
    """
    if isinstance(value, str):
        return len(value)
    return sum(map(characters, _inner(value)))


def _inner(value: object) -> Iterable[object]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Mapping):
        return value.values()
    return msgspec.structs.asdict(value).values() if isinstance(value, msgspec.Struct) else ()
