"""Small servers on loopback for one test, with a model that is closed before them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from aiohttp import web
from aiohttp.test_utils import TestServer

from moot.actors.models.interface import Model

M = TypeVar("M", bound=Model)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(make: Callable[[str], M], handler: Handler) -> AsyncIterator[M]:
    """The model that `make` gives for the URL of a server, up to and with `/v1`; every request goes to `handler`."""
    app = web.Application()
    app.router.add_route("*", "/v1/{tail:.*}", handler)
    server = TestServer(app)
    await server.start_server()
    model = make(str(server.make_url("/v1")))
    try:
        yield model
    finally:
        await model.close()
        await server.close()


@asynccontextmanager
async def served_raw(
    make: Callable[[str], M], answer: bytes, gone: asyncio.Event | None = None, asked: asyncio.Event | None = None
) -> AsyncIterator[M]:
    """The same in front of one that reads a request's head and writes `answer`, whatever that is.

    Args:
        gone: then the connection is held open, and this is set when the client closes it.
        asked: set when the answer has been written.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        if asked is not None:
            asked.set()
        if gone is not None:
            while await reader.read(1 << 16):
                pass
            gone.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    model = make(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    try:
        yield model
    finally:
        await model.close()
        server.close()


@asynccontextmanager
async def deadline_after(event: asyncio.Event) -> AsyncIterator[None]:
    """A deadline that passes in the block, soon after the event."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(60) as deadline:
        waiting = asyncio.create_task(event.wait())
        waiting.add_done_callback(lambda _: deadline.reschedule(loop.time() + 0.02))
        yield


def answers(status: int, body: object, headers: dict[str, str] | None = None) -> Handler:
    """Always the same answer: bytes as they are, anything else as JSON."""

    async def handler(request: web.Request) -> web.Response:
        await request.read()
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=raw, headers=headers, content_type="application/json")

    return handler
