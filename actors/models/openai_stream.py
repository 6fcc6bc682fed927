"""Stream decoder of the OpenAI API: from server-sent events to the pieces of a reply."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from typing import Any

import msgspec

from moot.actors.models.interface import ModelError, RateHeaders, StreamPiece, TokenLogprobs, failures_may_be_billed
from moot.actors.models.openai_errors import VendorError, decode_json, plain, refuse_key, vendor_failure
from moot.actors.models.openai_wire import WireUsage, decode_reply, filtered, usage_of
from moot.actors.models.token_logprobs import WireLogprobs, reply_tokens
from moot.protocols.messages import Decoding

EVENT_STREAM = "text/event-stream"
"""Content type of a streamed reply."""


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None

    @property
    def thought(self) -> str:
        """Text added to a field for hidden reasoning."""
        return next((each for each in (self.reasoning, self.reasoning_content) if isinstance(each, str) and each), "")


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None
    logprobs: WireLogprobs | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: WireUsage | None = None
    error: Any = None


_chunk = msgspec.json.Decoder(_Chunk)


async def read_pieces(
    chunks: AsyncIterable[bytes],
    content_type: str,
    decoding: Decoding,
    *,
    key: str | None = None,
    limits: RateHeaders | None = None,
) -> AsyncGenerator[StreamPiece, None]:
    """Reads the pieces of a streamed reply from the body of a 200 response, each when its event is complete.

    A server that ignores streaming sends its reply as one piece.

    Args:
        chunks: the body as it arrives, decompressed; iterating may raise `ModelError`.
        content_type: the response's content type.
        decoding: of the request; log-probabilities are read only if requested.
        key: the API key in use, kept out of error messages.
        limits: the rate limits in the response's headers.

    Raises:
        ModelError: see `decode_reply`, and `connection` for a stream that ends before the reply does.
    """
    if not content_type.lower().startswith(EVENT_STREAM):
        yield _whole(b"".join([chunk async for chunk in chunks]), decoding, key, limits)
        return
    parser, reading = EventParser(), _Reading(decoding, key, limits)
    with failures_may_be_billed(limits):
        async for chunk in chunks:
            for data in parser.feed(chunk):
                piece = reading.piece(data)
                if piece is not None:
                    yield piece
        reading.check_ended()


def _whole(body: bytes, decoding: Decoding, key: str | None, limits: RateHeaders | None) -> StreamPiece:
    reply = decode_reply(body, decoding, key=key, limits=limits)
    finish = reply.finish_reason or "stop"
    return StreamPiece(
        reply.text, reply.tokens, finish, reply.usage, limits, reply.reasoning, from_reasoning=reply.from_reasoning
    )


class _Reading:
    """State of a stream during reading."""

    def __init__(self, decoding: Decoding, key: str | None, limits: RateHeaders | None) -> None:
        self._alternatives, self._key, self._limits = decoding.top_logprobs, key, limits
        self._refusal = ""
        self._ended = False
        self._lately = ("", "", "")

    def piece(self, data: bytes) -> StreamPiece | None:
        """Piece of the reply in an event; None when it has none."""
        if data.strip() == b"[DONE]":
            return None
        chunk = decode_json(_chunk, data, "a piece of a chat completion")
        if chunk.error:
            error = VendorError.from_data(chunk.error)
            raise vendor_failure(error.status or 500, error, key=self._key)
        choice = chunk.choices[0] if chunk.choices else _Choice()
        self._follow(choice)
        text = (choice.delta.content if choice.delta else None) or ""
        thought = choice.delta.thought if choice.delta else ""
        tokens = reply_tokens(choice.logprobs, text, self._alternatives, data)
        self._refuse_key(data, text, thought, tokens)
        usage = None if chunk.usage is None else usage_of(chunk.usage)
        if not (text or thought or choice.finish_reason or usage or (tokens and tokens.tokens)):
            return None
        limits, self._limits = self._limits, None
        return StreamPiece(text, tokens, choice.finish_reason or "", usage, limits, thought)

    def _refuse_key(self, data: bytes, text: str, thought: str, tokens: TokenLogprobs | None) -> None:
        """Like `refuse_key`, also for a key that is split over several pieces."""
        if self._key:
            listed = "".join(tokens.tokens if tokens else ())
            content, thinking, named = (
                before + new for before, new in zip(self._lately, (text, thought, listed), strict=True)
            )
            refuse_key(self._key, data, content, thinking, named)
            length = len(self._key)
            self._lately = (content[-length:], thinking[-length:], named[-length:])

    def _follow(self, choice: _Choice) -> None:
        if choice.delta is not None and choice.delta.refusal:
            self._refusal += choice.delta.refusal
        if not choice.finish_reason:
            return
        self._ended = True
        if choice.finish_reason == "content_filter":
            raise filtered()
        if self._refusal:
            raise ModelError("refused", plain(self._refusal, self._key))

    def check_ended(self) -> None:
        """Raise unless the server stated a finish reason."""
        if not self._ended:
            raise ModelError("connection", "the stream was cut before the reply ended")


class EventParser:
    """Server-sent event parser, for chunks split at any byte.

    Lines may end in LF, CR or CRLF. Comments and the fields `event`, `id` and `retry` are skipped; several `data` lines
    of one event are joined by a line feed. Data after the last empty line of a truncated stream is no event.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Data of each event that `chunk` completes, in order."""
        if self._after_cr and chunk[:1] == b"\n":
            chunk, self._after_cr = chunk[1:], False
        if chunk:
            self._after_cr = chunk[-1:] == b"\r"
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *others = chunk.split(b"\n")
        self._line.append(first)
        if not others:
            return
        for line in (b"".join(self._line), *others[:-1]):
            if line:
                self._take(line)
            elif self._data:
                data, self._data = self._data, []
                yield data[0] if len(data) == 1 else b"\n".join(data)
        self._line = [others[-1]]

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
