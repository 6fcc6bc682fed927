"""Content of a message as a list of parts: text, thinking and refusals, of any vendor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

PartKind = Literal["text", "thinking", "refusal"]


class Content(NamedTuple):
    """Content of a message, by kind.

    Attributes:
        text: the reply.
        thinking: hidden reasoning.
        refusal: why the model declined.
    """

    text: str = ""
    thinking: str = ""
    refusal: str = ""


_KEYS = ("thinking", "reasoning", "summary", "text", "content", "value")
"""Keys of a part that may hold its text, or further parts."""


def read_content(content: object) -> Content:
    """Reads a message's `content`: a text, a part, or a list of both; parts of other kinds (a reference) have no text.

    Raises:
        TypeError: it is something else.

    >>> read_content([{"type": "thinking", "thinking": [{"text": "Hm."}]}, {"type": "text", "text": "Yes"}])
    Content(text='Yes', thinking='Hm.', refusal='')
    """
    if isinstance(content, str):
        return Content(content)
    if content is None:
        return Content()
    if not isinstance(content, list | dict):
        raise TypeError(f"its content is of type {type(content).__name__}")
    found: dict[str, str] = {}
    for part in content if isinstance(content, list) else [content]:
        kind = _kind(part)
        found[kind] = found.get(kind, "") + "".join(_texts(part.get("refusal") if kind == "refusal" else part))
    return Content(**found)


def _kind(part: object) -> PartKind:
    if not isinstance(part, dict):
        return "text"
    return "thinking" if part.get("thought") is True else kind_of_part(part.get("type"))


def kind_of_part(named: object) -> PartKind:
    """Kind of a part by its type.

    >>> kind_of_part("output_text"), kind_of_part("reasoning_text"), kind_of_part("refusal")
    ('text', 'thinking', 'refusal')
    """
    name = str(named).lower()
    if name == "refusal":
        return "refusal"
    return "thinking" if "think" in name or "reason" in name else "text"


def _texts(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for each in part:
            yield from _texts(each)
    elif isinstance(part, dict):
        yield from _texts(next((part[key] for key in _KEYS if part.get(key)), None))
