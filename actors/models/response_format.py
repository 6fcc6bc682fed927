"""A reply's schema as the OpenAI wire's `response_format`."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from moot.actors.models.reply_schema import ReplySchema


@lru_cache(maxsize=1024)
def response_format(schema: ReplySchema) -> msgspec.Raw:
    """The JSON that has a server hold its reply to `schema`: made once for each."""
    held = {"name": schema.name, "strict": True, "schema": msgspec.Raw(schema.body)}
    return msgspec.Raw(msgspec.json.encode({"type": "json_schema", "json_schema": held}))


def refuses_response_format(message: str) -> bool:
    """Whether a server's 400 is about the `response_format`, going by its words.

    >>> refuses_response_format("Invalid parameter: 'response_format' of type 'json_schema' is not supported")
    True
    """
    said = message.lower()
    return names_response_format(message) or any(word in said for word in ("schema", "enum", "grammar"))


def names_response_format(message: str) -> bool:
    """Whether a message speaks of the `response_format` by a name of it, whatever else it speaks of."""
    said = message.lower()
    words = ("response_format", "response format", "text.format", "json_schema", "structured output")
    return any(word in said for word in words)
