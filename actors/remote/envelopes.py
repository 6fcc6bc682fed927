"""What travels in a mailbox between moderators and agents: many envelopes in one encoded batch."""

from __future__ import annotations

import msgspec

from moot.protocols.messages import Ask, AskResult


class AskEnvelope(msgspec.Struct, frozen=True, tag="ask", array_like=True):
    """An ask with the number under which its reply is awaited."""

    number: int
    ask: Ask


class CancelEnvelope(msgspec.Struct, frozen=True, tag="cancel", array_like=True):
    """The ask of that number is no longer wanted."""

    number: int


class ReplyEnvelope(msgspec.Struct, frozen=True, array_like=True):
    """The reply to the ask of that number; when answering it raised, by a mistake of ours, what it raised."""

    number: int
    answered: AskResult | None
    raised: str = ""


Outgoing = AskEnvelope | CancelEnvelope


class MessageBatch(msgspec.Struct, frozen=True, array_like=True):
    """What a call from a moderator to an agent carries.

    Attributes:
        sender: the moderator's name and, after a colon, its life: replies go to that life only.
        epoch: how many calls of this line have been lost before; of an older epoch nobody waits for a call any more.
        number: of the parcel within its epoch, from 1: one that comes twice is taken once.
        received: numbers of the replies that have arrived since the last parcel.
        messages: asks and cancellations.
    """

    sender: str
    epoch: int
    number: int
    received: list[int]
    messages: list[AskEnvelope | CancelEnvelope]


_encoder = msgspec.msgpack.Encoder()
_parcel = msgspec.msgpack.Decoder(MessageBatch)
_replies = msgspec.msgpack.Decoder(list[ReplyEnvelope])


def encode(cargo: MessageBatch | list[ReplyEnvelope]) -> bytes:
    """A parcel or a batch of replies as bytes."""
    return _encoder.encode(cargo)


def decode_batch(blob: bytes) -> MessageBatch:
    """The parcel that a moderator encoded."""
    return _parcel.decode(blob)


def decode_replies(blob: bytes) -> list[ReplyEnvelope]:
    """The batch that an agent encoded."""
    return _replies.decode(blob)
