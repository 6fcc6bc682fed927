"""How many tokens a call may use: an estimate for rates, an upper bound for money."""

from __future__ import annotations

from collections.abc import Sequence

from moot.actors.models.reply_schema import ReplySchema
from moot.actors.models.scripts import estimated_length
from moot.protocols.messages import Message

_PER_MESSAGE = 16
"""Tokens around a message: role, separators. Vendors' formats need 3 to 8."""

_PER_IMAGE = 3_000
"""Most tokens of a picture at the sizes that are sent (`moot.actors.models.pictures`); vendors charge up to 2,900."""


_BESIDE_SCHEMA = 600
"""Tokens that vendors put around a JSON schema: up to 350 with tools, by their own tables."""


def schema_bound(schema: ReplySchema | None) -> int:
    """At most how many tokens of the prompt a reply's schema adds; 0 without one."""
    return 0 if schema is None else len(schema.body) + _BESIDE_SCHEMA


def text_estimate(text: str) -> int:
    """About how many tokens a text is: four characters of Latin script each, or one of another."""
    return estimated_length(text) // 4


def prompt_estimate(messages: Sequence[Message]) -> int:
    """About how many tokens the messages are, with what stands around each and its pictures."""
    return sum(text_estimate(message.content) + 4 + 800 * len(message.images) for message in messages)


def prompt_bound(messages: Sequence[Message]) -> int:
    """At most how many tokens the messages are: no tokeniser makes more than one of a byte."""
    return sum(
        len(message.content.encode("utf-8", "replace")) + _PER_MESSAGE + _PER_IMAGE * len(message.images)
        for message in messages
    )
