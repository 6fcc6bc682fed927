"""How long texts may be that come with a case, and from which length on work on them leaves the event loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

MOST_CHARACTERS = 400_000
"""Characters of all texts of one case together: about 100,000 tokens, more than most models read at once."""

LONG = 20_000
"""Characters of text that take some milliseconds to split, to render or to read."""

_BESIDE_PIECE = 40
"""Characters that stand for what a piece of text costs besides its own: a prompt puts tags around it."""


def is_long(value: object) -> bool:
    """Whether work on texts is too much for an event loop; takes no time itself, however much there is.

    Args:
        value: a text, or lists, mappings and structs of texts, nested less deep than Python recurses.

    >>> is_long("a few words"), is_long("word " * 10_000), is_long({"evidence": ["."] * 1_000})
    (False, True, True)
    """
    return _left(value, LONG) < 0


def _left(value: object, room: int) -> int:
    """What is left of `room` for further characters; below 0 when the value alone is more."""
    if isinstance(value, str):
        return room - len(value) - _BESIDE_PIECE
    for each in _inner(value):
        room = _left(each, room - 1)
        if room < 0:
            break
    return room


def characters(value: object) -> int:
    """How many characters the texts in a value have together.

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
