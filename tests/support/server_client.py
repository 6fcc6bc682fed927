"""The service's application on its own loopback port, and a small client."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn

from moot.deploy.service.api import make_api
from moot.deploy.service.listener import listening_socket, serve_on_socket
from moot.deploy.service.services import Services
from moot.deploy.service.settings import ServeConfig

INLINE = {"engine": "inline"}
SLOW = {"engine": "inline", "model": "simulated?latency_ms=60000"}
CASE = {"question": "is seven a prime", "labels": ["Yes", "No"]}


@dataclass
class ServerResponse:
    """Response of a server."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        """Body as JSON."""
        return json.loads(self.text)

    @property
    def code(self) -> str:
        """Code of an error."""
        found: str = self.json["error"]["code"]
        return found


@dataclass
class ServerClient:
    """Client of a server."""

    base: str
    session: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)
    services: Any = None

    async def ask(self, method: str, path: str, **options: Any) -> ServerResponse:
        """Send a request."""
        headers = {**self.headers, **options.pop("headers", {})}
        async with self.session.request(method, self.base + path, headers=headers, **options) as response:
            return ServerResponse(response.status, response.headers.copy(), await response.text())

    async def post(self, path: str, body: Any, **options: Any) -> ServerResponse:
        """Post JSON."""
        return await self.ask("POST", path, json=body, **options)

    async def get(self, path: str, **options: Any) -> ServerResponse:
        """Get a page."""
        return await self.ask("GET", path, **options)

    async def end(self, path: str, within_s: float = 60.0) -> Any:
        """Final state of a request."""
        async with asyncio.timeout(within_s):
            while True:
                told = (await self.get(f"{path}?wait_s=20")).json
                if told["status"] not in ("queued", "open"):
                    return told

    async def until(self, path: str, *wanted: str) -> None:
        """Wait until a request has a state."""

        async def stands() -> bool:
            answer = await self.get(path)
            return answer.status == 200 and answer.json["status"] in wanted

        await until(stands)

    async def events(self, path: str, **headers: str) -> list[dict[str, str]]:
        """All events of a stream, each by field."""
        answer = await self.get(path, headers=headers)
        assert answer.status == 200, answer.text
        return parsed(answer.text)


def parsed(text: str) -> list[dict[str, str]]:
    """Server-sent events by field, without comments and `retry`."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if "data" in fields:
            found.append(fields)
    return found


@asynccontextmanager
async def served(
    out: Path, *, token: str | None = None, drain_s: float = 0.0, **fields: Any
) -> AsyncIterator[ServerClient]:
    """Server on a free port, closed at the end without waiting for open requests."""
    services = Services(ServeConfig.build({"out": str(out), "debates": INLINE, **fields}))
    services.token = token
    await services.open()
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("moot.actors.dispatch.case_router.DRAIN_S", 0.1)
        async with listening(make_api(services)) as (port, _), aiohttp.ClientSession() as session:
            try:
                yield ServerClient(f"http://127.0.0.1:{port}", session, headers, services)
            finally:
                await services.drain(drain_s)
                await services.close()


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[tuple[int, uvicorn.Server]]:
    """Application on a free port of this machine."""
    with listening_socket("127.0.0.1", 0) as at:
        async with serve_on_socket(app, at) as server:
            yield at.getsockname()[1], server


async def until(holds: Callable[[], Any]) -> None:
    """Wait until a condition is true; its result may be awaitable."""
    async with asyncio.timeout(60):
        while True:
            found = holds()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(0.01)


async def pending(client: ServerClient) -> list[str]:
    """Ids of the debates that the server would resume after a restart."""
    return [case_id for case_id, _ in await client.services.of("debates")._inbox.pending("debates")]
