"""A small OpenAI-compatible server on loopback whose replies follow from the template's marker and the path.

A template's system text holds `[[NAME]]`: NAME chooses the script; without a marker a part of the step key may. Words
in the ask's path make it misbehave, see `_misbehave` and `_spoilt`. Any other prompt is answered by the simulated model
without an answer key.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp import web

from moot.actors.models.simulated.model import SimulatedModel, SimulatedSettings
from moot.deploy.simulation.openai_wire import completion, read_request

_MARKER = re.compile(r"\[\[([\w-]+)\]\]")
_WAIT = re.compile(r"/wait-(\d+)(?:/|$|~)")
_STATUS = re.compile(r"/status-(\d+)(?:/|$|~)")

Script = Callable[[str, str], Any]
"""From the step key and the user text to the reply: a text, or data to be sent as JSON."""


@dataclass
class ScriptedServer:
    """Serves until closed; everything it saw is kept.

    Attributes:
        by_key: the script of prompts without a marker, by a part of their step key.
        calls: requests by step key, failed and cancelled ones included.
        bodies: the last request body by step key.
        cancelled: step keys whose request was closed by the client before it was answered.
        misbehaving: while False, `hang` does not hang and `status-N` does not fail.
        gate: requests whose step key matches `gated` wait until it is set.
        failing: requests whose step key it matches get a 500, always.
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
        self._loop = asyncio.new_event_loop()
        self._port: Future[int] = Future()
        self._stop: asyncio.Event
        self._thread = threading.Thread(target=self._run, name="scripted server", daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._port.result(20)}/v1"
        self.model = f"{self.url}#scripted"

    def close(self) -> None:
        """Stop serving."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port.set_result(runner.addresses[0][1])
        await self._stop.wait()
        await runner.cleanup()

    async def _chat(self, request: web.Request) -> web.Response:
        step = unquote(request.headers["X-Client-Request-Id"])
        body = await request.read()
        self.calls[step] += 1
        self.bodies[step] = body
        try:
            return await self._answer(step, body)
        except asyncio.CancelledError:
            self.cancelled.add(step)
            raise

    async def _answer(self, step: str, body: bytes) -> web.Response:
        misbehaved = await self._misbehave(step)
        if misbehaved is not None:
            return misbehaved
        messages = msgspec.json.decode(body)["messages"]
        system = messages[0]["content"]
        marker = _MARKER.search(system) if isinstance(system, str) else None
        name = marker[1] if marker else next((name for part, name in self.by_key.items() if part in step), None)
        if name is None:
            asked = read_request(body)
            reply = self._plain.reply(asked.messages, asked.decoding, step, asked.schema)
            return web.Response(body=completion(asked, reply, "x", 0), content_type="application/json")
        content = messages[1]["content"]
        user = content if isinstance(content, str) else content[0]["text"]
        said = self.scripts[name](step, user)
        text = said if isinstance(said, str) else msgspec.json.encode(said).decode()
        return _reply(_spoilt(step, text))

    async def _misbehave(self, step: str) -> web.Response | None:
        if "/hang" in step and self.misbehaving:
            await asyncio.sleep(3600)
        while re.search(self.gated, step) and not self.gate.is_set():  # noqa: ASYNC110 - set from another thread
            await asyncio.sleep(0.01)
        wait = _WAIT.search(step)
        if wait:
            await asyncio.sleep(int(wait[1]) / 1000)
        status = _STATUS.search(step)
        if status and self.misbehaving:
            said = "maximum context length exceeded" if status[1] == "413" else "on purpose"
            at_once = {"retry-after-ms": "1"}
            return web.json_response({"error": {"message": said}}, status=int(status[1]), headers=at_once)
        if "/flaky" in step and self.calls[step] == 1:
            return web.json_response({"error": {"message": "once"}}, status=500)
        if re.search(self.failing, step):
            return web.json_response({"error": {"message": "on demand"}}, status=500)
        return None


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


def _reply(text: str) -> web.Response:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": len(text)}
    return web.Response(
        body=msgspec.json.encode({"choices": [choice], "usage": usage}), content_type="application/json"
    )
