"""Both OpenAI backends, and small servers on loopback for them to meet."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import StreamingModel
from moot.actors.models.openai_sdk import OpenAIModel
from moot.protocols.messages import Decoding, Message

KEY = "sk-very-secret-0123456789"
KEY_ENV = "MOOT_TEST_KEY"
MESSAGES = [Message("system", "Be brief."), Message("user", "Can penguins fly?")]
DECODING = Decoding(temperature=0.3, top_p=None, max_tokens=9)
WITH_LOGPROBS = Decoding(top_logprobs=2)

Backend = StreamingModel
MakeModel = Callable[[str], Backend]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def compatible(url: str) -> CompatibleModel:
    """The lean client."""
    return CompatibleModel(url, "m", api_key_env=KEY_ENV)


def openai(url: str) -> OpenAIModel:
    """The one on the official SDK."""
    return OpenAIModel("m", api_key_env=KEY_ENV, base_url=url)


BACKENDS: dict[str, MakeModel] = {"compatible": compatible, "openai": openai}


def completion(text: str | None = "No.", **choice: Any) -> dict[str, Any]:
    """A whole reply as the wire has it."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    return {"choices": [{"message": message, "finish_reason": "stop", **choice}], "usage": usage}


@asynccontextmanager
async def served(make: MakeModel, handler: Handler) -> AsyncIterator[Backend]:
    """The backend, in front of a server that answers every request with `handler`."""
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
async def served_raw(make: MakeModel, answer: bytes, gone: asyncio.Event | None = None) -> AsyncIterator[Backend]:
    """The same in front of one that reads a request's head and writes `answer`, whatever that is.

    Args:
        gone: then the connection is held open, and this is set when the client closes it.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
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


def answers(status: int, body: object, headers: dict[str, str] | None = None) -> Handler:
    """A handler that always gives the same: bytes as they are, anything else as JSON (NaN included)."""

    async def handler(request: web.Request) -> web.Response:
        await request.read()
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=raw, headers=headers, content_type="application/json")

    return handler
