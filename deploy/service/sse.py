"""Server-sent events: their encoding, and the response that sends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, aclosing

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from moot.deploy.service.errors import RequestError

HEARTBEAT_S = 15.0
"""Seconds between two heartbeats of a quiet stream for programs."""

MOST_BYTES = 64 * 2**10
"""Target size of a chunk."""

SEND_S = 30.0
"""Maximum seconds to send a chunk of a stream."""

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def encode_event(name: str, data: bytes, identity: str = "") -> bytes:
    """Encode one event; JSON has no line breaks, so that no text of a debate can start another event."""
    start = b"id: %s\n" % identity.encode() if identity else b""
    return b"%sevent: %s\ndata: %s\n\n" % (start, name.encode(), data)


def event_name(kind: str) -> str:
    """Sanitize an event's kind: a user's own protocol may use any name."""
    return kind if kind and kind.isascii() and kind.replace("-", "").replace("_", "").isalnum() else "event"


def chunks_of(written: bytes) -> Iterator[bytes]:
    """Split data into pieces of about the size of a chunk."""
    for start in range(0, len(written), MOST_BYTES):
        yield written[start : start + MOST_BYTES]


class EventStreamResponse(StreamingResponse):
    """Streaming response that acquires its slot before the first header, and releases it at its end.

    It is aborted when a chunk is not sent within `SEND_S`, because its reader does not read.

    Args:
        place: the slot; released at the end.
        chunks: the content; closed at the end.
    """

    def __init__(self, place: ExitStack, chunks: AsyncGenerator[bytes, None]) -> None:
        super().__init__(chunks, media_type="text/event-stream", headers=HEADERS)
        self._place, self._chunks = place, chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        async def sending(message: Message) -> None:
            try:
                async with asyncio.timeout(SEND_S):
                    await send(message)
            except TimeoutError:
                raise RequestError(408, f"the client read nothing for {SEND_S:g} seconds") from None

        with self._place:
            async with aclosing(self._chunks):
                await super().__call__(scope, receive, sending)
