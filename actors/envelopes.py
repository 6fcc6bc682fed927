"""What travels in a mailbox between moderators and agents: many envelopes in one encoded batch."""

from __future__ import annotations

import msgspec

from moot.protocols.messages import Answered, Ask


class AskEnvelope(msgspec.Struct, frozen=True, tag="ask", array_like=True):
    """An ask with the number under which its reply is awaited."""

    number: int
    ask: Ask


class CancelEnvelope(msgspec.Struct, frozen=True, tag="cancel", array_like=True):
    """The ask of that number is no longer wanted."""

    number: int


class ReplyEnvelope(msgspec.Struct, frozen=True, array_like=True):
    """The reply to the ask of that number."""

    number: int
    answered: Answered


Outgoing = AskEnvelope | CancelEnvelope

_encoder = msgspec.msgpack.Encoder()
_asks = msgspec.msgpack.Decoder(list[AskEnvelope | CancelEnvelope])
_replies = msgspec.msgpack.Decoder(list[ReplyEnvelope])


def encode(envelopes: list[Outgoing] | list[ReplyEnvelope]) -> bytes:
    """A batch as bytes."""
    return _encoder.encode(envelopes)


def decode_asks(blob: bytes) -> list[Outgoing]:
    """The batch that a moderator encoded."""
    return _asks.decode(blob)


def decode_replies(blob: bytes) -> list[ReplyEnvelope]:
    """The batch that an agent encoded."""
    return _replies.decode(blob)
