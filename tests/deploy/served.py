"""The server's application on a loopback port of its own, without Ray Serve, and a small client."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn

from moot.deploy.serving.api import make_api
from moot.deploy.serving.listener import _socket
from moot.deploy.serving.services import Services
from moot.deploy.serving.settings import ServeConfig

INLINE = {"engine": "inline"}
SLOW = {"engine": "inline", "model": "simulated?latency_ms=60000"}
CASE = {"question": "is seven a prime", "labels": ["Yes", "No"]}


@dataclass
class Answer:
    """What a server said."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.text)

    @property
    def code(self) -> str:
        """The word of an error."""
        found: str = self.json["error"]["code"]
        return found


@dataclass
class Client:
    """Asks a server."""

    base: str
    session: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)
    services: Any = None

    async def ask(self, method: str, path: str, **options: Any) -> Answer:
        """One request."""
        headers = {**self.headers, **options.pop("headers", {})}
        async with self.session.request(method, self.base + path, headers=headers, **options) as response:
            return Answer(response.status, response.headers.copy(), await response.text())

    async def post(self, path: str, body: Any, **options: Any) -> Answer:
        """Post JSON."""
        return await self.ask("POST", path, json=body, **options)

    async def get(self, path: str, **options: Any) -> Answer:
        """Get a page."""
        return await self.ask("GET", path, **options)

    async def end(self, path: str, within_s: float = 60.0) -> Any:
        """Where a request stands at its end."""
        async with asyncio.timeout(within_s):
            while True:
                told = (await self.get(f"{path}?wait_s=20")).json
                if told["status"] not in ("queued", "open"):
                    return told

    async def events(self, path: str, **headers: str) -> list[dict[str, str]]:
        """A whole stream of events, each by field."""
        answer = await self.get(path, headers=headers)
        assert answer.status == 200, answer.text
        return parsed(answer.text)


def parsed(text: str) -> list[dict[str, str]]:
    """Server-sent events by field, comments and `retry` left out."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if "data" in fields:
            found.append(fields)
    return found


class _Server(uvicorn.Server):
    """Ends when it is told to; uvicorn's own looks for that ten times a second, and gives each end another tenth."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.ended.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for each in sockets or []:
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - uvicorn sets no event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def served(out: Path, *, token: str | None = None, drain_s: float = 0.0, **fields: Any) -> AsyncIterator[Client]:
    """A server on a free port, closed at the end."""
    config = ServeConfig.build({"out": str(out), "debates": INLINE, **fields})
    services = Services(config)
    await services.open()
    listening = _socket("127.0.0.1", 0)
    api = make_api(services, token)
    server = _Server(uvicorn.Config(api, http="h11", log_config=None, lifespan="off", access_log=False))
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        async with aiohttp.ClientSession() as session:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            yield Client(f"http://127.0.0.1:{listening.getsockname()[1]}", session, headers, services)
    finally:
        await services.drain(drain_s)
        await services.close()
        server.ended.set()
        await running
        listening.close()
