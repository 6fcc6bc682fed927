"""Fake of Anthropic's messages API: model, latencies, faults and counts of the simulated server over another wire
format."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import msgspec
from aiohttp import web

from moot.actors.simulated.server.openai_wire import ChatRequest
from moot.actors.simulated.server.server import SimulatedServer
from moot.protocols.case import Image
from moot.protocols.messages import Decoding, Message

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


def message(text: str = "No.", stop_reason: str | None = "end_turn", *thinking: Any, **fields: Any) -> dict[str, Any]:
    """A complete response body of the messages API."""
    content = [*thinking, *([{"type": "text", "text": text}] if text else [])]
    usage = {"input_tokens": 7, "output_tokens": 2}
    reply = {"type": "message", "role": "assistant", "content": content, "stop_reason": stop_reason, "usage": usage}
    return reply | fields


def _read_request(body: bytes) -> ChatRequest:
    asked = msgspec.json.decode(body)
    system = (Message("system", asked["system"]),) if "system" in asked else ()
    settings = {name: asked.get(name) for name in ("temperature", "top_p")}
    form = asked.get("output_config", {}).get("format")
    return ChatRequest(
        model=asked["model"],
        messages=(*system, *(_read_message(each) for each in asked["messages"])),
        decoding=Decoding(**settings, max_tokens=asked["max_tokens"]),
        stream=False,
        schema=form and form["schema"],
    )


def _read_message(sent: dict[str, Any]) -> Message:
    blocks = sent["content"] if isinstance(sent["content"], list) else [{"type": "text", "text": sent["content"]}]
    sources = [block["source"] for block in blocks if block["type"] == "image"]
    images = tuple(Image(source["media_type"], b64decode(source["data"])) for source in sources)
    return Message(sent["role"], "\n".join(block["text"] for block in blocks if block["type"] == "text"), images)


def messages_route(server: SimulatedServer) -> web.RouteDef:
    """Route of `POST /v1/messages`, answered by the simulated server; errors have OpenAI's bodies and Anthropic's
    status codes."""

    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = _read_request(body)
        reply, identity, _ = await server.answer(request, body, asked)
        usage = {"input_tokens": reply.usage.prompt_tokens, "output_tokens": reply.usage.completion_tokens}
        ended = _STOP_REASONS[reply.finish_reason]
        return web.json_response(message(reply.text, ended, id=identity, model=asked.model, usage=usage))

    return web.post("/v1/messages", handler)
