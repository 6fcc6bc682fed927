"""Servers of OpenAI's API on loopback: small ones for one test, a scripted one, and `moot simulate`."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer
from anthropic_wire import message, messages_route

from moot.actors.models.anthropic_sdk import AnthropicModel
from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import Model, StreamingModel
from moot.actors.models.openai_sdk import OpenAIModel, ResponsesModel
from moot.actors.models.probe_calls import STEP_KEY
from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.model import SimulatedModel, SimulatedSettings
from moot.actors.simulated.server.openai_wire import completion as simulated_completion
from moot.actors.simulated.server.openai_wire import read_request
from moot.actors.simulated.server.options import SimulateOptions
from moot.actors.simulated.server.server import SimulatedServer, serve
from moot.protocols.messages import Decoding, Message

KEY = "sk-very-secret-0123456789"
KEY_ENV = "MOOT_TEST_KEY"
MESSAGES = [Message("system", "Be brief."), Message("user", "Can penguins fly?")]
DECODING = Decoding(temperature=0.3, top_p=None, max_tokens=9)
WITH_LOGPROBS = Decoding(top_logprobs=2)


class _Closed(Protocol):
    async def close(self) -> None: ...


M = TypeVar("M", bound=_Closed)
Backend = StreamingModel
MakeModel = Callable[[str], Backend]
MakeVendor = Callable[[str], Model]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Script = Callable[[str, str], Any]
"""Reply by step key and user text: a text, or data to be sent as JSON."""


def compatible(url: str) -> CompatibleModel:
    """Client without a vendor's SDK."""
    return CompatibleModel(url, "m", api_key_env=KEY_ENV)


def openai(url: str) -> OpenAIModel:
    """Client with OpenAI's SDK."""
    return OpenAIModel("m", api_key_env=KEY_ENV, base_url=url)


def responses(url: str) -> ResponsesModel:
    """Client with OpenAI's SDK over the Responses API."""
    return ResponsesModel("m", api_key_env=KEY_ENV, base_url=url)


def anthropic(url: str, model: str = "claude-opus-5-5") -> AnthropicModel:
    """Client with Anthropic's SDK."""
    return AnthropicModel(model, api_key_env=KEY_ENV, base_url=url.removesuffix("/v1"))


BACKENDS: dict[str, MakeModel] = {"compatible": compatible, "openai": openai}
VENDORS: dict[str, MakeVendor] = {**BACKENDS, "responses": responses, "anthropic": anthropic}


def completion(text: str | None = "No.", **choice: Any) -> dict[str, Any]:
    """A complete response body of chat completions."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    return {"choices": [{"message": message, "finish_reason": "stop", **choice}], "usage": usage}


def token(text: str, logprob: float | None, *alternatives: tuple[str, float | None], **fields: Any) -> dict[str, Any]:
    """A token with log-probabilities, as in OpenAI's APIs."""
    top = [{"token": each, "logprob": known} for each, known in alternatives]
    return {"token": text, "logprob": logprob, "top_logprobs": top, **fields}


def response(*output: Any, **others: Any) -> dict[str, Any]:
    """A complete response body of the Responses API; a string among the output items is a message with that text."""
    items = [output_message(item) if isinstance(item, str) else item for item in output]
    usage = {"input_tokens": 7, "output_tokens": 2}
    return {"status": "completed", "error": None, "incomplete_details": None, "output": items, "usage": usage} | others


def output_message(text: str, **part: Any) -> dict[str, Any]:
    """An item of a response's output."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, **part}]}


WHOLE = dict(zip(VENDORS, (completion(), completion(), response("No."), message()), strict=True))
"""A complete response body by client."""


def answers(status: int, body: object, headers: dict[str, str] | None = None) -> Handler:
    """Handler with a constant response: bytes unchanged, anything else as JSON."""

    async def handler(request: web.Request) -> web.Response:
        await request.read()
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=raw, headers=headers, content_type="application/json")

    return handler


EVENTS = {"Content-Type": "text/event-stream; charset=utf-8"}


def sends(*chunks: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    """Handler with a constant body, chunked without a declared length."""

    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(status=status, headers=headers)
        await response.prepare(request)
        for chunk in chunks:
            for at in range(0, len(chunk), 2**16):
                await response.write(chunk[at : at + 2**16])
                await asyncio.sleep(0)
        return response

    return handler


def event(data: object) -> bytes:
    """An event of a stream."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def delta(text: str, **choice: Any) -> bytes:
    """The event that adds a text to a reply."""
    return event({"choices": [{"delta": {"content": text}, "finish_reason": None, **choice}]})


@asynccontextmanager
async def serving(handler: Handler, method: str = "*") -> AsyncIterator[str]:
    """URL of a server, up to and including `/v1`, below which every request with this method goes to `handler`."""
    app = web.Application()
    app.router.add_route(method, "/v1/{tail:.*}", handler)
    async with TestServer(app) as server:
        yield str(server.make_url("/v1"))


@asynccontextmanager
async def served_model(make: Callable[[str], M], handler: Handler) -> AsyncIterator[M]:
    """Model that `make` creates for the URL of such a server."""
    async with serving(handler) as url:
        model = make(url)
        try:
            yield model
        finally:
            await model.close()


@asynccontextmanager
async def served_raw_model(
    make: Callable[[str], M], answer: bytes, gone: asyncio.Event | None = None, asked: asyncio.Event | None = None
) -> AsyncIterator[M]:
    """Model of a server that reads a request's headers and writes `answer`, without HTTP framing of its own.

    Args:
        gone: if given, the connection stays open, and this is set when the client closes it.
        asked: set when the answer has been written.
    """

    async def answer_raw(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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

    server = await asyncio.start_server(answer_raw, "127.0.0.1", 0)
    model = make(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    try:
        yield model
    finally:
        await model.close()
        server.close()


@asynccontextmanager
async def deadline_after(event: asyncio.Event) -> AsyncIterator[None]:
    """Context with a deadline that expires soon after the event."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(60) as deadline:
        waiting = asyncio.create_task(event.wait())
        waiting.add_done_callback(lambda _: deadline.reschedule(loop.time() + 0.02))
        yield


class _Threaded:
    """Server in the event loop of a thread; `serving` reports its port and is cancelled by `close`."""

    def __init__(self, serving: Callable[[Callable[[int], None]], Coroutine[Any, Any, None]]) -> None:
        port: Future[int] = Future()
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(serving(port.set_result))
        self._thread = threading.Thread(target=self._run, name="server of a test", daemon=True)
        self._thread.start()
        self.port = port.result(30)

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)
        self._loop.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(30)


async def _until_cancelled(handler: Handler, ready: Callable[[int], None]) -> None:
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", "/v1/{tail:.*}", handler)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    ready(runner.addresses[0][1])
    try:
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


@contextmanager
def serving_in_thread(handler: Handler) -> Iterator[int]:
    """Like `serving`, but in a thread, for clients in other processes; yields the port."""
    server = _Threaded(lambda ready: _until_cancelled(handler, ready))
    try:
        yield server.port
    finally:
        server.close()


class _WithAnthropic(SimulatedServer):
    def app(self) -> web.Application:
        made = super().app()
        made.add_routes([messages_route(self)])
        return made


class _OnlyForTrials(_WithAnthropic):
    def _draw_fault(self, fault: str, step_key: str, attempt: int) -> bool:
        return fault == "hang" and step_key != STEP_KEY


@contextmanager
def simulated_server(key: AnswerKey | None, **options: Any) -> Iterator[int]:
    """`moot simulate` in a thread, together with a fake of Anthropic's API; yields the port."""
    made = _WithAnthropic(SimulateOptions(**options), key)
    with _in_thread(made, options.get("port", 0)) as port:
        yield port


@contextmanager
def server_for_trials() -> Iterator[int]:
    """`moot simulate` in a thread, which answers the calls of trials only: all others hang; yields the port."""
    with _in_thread(_OnlyForTrials(SimulateOptions(), None), 0) as port:
        yield port


@contextmanager
def _in_thread(made: SimulatedServer, port: int) -> Iterator[int]:
    server = _Threaded(lambda ready: serve(made, "127.0.0.1", port, ready))
    try:
        yield server.port
    finally:
        server.close()


def stats_of(port: int) -> dict[str, Any]:
    """Counters of a simulated server."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=30) as reply:
        found: dict[str, Any] = json.load(reply)
        return found


@dataclass
class ScriptedServer:
    """Server whose replies depend on the template's marker and the path; records all requests.

    A template's system text contains `[[NAME]]`: NAME selects the script; without a marker a part of the step key may.
    Words in the ask's path inject faults, see `_misbehave` and `_spoilt`. Any other prompt is answered by the simulated
    model without an answer key.

    Attributes:
        by_key: the script of prompts without a marker, by a part of their step key.
        calls: number of requests by step key, failed and cancelled ones included.
        bodies: the last request body by step key.
        cancelled: step keys whose request was closed by the client before it was answered.
        misbehaving: while False, `hang` does not hang and `status-N` does not fail.
        gate: requests whose step key matches `gated` wait until it is set.
        failing: requests whose step key it matches always get a 500.
    """

    scripts: dict[str, Script]
    failing: str = "(?!)"
    gated: str = "/gate"
    by_key: dict[str, str] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    bodies: dict[str, bytes] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    misbehaving: bool = True
    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._plain = SimulatedModel(SimulatedSettings(), 5, None)
        self._server = _Threaded(lambda ready: _until_cancelled(self._chat, ready))
        self.url = f"http://127.0.0.1:{self._server.port}/v1"
        self.model = f"{self.url}#scripted"

    def close(self) -> None:
        """Stop serving."""
        self._server.close()

    async def _chat(self, request: web.Request) -> web.Response:
        if request.method == "GET":  # no list of models
            raise web.HTTPNotFound
        step = unquote(request.headers["X-Client-Request-Id"])
        body = await request.read()
        self.calls[step] += 1
        self.bodies[step] = body
        try:
            return await self._misbehave(step) or self._answer(step, body)
        except asyncio.CancelledError:
            self.cancelled.add(step)
            raise

    def _answer(self, step: str, body: bytes) -> web.Response:
        messages = msgspec.json.decode(body)["messages"]
        system = messages[0]["content"]
        marker = re.search(r"\[\[([\w-]+)\]\]", system) if isinstance(system, str) else None
        name = marker[1] if marker else next((name for part, name in self.by_key.items() if part in step), None)
        if name is None:
            asked = read_request(body)
            reply = self._plain.reply(asked.messages, asked.decoding, step, asked.schema)
            whole = simulated_completion(asked, reply, "x")
        else:
            content = messages[1]["content"]
            said = self.scripts[name](step, content if isinstance(content, str) else content[0]["text"])
            text = _spoilt(step, said if isinstance(said, str) else msgspec.json.encode(said).decode())
            usage = {"prompt_tokens": 10, "completion_tokens": len(text)}
            whole = msgspec.json.encode({**completion(text), "usage": usage})
        return web.Response(body=whole, content_type="application/json")

    async def _misbehave(self, step: str) -> web.Response | None:
        if "/hang" in step and self.misbehaving:
            await asyncio.sleep(3600)
        while re.search(self.gated, step) and not self.gate.is_set():  # noqa: ASYNC110 - set from another thread
            await asyncio.sleep(0.01)
        if wait := re.search(r"/wait-(\d+)(?:/|$|~)", step):
            await asyncio.sleep(int(wait[1]) / 1000)
        status = re.search(r"/status-(\d+)(?:/|$|~)", step)
        if status and self.misbehaving:
            said = "maximum context length exceeded" if status[1] == "413" else "on purpose"
            return _failure(said, int(status[1]), {"retry-after-ms": "1"})
        if "/flaky" in step and self.calls[step] == 1:
            return _failure("once")
        return _failure("on demand") if re.search(self.failing, step) else None


def _failure(said: str, status: int = 500, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": {"message": said}}, status=status, headers=headers)


def _spoilt(step: str, text: str) -> str:
    if "/repair" in step:
        return f"Here it is:\n```json\n{text}\n```"
    if "/reask" in step and not step.endswith("~1"):
        return "I would rather not use JSON."
    if "/unparsable" in step:
        return "no JSON here either"
    if "/surrogate" in step:
        return '{"word": "half a pair: \\ud800"}'
    return text
