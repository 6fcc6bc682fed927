"""`moot simulate`: a local HTTP server of the simulated model with the OpenAI API and fault injection.

Its replies are those of the embedded model with the same seed, its vectors those of the hashed n-grams.
`moot.actors.simulated.model` states what they cannot show. `GET /stats` reports what was served, step by step: an
oracle that does not depend on a client's record.
"""

from __future__ import annotations

import asyncio
import hmac
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from urllib.parse import unquote

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.models.interface import ModelReply
from moot.actors.models.openai_wire import REQUEST_ID_HEADER
from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.model import SimulatedModel
from moot.actors.simulated.prompt import count_reasks
from moot.actors.simulated.server.faults import RequestLimit, garble, retry_headers, send_truncated
from moot.actors.simulated.server.openai_wire import (
    ChatRequest,
    WireError,
    completion,
    embeddings,
    error_body,
    events,
    read_embeddings_request,
    read_request,
)
from moot.actors.simulated.server.options import SimulateOptions
from moot.actors.simulated.server.stats import ServedCalls, SimulationStats
from moot.protocols.errors import ConfigError
from moot.protocols.seeds import stable_uniform

_LARGEST_BODY = 64 * 2**20
_SHUTDOWN_S = 1.0
_BUSY_S = 0.5
_LIMITED = web.RequestKey("limited", bool)


class SimulatedServer:
    """HTTP server of the simulated model: latency, faults, rate limit and counters for every API.

    Args:
        options: see `SimulateOptions`.
        key: the answer key; None makes agents answer at random.

    Raises:
        MissingKey: the token's environment variable is not set.
    """

    def __init__(self, options: SimulateOptions, key: AnswerKey | None) -> None:
        self._options = options
        self._model = SimulatedModel(options.settings, options.seed, key)
        self._token = options.read_token()
        self._limit = RequestLimit(options.rate_limit) if options.rate_limit else None
        self.stats = SimulationStats()
        self._attempts: dict[str, int] = {}

    def app(self) -> web.Application:
        """Application with all routes."""
        app = web.Application(middlewares=[_errors_as_objects, self._authorise], client_max_size=_LARGEST_BODY)
        app.on_response_prepare.append(self._add_limit_headers)
        models = {"object": "list", "data": [{"id": "simulated", "object": "model", "owned_by": "moot"}]}
        app.add_routes(
            [
                web.post("/v1/chat/completions", self._chat),
                web.post("/v1/embeddings", self._embeddings),
                web.get("/v1/models", _provide(lambda: models)),
                web.get("/stats", _provide(lambda: self.stats)),
                web.get("/stats/totals", _provide(self._totals)),
                web.get("/health", _provide(lambda: {"status": "ok", "simulated": True})),
            ]
        )
        return app

    def _totals(self) -> dict[str, object]:
        return {name: getattr(self.stats, name) for name in self.stats.__struct_fields__ if name != "by_step"}

    @web.middleware
    async def _authorise(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._token is not None and request.path != "/health":
            sent = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
            if not hmac.compare_digest(sent, f"Bearer {self._token}".encode()):
                raise WireError(401, "the token is missing or wrong")
        return await handler(request)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = read_request(body)
        reply, identity, is_cut = await self.answer(request, body, asked)
        if not asked.stream or is_cut:
            whole = completion(asked, reply, identity)
            return await send_truncated(request, whole) if is_cut else _json(whole)
        return await stream_response(request, events(asked, reply, identity))

    async def answer(self, request: web.Request, body: bytes, asked: ChatRequest) -> tuple[ModelReply, str, bool]:
        """Answers a request, with faults and latency: the reply, its unique id, and whether to cut the connection.

        Raises:
            WireError: an injected failure, or too many calls.
        """
        step_key = _step_key(request, body)
        self._take_from_limit(request)
        with self.stats.track_in_flight():
            attempt = await self._attempt(step_key)
            reply = self._reply(asked, step_key)
        self._count(step_key, asked, reply)
        if is_cut := self._draw_fault("cut", step_key, attempt):
            self.stats.cut.add(reply)
        identity = blake2b(f"{step_key}#{attempt}".encode("utf-8", "replace"), digest_size=12).hexdigest()
        return reply, identity, is_cut

    def _count(self, step_key: str, asked: ChatRequest, reply: ModelReply) -> None:
        sizes = [len(image.data) for message in asked.messages for image in message.images]
        self.stats.add(reply)
        self.stats.pictures += len(sizes)
        self.stats.picture_bytes += sum(sizes)
        self.stats.by_step.setdefault(step_key, ServedCalls()).add(reply)
        self.stats.steps = len(self.stats.by_step)

    def _draw_fault(self, fault: str, step_key: str, attempt: int) -> bool:
        """Whether a fault is injected into this attempt at a step."""
        rate: float = getattr(self._options, f"{fault}_rate")
        return rate > 0.0 and stable_uniform(self._options.seed, fault, step_key, attempt) < rate

    async def _embeddings(self, request: web.Request) -> web.Response:
        body = await request.read()
        asked = read_embeddings_request(body)
        self._take_from_limit(request)
        with self.stats.track_in_flight():
            await self._attempt(_step_key(request, body))
            rows = await asyncio.to_thread(HashedNgramEncoder(asked.dimension).rows, asked.texts)
        self.stats.embedding_calls += 1
        self.stats.embedded_texts += len(asked.texts)
        return _json(embeddings(asked, rows))

    async def _attempt(self, step_key: str) -> int:
        """Simulates latency and injected failures; returns the number of the attempt at this step."""
        options, attempt = self._options, self._attempts.get(step_key, 0)
        self._attempts[step_key] = attempt + 1
        if self._draw_fault("busy", step_key, attempt):
            self.stats.limited += 1
            raise WireError(429, "the server is busy on purpose (busy rate)", retry_headers(_BUSY_S))
        if self._draw_fault("hang", step_key, attempt):
            self.stats.hung += 1
            await asyncio.Event().wait()
        wait_ms = options.latency_ms + options.jitter_ms * stable_uniform(options.seed, "jitter", step_key, attempt)
        if wait_ms > 0.0:
            await asyncio.sleep(wait_ms / 1000.0)
        if self._draw_fault("fail", step_key, attempt):
            self.stats.failed += 1
            raise WireError(500, "the server failed on purpose (fail rate)")
        return attempt

    def _take_from_limit(self, request: web.Request) -> None:
        request[_LIMITED] = self._limit is not None
        wait_s = self._limit.wait_s() if self._limit else 0.0
        if wait_s > 0.0:
            self.stats.limited += 1
            raise WireError(429, f"rate limit reached: try again in {wait_s:.3f} s", retry_headers(wait_s))

    async def _add_limit_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Adds rate-limit headers to every response to a limited request."""
        if self._limit is not None and request.get(_LIMITED, False):
            response.headers.update(self._limit.headers())

    def _reply(self, asked: ChatRequest, step_key: str) -> ModelReply:
        """Generates the reply, garbled if that fault is drawn; with tokens if they were requested or are streamed."""
        seed, reasks = self._options.seed, count_reasks(asked.messages)
        is_garbled = stable_uniform(seed, "garble", step_key, reasks) < self._options.garble_rate
        decoding = asked.decoding
        if decoding.top_logprobs is None and (is_garbled or asked.stream):
            decoding = msgspec.structs.replace(decoding, top_logprobs=0)
        reply = self._model.reply(asked.messages, decoding, step_key, asked.schema)
        if is_garbled:
            self.stats.garbled += 1
            reply = garble(reply, seed, step_key, reasks)
        if asked.decoding.top_logprobs is None and not asked.stream:
            reply = replace(reply, tokens=None)
        return reply


def _step_key(request: web.Request, body: bytes) -> str:
    given = unquote(request.headers.get(REQUEST_ID_HEADER, ""))
    return given or blake2b(body, digest_size=16).hexdigest()


async def stream_response(request: web.Request, lines: Iterator[bytes]) -> web.StreamResponse:
    """Streams a response of server-sent events."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    for line in lines:
        await response.write(line)
    await response.write_eof()
    return response


@web.middleware
async def _errors_as_objects(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except WireError as error:
        failure = error
    except web.HTTPException as error:
        failure = WireError(error.status, error.reason)
    response = _json(error_body(failure), failure.status)
    response.headers.update(failure.headers)
    return response


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")


def _provide(what: Callable[[], object]) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return _json(msgspec.json.encode(what()))

    return handler


async def serve(server: SimulatedServer, host: str, port: int, ready: Callable[[int], None] | None = None) -> None:
    """Runs the server until cancelled; calls in flight then get a second to finish.

    Args:
        server: the server.
        host, port: the address; port 0 picks a free one.
        ready: called once with the port, when the server accepts requests.

    Raises:
        ConfigError: the address cannot be bound.
    """
    runner = web.AppRunner(server.app(), access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_S)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        if ready:
            ready(runner.addresses[0][1])
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def run_server(options: SimulateOptions, key: AnswerKey | None, ready: Callable[[int], None] | None = None) -> None:
    """Runs the server in this process until SIGINT or SIGTERM; see `serve` for what it raises."""
    server = SimulatedServer(options, key)

    async def until_signalled() -> None:
        serving = asyncio.ensure_future(serve(server, options.host, options.port, ready))
        with suppress(NotImplementedError):  # no signal handlers on Windows: Ctrl-C raises instead
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
        with suppress(asyncio.CancelledError):
            await serving

    with suppress(KeyboardInterrupt):
        asyncio.run(until_signalled())
