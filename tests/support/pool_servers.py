"""Servers of one pool that differ in what they can, and the pool over them. Each answers the asks of a debate."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import web
from openai_server import completion, serving, token
from trial_server import Body, enforce_schema, schema_of

from moot.actors.models.openai_wire import REQUEST_ID_HEADER
from moot.actors.models.probe_calls import STEP_KEY
from moot.actors.models.server_pool import ServerPool
from moot.protocols.seeds import stable_digest

OPENING = '{"answer": "Yes", "reasoning": "It is so.", "confidence": 0.9}'
OBJECT_ONLY = (("{", -0.001), ('{"', -8.0), (" {", -9.0))
ANY_TOKEN = (("{", -3.0), ("Yes", -0.1), ('{"', -4.0))


@dataclass
class PoolServer:
    """One server; its attributes may change while it serves.

    Attributes:
        logprobs: whether its replies have log-probabilities.
        alternatives: most alternatives per token that it lists.
        bounds: whether it refuses a request for more of them.
        masked: whether those of a constrained reply are taken after the schema's mask.
        refuses: words of the settings that it refuses, by the error's message.
        schemas: whether it follows a schema.
        name, fingerprint: of its model, in each reply.
        usage: whether it reports usage.
        listed: further fields of its list of models.
        status: of every response, if not 200.
        bodies: requests to complete a chat.
    """

    logprobs: bool = True
    alternatives: int = 20
    bounds: bool = False
    masked: bool = False
    refuses: dict[str, str] = field(default_factory=dict)
    schemas: bool = True
    name: str = "m"
    fingerprint: str | None = None
    usage: bool = True
    listed: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    bodies: list[Body] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        """Answer the list of models, or a chat."""
        if self.status != 200:
            return web.json_response({"error": {"message": "not now"}}, status=self.status)
        if request.method == "GET":
            return web.json_response({"data": [{"id": "m", **self.listed}]})
        body = json.loads(await request.read())
        self.bodies.append(body)
        refused = [message for key, message in self.refuses.items() if key in body]
        if self.bounds and body.get("top_logprobs", 0) > self.alternatives:
            refused = [f"top_logprobs must be at most {self.alternatives}"]
        if refused:
            return web.json_response({"error": {"message": refused[0]}}, status=400)
        is_trial = request.headers[REQUEST_ID_HEADER] in (STEP_KEY, "c")
        return web.json_response(self._reply(body) if is_trial else self._opening(body))

    def _opening(self, body: Body) -> dict[str, Any]:
        before, _, after = OPENING.partition("Yes")
        pieces = [token(each, -0.1, (each, -0.1), ("No", -2.5)) for each in (before, "Yes", after)]
        given = {"logprobs": {"content": pieces}} if self.logprobs and body.get("logprobs") else {}
        return {**completion(OPENING, **given), "model": self.name, "system_fingerprint": self.fingerprint}

    def _reply(self, body: Body) -> dict[str, Any]:
        schema = schema_of(body) if self.schemas else None
        said = completion("Yes") if schema is None else enforce_schema(body)[1]
        text = said["choices"][0]["message"]["content"]
        if self.logprobs and body.get("logprobs"):
            listed = OBJECT_ONLY if self.masked and schema is not None else ANY_TOKEN
            most = min(self.alternatives, body["top_logprobs"])
            content = [token(piece, listed[0][1], *listed[:most]) for piece in (text[:1], text[1:])]
            said["choices"][0]["logprobs"] = {"content": content}
        if not self.usage:
            del said["usage"]
        return {**said, "model": self.name, "system_fingerprint": self.fingerprint}


def key_at(pool: ServerPool, place: int) -> str:
    """Step key of a debate whose calls go to the server at that place, while it has room."""
    urls = [server.base_url for server in pool.servers]
    return next(f"{case}/0/ask" for case in map(str, count()) if _first(urls, f"{case}/0") == urls[place % len(urls)])


def _first(urls: Sequence[str], debate: str) -> str:
    return min(urls, key=lambda url: stable_digest(debate, url))


@asynccontextmanager
async def pool_of(
    *servers: PoolServer, untried: Collection[int] = (), now: list[float] | None = None
) -> AsyncIterator[tuple[ServerPool, list[str]]]:
    """Pool over these servers, and their base URLs; `now[0]` is its clock if given."""
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(serving(server.handle)) for server in servers]
        clock = (lambda: now[0]) if now else time.monotonic
        model = ServerPool(urls, "m", untried=[urls[number] for number in untried], clock=clock)
        stack.push_async_callback(model.close)
        yield model, urls
