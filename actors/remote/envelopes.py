"""Message types of the channel between moderators and agents: many envelopes in one encoded batch."""

from __future__ import annotations

import msgspec

from moot.protocols.messages import Ask, AskResult


class AskEnvelope(msgspec.Struct, frozen=True, tag="ask", array_like=True):
    """Ask with the number of its reply."""

    number: int
    ask: Ask


class CancelEnvelope(msgspec.Struct, frozen=True, tag="cancel", array_like=True):
    """Cancellation of the ask with this number."""

    number: int


class ReplyEnvelope(msgspec.Struct, frozen=True, array_like=True):
    """Reply to the ask with this number, or the error, as text, of a bug that answering it raised."""

    number: int
    answered: AskResult | None
    raised: str = ""


Outgoing = AskEnvelope | CancelEnvelope


class MessageBatch(msgspec.Struct, frozen=True, array_like=True):
    """Sequence-numbered batch of messages from a moderator to an agent.

    Attributes:
        sender: the moderator's name and, after a colon, its incarnation: replies go to that incarnation only.
        epoch: number of earlier lost calls of this connection; nobody waits for a call of an older epoch.
        number: of the batch within its epoch, from 1, for deduplication.
        received: numbers of the replies received since the last batch, as acknowledgement.
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
    """Encodes a batch of messages or of replies."""
    return _encoder.encode(cargo)


def decode_batch(blob: bytes) -> MessageBatch:
    """Decodes a batch that a moderator encoded."""
    return _parcel.decode(blob)


def decode_replies(blob: bytes) -> list[ReplyEnvelope]:
    """Decodes a batch of replies that an agent encoded."""
    return _replies.decode(blob)
