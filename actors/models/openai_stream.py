"""Stream decoder of the OpenAI API: from server-sent events to the pieces of a reply."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from functools import partial
from typing import Any

import msgspec

from moot.actors.models.content_parts import Content
from moot.actors.models.finish_reasons import blocked_prompt, known_finish
from moot.actors.models.interface import (
    ModelError,
    ModelReply,
    RateHeaders,
    StreamPiece,
    TokenLogprobs,
    failures_may_be_billed,
)
from moot.actors.models.openai_errors import (
    UnexpectedResponse,
    VendorError,
    failure_in_reply,
    refuse_key,
    stated_failure,
)
from moot.actors.models.openai_wire import (
    WireMessage,
    WireUsage,
    decode_reply,
    raise_unanswered,
    served_model,
    usage_of,
)
from moot.actors.models.reply_bounds import CUT_OFF, BoundedBody, BoundedPieces, most_bytes, read_bounded
from moot.actors.models.streamed_reply import joined_reply
from moot.actors.models.token_logprobs import WireLogprobs, reply_tokens
from moot.actors.models.wire_json import decode_json
from moot.protocols.messages import Decoding

EVENT_STREAM = "text/event-stream"
"""Content type of a streamed reply."""

_EVENTS = re.compile(rb"\s*(?:data|event|id|retry)?:")
"""Start of a body of server-sent events."""

_OTHERS = 8
"""Latest events without a choice that are kept: one may say why a reply did not end."""


class _Delta(WireMessage):
    @property
    def thought(self) -> str:
        """Text added to a field for hidden reasoning."""
        return next((each for each in (self.reasoning, self.reasoning_content) if isinstance(each, str) and each), "")


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    logprobs: WireLogprobs | None = None
    error: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: WireUsage | None = None
    error: Any = None
    model: Any = None
    system_fingerprint: Any = None


_chunk = msgspec.json.Decoder(_Chunk)


def read_reply(
    body: bytes, decoding: Decoding, *, key: str | None = None, limits: RateHeaders | None = None
) -> ModelReply:
    """Reads the body of a 200 response as a whole; a server may stream although it was not asked to.

    Args:
        body, decoding, key, limits: see `decode_reply`.

    Raises:
        ModelError: see `decode_reply` and `read_pieces`.
    """
    if not _EVENTS.match(body):
        return decode_reply(body, decoding, key=key, limits=limits)
    parser, reading = EventParser(), _Reading(decoding, key, limits)
    with failures_may_be_billed(limits):
        pieces = [*reading.pieces(parser, body), *reading.last_pieces(parser)]
        reading.check_ended()
    return joined_reply(pieces)


async def read_pieces(
    chunks: AsyncIterator[bytes],
    content_type: str,
    decoding: Decoding,
    *,
    key: str | None = None,
    limits: RateHeaders | None = None,
) -> AsyncGenerator[StreamPiece, None]:
    """Reads the pieces of a streamed reply from the body of a 200 response, each when its event is complete.

    A server that ignores streaming sends its reply as one piece, whatever it calls the content. The reading ends where
    the reply is longer than the requested tokens can be.

    Args:
        chunks: the body as it arrives, decompressed; iterating may raise `ModelError`.
        content_type: the response's content type.
        decoding: of the request; log-probabilities are read only if requested.
        key: the API key in use, kept out of error messages.
        limits: the rate limits in the response's headers.

    Raises:
        ModelError: see `decode_reply`, and `connection` for a stream that ends before the reply does.
    """
    body = BoundedBody(chunks, most_bytes(decoding))
    parser, reading = EventParser(), _Reading(decoding, key, limits)
    with failures_may_be_billed(limits):
        start = b""
        async for chunk in body:
            start += chunk
            if chunk.strip():
                break
        if not content_type.lower().startswith(EVENT_STREAM) or start.lstrip()[:1] in (b"{", b"[", b"<"):
            decode = partial(read_reply, decoding=decoding, key=key, limits=limits)
            yield _whole(await read_bounded(body, decoding.max_tokens, decode, start))
            return
        for piece in reading.pieces(parser, start):
            yield piece
        if not reading.is_over:
            async for chunk in body:
                for piece in reading.pieces(parser, chunk):
                    yield piece
                if reading.is_over:
                    break
        for piece in reading.cut_piece(body) if body.is_cut else reading.last_pieces(parser):
            yield piece
        reading.check_ended()


def _whole(reply: ModelReply) -> StreamPiece:
    return StreamPiece(
        reply.text,
        reply.tokens,
        reply.finish_reason or "stop",
        reply.usage,
        reply.limits,
        reply.reasoning,
        from_reasoning=reply.from_reasoning,
        overlong=reply.overlong,
        served_model=reply.served_model,
    )


class _Reading:
    """State of a stream during reading.

    Attributes:
        is_over: whether the reply was longer than the requested tokens can be, and its last piece was cut.
    """

    def __init__(self, decoding: Decoding, key: str | None, limits: RateHeaders | None) -> None:
        self._bound = BoundedPieces(decoding.max_tokens)
        self.is_over = False
        self._alternatives, self._key, self._limits = decoding.top_logprobs, key, limits
        self._refusal = ""
        self._began = self._ended = False
        self._others: deque[bytes] = deque(maxlen=_OTHERS)
        self._lately = ("", "", "")

    def pieces(self, parser: EventParser, chunk: bytes) -> Iterator[StreamPiece]:
        """Pieces of the reply in the events that `chunk` completes."""
        for data in () if self.is_over else parser.feed(chunk):
            piece = self._piece(data, parser.event)
            if piece is not None and not self.is_over:
                kept = self._bound.bounded(piece)
                self.is_over = kept.overlong
                yield kept

    def cut_piece(self, body: BoundedBody) -> list[StreamPiece]:
        """Last piece of a reply whose rest is not received. Raises `ModelError` where no text came before it."""
        if self._bound.is_empty or not body.is_overlong:
            raise body.too_large()
        was_over, self.is_over = self.is_over, True
        return [] if was_over else [CUT_OFF]

    def last_pieces(self, parser: EventParser) -> list[StreamPiece]:
        """Pieces in a last event that no empty line ends; none where the stream was cut in it."""
        try:
            return list(self.pieces(parser, b"\n\n"))
        except UnexpectedResponse:
            return []

    def _piece(self, data: bytes, event: bytes) -> StreamPiece | None:
        """Piece of the reply in an event; None when it has none."""
        if data.strip() == b"[DONE]":
            return None
        chunk = self._decoded(data, event)
        choice = chunk.choices[0] if chunk.choices else _Choice()
        if error := chunk.error or choice.error:
            raise stated_failure(VendorError.from_data(error), self._key)
        if not chunk.choices:
            self._others.append(data)
        # a message beside or behind pieces repeats them
        delta = choice.delta or (None if self._began else choice.message) or _Delta()
        content = delta.read()
        self._began = self._began or bool(content.text)
        self._follow(choice, content)
        text, thought = content.text, content.thinking or delta.thought
        tokens = reply_tokens(choice.logprobs, text, self._alternatives, data)
        self._refuse_key(data, text, thought, tokens)
        usage = None if chunk.usage is None else usage_of(chunk.usage)
        if not (text or thought or choice.finish_reason or usage or (tokens and tokens.tokens)):
            return None
        limits, self._limits = self._limits, None
        finish, served = known_finish(choice.finish_reason), served_model(chunk.model, chunk.system_fingerprint)
        return StreamPiece(text, tokens, finish, usage, limits, thought, served_model=served)

    def _decoded(self, data: bytes, event: bytes) -> _Chunk:
        """Event as a piece of a chat completion. An error keeps the server's words, in whatever form they come."""
        try:
            chunk = decode_json(_chunk, data, "a piece of a chat completion")
        except UnexpectedResponse:
            if event != b"error" and data.lstrip()[:1] in (b"{", b"["):
                raise
            raise failure_in_reply(data, None, "piece of a chat completion", self._key) from None
        if event == b"error" and not chunk.error:
            raise failure_in_reply(data, None, "error message", self._key)
        return chunk

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

    def _follow(self, choice: _Choice, content: Content) -> None:
        self._refusal += content.refusal
        if choice.finish_reason:
            self._ended = True
            raise_unanswered(choice.finish_reason, self._refusal, self._key)

    def check_ended(self) -> None:
        """Raise unless the server stated a finish reason: what it stated instead, or that the stream was cut."""
        if self._ended or self.is_over:
            return
        for data in reversed(self._others):
            if blocked := blocked_prompt(data, self._key):
                raise blocked
            if (stated := VendorError.from_body(data)).message.strip():
                raise stated_failure(stated, self._key)
        raise ModelError("connection", "the stream was cut before the reply ended")


class EventParser:
    """Server-sent event parser, for chunks split at any byte.

    Lines may end in LF, CR or CRLF. Comments and the fields `id` and `retry` are skipped; several `data` lines of one
    event are joined by a line feed. Data after the last empty line of a truncated stream is no event.

    Attributes:
        event: name of the latest event; empty without one.
    """

    def __init__(self) -> None:
        self.event = self._name = b""
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
            else:
                self.event, self._name = self._name, b""
                data, self._data = self._data, []
                if not data:
                    continue
                yield data[0] if len(data) == 1 else b"\n".join(data)
        self._line = [others[-1]]

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._name = value.strip()
