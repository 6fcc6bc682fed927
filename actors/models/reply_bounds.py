"""Size bounds of a reply: what a model can have sent within the tokens that it was asked for. The rest is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from moot.actors.models.interface import ModelError, ModelReply, StreamPiece
from moot.actors.models.openai_errors import UnexpectedResponse
from moot.actors.models.token_bounds import LONGEST_TOKEN
from moot.actors.models.wire_json import closed_body
from moot.protocols.messages import Decoding

MOST_BYTES = 64 * 2**20
"""Most bytes of any decompressed response, whatever was asked for: 30,000 tokens with twenty alternatives each."""

_CHARACTERS_BESIDE = 2**16
"""Characters beyond those of the requested tokens: for a server that does not count exactly, or ignores the limit."""

_REASONING_TIMES = 4
"""Times as much hidden reasoning as text: not every server counts it against the limit."""

_BYTES_BESIDE = 2 * 2**20
"""Bytes beyond those of the requested tokens: ids, usage, filters, citations, and reasoning that is not counted."""

_BYTES_OF_A_TOKEN = 2048
"""Bytes of a token in JSON: an event of a stream of its own, and its text twice. Events have 200 to 600 bytes, and the
longest tokens of vocabularies, runs of 128 blanks, have as many bytes as characters."""

_BYTES_OF_AN_ALTERNATIVE = 256
"""Bytes of a listed token in JSON, on average over a reply: its text, its bytes as numbers, and its log-probability.
Of words these are 60 to 120."""


def most_characters(max_tokens: int) -> int:
    """Upper bound of the characters of a reply.

    No vocabulary of a current model has tokens of more than `LONGEST_TOKEN` characters.

    >>> most_characters(400)
    116736
    """
    return LONGEST_TOKEN * max_tokens + _CHARACTERS_BESIDE


def most_bytes(decoding: Decoding) -> int:
    """Upper bound of the bytes of a response, decompressed: with hidden reasoning, and log-probabilities if requested.

    >>> most_bytes(Decoding(max_tokens=400)), most_bytes(Decoding(max_tokens=400, top_logprobs=5))
    (2916352, 3530752)
    """
    listed = 0 if decoding.top_logprobs is None else 1 + decoding.top_logprobs
    each = _BYTES_OF_A_TOKEN + listed * _BYTES_OF_AN_ALTERNATIVE
    return min(MOST_BYTES, _BYTES_BESIDE + decoding.max_tokens * each)


class BoundedBody:
    """Body of a response that is read up to a bound; the rest is not received.

    Args:
        chunks: the body as it arrives, decompressed; its owner closes it.
        most: bytes that are read at most.

    Attributes:
        is_cut: whether there was more.
        received: what `read` has read.
    """

    received = b""

    def __init__(self, chunks: AsyncIterator[bytes], most: int) -> None:
        self._chunks, self._most, self._left = chunks, most, most
        self.is_cut = False

    def __aiter__(self) -> BoundedBody:
        return self

    async def __anext__(self) -> bytes:
        if self.is_cut:
            raise StopAsyncIteration
        chunk = await anext(self._chunks)
        self.is_cut = len(chunk) > self._left
        kept = chunk[: self._left]
        self._left -= len(kept)
        return kept

    async def read(self, start: bytes = b"") -> BoundedBody:
        """Reads what is left of the body, behind the `start` that was iterated over."""
        whole = bytearray(start)
        async for chunk in self:
            whole += chunk
        self.received = bytes(whole)
        return self

    @property
    def is_overlong(self) -> bool:
        """Whether there was more than was asked for, and not only more than `MOST_BYTES`."""
        return self.is_cut and self._most < MOST_BYTES

    def too_large(self) -> ModelError:
        """Error of a response that is larger than the bound, and of no use without the rest.

        Its kind is `unparsable`, so that the call is not retried.
        """
        return ModelError("unparsable", f"the response is larger than {self._most / 2**20:.2g} MiB", may_be_billed=True)


def bounded_reply(reply: ModelReply, max_tokens: int, *, is_cut: bool = False) -> ModelReply:
    """The reply, cut and marked if it is longer than the requested tokens can be.

    What is cut counts as truncated at the limit, and has no log-probabilities.

    Args:
        reply: as received.
        max_tokens: as requested.
        is_cut: whether the rest of the response was not received.
    """
    most = most_characters(max_tokens)
    text, reasoning = reply.text[:most], reply.reasoning[: _REASONING_TIMES * most]
    if not is_cut and len(text) == len(reply.text) and len(reasoning) == len(reply.reasoning):
        return reply
    return replace(reply, text=text, reasoning=reasoning, tokens=None, finish_reason="length", overlong=True)


async def read_bounded(
    body: BoundedBody, max_tokens: int, decode: Callable[[bytes], ModelReply], start: bytes = b""
) -> ModelReply:
    """Reads a reply in one piece, as far as the requested tokens can reach.

    Args:
        body: of a 200 response, bounded by `most_bytes`.
        max_tokens: as requested.
        decode: decoder of a whole body.
        start: what was read of it before.

    Raises:
        ModelError: from `body` and `decode`; `unparsable` for a cut body whose beginning is no reply.
    """
    await body.read(start)
    if not body.is_cut:
        return bounded_reply(decode(body.received), max_tokens)
    closed = await asyncio.to_thread(closed_body, body.received)
    try:
        reply = decode(closed)
    except UnexpectedResponse:
        raise body.too_large() from None
    if not body.is_overlong or not (reply.text or reply.reasoning):
        raise body.too_large()
    return bounded_reply(reply, max_tokens, is_cut=True)


class BoundedPieces:
    """Pieces of a streamed reply up to its bound.

    Args:
        max_tokens: as requested.

    Attributes:
        is_empty: whether no text has come yet.
    """

    def __init__(self, max_tokens: int) -> None:
        self._text = most_characters(max_tokens)
        self._reasoning = _REASONING_TIMES * self._text
        self.is_empty = True

    def bounded(self, piece: StreamPiece) -> StreamPiece:
        """The piece, cut and marked if the reply is longer than the requested tokens can be: then it is the last."""
        text, reasoning = piece.text[: self._text], piece.reasoning[: self._reasoning]
        self.is_empty = self.is_empty and not text and not reasoning
        self._text, self._reasoning = self._text - len(piece.text), self._reasoning - len(piece.reasoning)
        if min(self._text, self._reasoning) >= 0:
            return piece
        return replace(CUT_OFF, text=text, reasoning=reasoning, limits=piece.limits)


CUT_OFF = StreamPiece("", finish_reason="length", overlong=True)
"""Last piece of a reply whose rest was not received."""
