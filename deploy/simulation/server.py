"""`moot simulate`: the simulated model as a local HTTP server that speaks OpenAI's and Anthropic's wires.

Its replies are those of the embedded model of the same seed, its vectors those of the hashed n-grams. What may not be
concluded from them is said in `moot.actors.models.simulated.model`. `GET /stats` says what was served, step by step: an
oracle that does not depend on any client's record.
"""

from __future__ import annotations

import asyncio
import hmac
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.interface import ModelReply
from moot.actors.models.openai_wire import REQUEST_ID_HEADER
from moot.actors.models.simulated.draws import stable_uniform
from moot.actors.models.simulated.model import SimulatedModel
from moot.actors.models.simulated.prompt import count_reasks
from moot.deploy.simulation.anthropic_wire import ANTHROPIC
from moot.deploy.simulation.embeddings_wire import embeddings, read_embeddings_request
from moot.deploy.simulation.faults import garble, is_garbled
from moot.deploy.simulation.openai_wire import OPENAI
from moot.deploy.simulation.options import SimulateOptions
from moot.deploy.simulation.rate_limit import RateLimit, retry_headers
from moot.deploy.simulation.stats import Stats
from moot.deploy.simulation.wire import ChatRequest, R, Wire, WireError
from moot.protocols.errors import ConfigError

__all__ = ["SimulateOptions", "run_server", "serve"]

_LARGEST_BODY = 64 * 2**20
_SHUTDOWN_S = 1.0
_BUSY_S = 0.5
_LIMITED = web.RequestKey("limited", bool)


class _Server:
    def __init__(self, options: SimulateOptions, key: AnswerKey | None) -> None:
        self._options = options
        self._model = SimulatedModel(options.settings, options.seed, key)
        self._token = options.read_token()
        self._limit = RateLimit(options.rate_limit, time.monotonic) if options.rate_limit else None
        self._stats = Stats()
        self._attempts: dict[str, int] = {}
        self._started = int(time.time())

    def app(self) -> web.Application:
        middlewares = [_errors_as_objects, self._authorise]
        app = web.Application(middlewares=middlewares, client_max_size=_LARGEST_BODY)
        app.on_response_prepare.append(self._tell_limit)
        app.add_routes(
            [
                web.post(OPENAI.path, self._chat(OPENAI)),
                web.post(ANTHROPIC.path, self._chat(ANTHROPIC)),
                web.post("/v1/embeddings", self._embeddings),
                web.get("/v1/models", self._models),
                web.get("/stats", self._show_stats),
                web.get("/stats/totals", self._show_totals),
                web.get("/health", self._health),
            ]
        )
        return app

    @web.middleware
    async def _authorise(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._token is not None and request.path != "/health":
            sent = request.headers.get("Authorization") or f"Bearer {request.headers.get('x-api-key', '')}"
            if not hmac.compare_digest(sent.encode("utf-8", "surrogateescape"), f"Bearer {self._token}".encode()):
                raise WireError(401, "the token is missing or wrong")
        return await handler(request)

    def _chat(self, wire: Wire[R]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handler(request: web.Request) -> web.StreamResponse:
            return await self._answer(wire, request)

        return handler

    async def _answer(self, wire: Wire[R], request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = wire.read(body, request.headers)
        step_key = _step_key(request, body)
        self._take_from_limit(request)
        with self._stats.flying():
            attempt = await self._attempt(step_key)
            reply = self._reply(asked, step_key)
            self._stats.serve(step_key, asked.messages, reply)
            if self._drawn("cut", step_key, attempt):
                self._stats.cut.add(reply)
                return await _cut_off(request, wire.whole(asked, reply, "cut", 0))
            identity = blake2b(f"{step_key}#{attempt}".encode("utf-8", "replace"), digest_size=12).hexdigest()
            return await _written(wire, request, asked, reply, identity)

    def _drawn(self, fault: str, step_key: str, attempt: int) -> bool:
        """Whether a fault befalls this attempt at a step."""
        rate: float = getattr(self._options, f"{fault}_rate")
        return rate > 0.0 and stable_uniform(self._options.seed, fault, step_key, attempt) < rate

    async def _embeddings(self, request: web.Request) -> web.Response:
        body = await request.read()
        asked = read_embeddings_request(body)
        step_key = _step_key(request, body)
        self._take_from_limit(request)
        with self._stats.flying():
            await self._attempt(step_key)
            rows = await asyncio.to_thread(HashedNgramEncoder(asked.dimension).rows, asked.texts)
            self._stats.embedding_calls += 1
            self._stats.embedded_texts += len(asked.texts)
            return web.Response(body=embeddings(asked, rows), content_type="application/json")

    async def _attempt(self, step_key: str) -> int:
        """Wait as a model would, and fail on purpose if that is drawn; the number of the attempt at this step."""
        attempt = self._attempts.get(step_key, 0)
        self._attempts[step_key] = attempt + 1
        if self._drawn("busy", step_key, attempt):
            self._stats.limited += 1
            raise WireError(429, "the server is busy on purpose (busy rate)", retry_headers(_BUSY_S))
        if self._drawn("hang", step_key, attempt):
            self._stats.hung += 1
            await asyncio.Event().wait()
        await self._wait(step_key, attempt)
        if self._drawn("fail", step_key, attempt):
            self._stats.failed += 1
            raise WireError(500, "the server failed on purpose (fail rate)")
        return attempt

    def _take_from_limit(self, request: web.Request) -> None:
        request[_LIMITED] = self._limit is not None
        wait_s = self._limit.wait_s() if self._limit else 0.0
        if wait_s > 0.0:
            self._stats.limited += 1
            message = f"rate limit reached: try again in {wait_s:.3f} s"
            raise WireError(429, message, retry_headers(wait_s))

    async def _tell_limit(self, request: web.Request, response: web.StreamResponse) -> None:
        """Say in the headers of every response to a limited request what is left when it leaves."""
        if self._limit is not None and request.get(_LIMITED, False):
            response.headers.update(_wire_of(request).rate_headers(self._limit.allowance(), datetime.now(UTC)))

    async def _wait(self, step_key: str, attempt: int) -> None:
        options = self._options
        jitter = options.jitter_ms * stable_uniform(options.seed, "jitter", step_key, attempt)
        if options.latency_ms + jitter > 0.0:
            await asyncio.sleep((options.latency_ms + jitter) / 1000.0)

    def _reply(self, asked: ChatRequest, step_key: str) -> ModelReply:
        """The model's reply, garbled if that is drawn; with tokens if they were asked for or are streamed."""
        seed, reasks = self._options.seed, count_reasks(asked.messages)
        broken = is_garbled(self._options.garble_rate, seed, step_key, reasks)
        decoding = asked.decoding
        if decoding.top_logprobs is None and (broken or asked.stream):
            decoding = msgspec.structs.replace(decoding, top_logprobs=0)
        reply = self._model.reply(asked.messages, decoding, step_key, asked.schema)
        if broken:
            self._stats.garbled += 1
            reply = garble(reply, seed, step_key, reasks)
        if asked.decoding.top_logprobs is None and not asked.stream:
            reply = replace(reply, tokens=None)
        return reply

    async def _models(self, request: web.Request) -> web.Response:
        return _json(_wire_of(request).models(self._started))

    async def _show_stats(self, request: web.Request) -> web.Response:
        return _json(msgspec.json.encode(self._stats))

    async def _show_totals(self, request: web.Request) -> web.Response:
        return _json(msgspec.json.encode(self._stats.totals()))

    async def _health(self, request: web.Request) -> web.Response:
        return _json(b'{"status": "ok", "simulated": true}')


def _step_key(request: web.Request, body: bytes) -> str:
    given = unquote(request.headers.get(REQUEST_ID_HEADER, ""))
    return given or blake2b(body, digest_size=16).hexdigest()


async def _written(
    wire: Wire[R], request: web.Request, asked: R, reply: ModelReply, identity: str
) -> web.StreamResponse:
    created = int(time.time())
    if not asked.stream:
        return _json(wire.whole(asked, reply, identity, created))
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    for event in wire.events(asked, reply, identity, created):
        await response.write(event)
    await response.write_eof()
    return response


async def _cut_off(request: web.Request, body: bytes) -> web.StreamResponse:
    """The first half of a response that promises the whole."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


def _wire_of(request: web.Request) -> Wire[Any]:
    """The wire that a request of any path is meant for: Anthropic's clients always send the API's version."""
    spoken = request.path == ANTHROPIC.path or "anthropic-version" in request.headers
    return ANTHROPIC if spoken else OPENAI


@web.middleware
async def _errors_as_objects(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except WireError as error:
        failure = error
    except web.HTTPException as error:
        failure = WireError(error.status, error.reason)
    return web.Response(
        status=failure.status,
        body=_wire_of(request).error(failure),
        headers=failure.headers,
        content_type="application/json",
    )


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


async def serve(options: SimulateOptions, key: AnswerKey | None, ready: Callable[[int], None] | None = None) -> None:
    """Serve until cancelled; then calls in flight get a second to finish.

    Args:
        key: the answer key; None leaves the agents at chance.
        ready: called once with the port, when requests are taken.

    Raises:
        MissingKey: the token's variable is not set.
        ConfigError: the address cannot be bound.
    """
    runner = web.AppRunner(
        _Server(options, key).app(),
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=_SHUTDOWN_S,
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, options.host, options.port).start()
        except OSError as error:
            raise ConfigError(f"cannot listen on {options.host}:{options.port}: {error.strerror}") from error
        if ready:
            ready(runner.addresses[0][1])
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def run_server(options: SimulateOptions, key: AnswerKey | None, ready: Callable[[int], None] | None = None) -> None:
    """Serve in this process until SIGINT or SIGTERM, then return; see `serve` for arguments and errors."""

    async def until_signalled() -> None:
        serving = asyncio.ensure_future(serve(options, key, ready))
        with suppress(NotImplementedError):  # no signal handlers on Windows: Ctrl-C raises instead
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
        with suppress(asyncio.CancelledError):
            await serving

    with asyncio.Runner(loop_factory=_loop_factory()) as runner, suppress(KeyboardInterrupt):
        runner.run(until_signalled())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
