"""A fake of Anthropic's messages service: the simulated server's model, waits, faults and counts, by another wire."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from aiohttp import web

from moot.actors.models.anthropic_wire import MAX_TEMPERATURE, SAMPLING_VERSION
from moot.actors.models.interface import ModelReply
from moot.deploy.simulation.openai_wire import TOKENS_PER_EVENT, ChatRequest, WireError, require
from moot.deploy.simulation.server import SimulatedServer, streamed
from moot.protocols.case import Image
from moot.protocols.messages import Decoding, Message

_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}
_encode = msgspec.json.Encoder().encode


class _Source(msgspec.Struct):
    type: str
    media_type: str | None = None
    data: str | None = None


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    source: _Source | None = None


class _Message(msgspec.Struct):
    role: Literal["user", "assistant"]
    content: str | list[_Block]


class _Format(msgspec.Struct):
    type: str
    schema: dict[str, Any] | None = None


class _OutputConfig(msgspec.Struct):
    format: _Format | None = None


class _Body(msgspec.Struct):
    model: str
    max_tokens: int
    messages: list[_Message]
    system: str | list[_Block] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stream: bool | None = None
    output_config: _OutputConfig | None = None


_decode = msgspec.json.Decoder(_Body).decode


def read_request(body: bytes, headers: Mapping[str, str]) -> ChatRequest:
    """Check and translate a request; unknown fields are ignored.

    Sampling settings are refused as the service refuses them: after the API's version 2023-06-01, and both at once.

    Raises:
        WireError: 400, for what is not a messages request or is not offered here.
    """
    try:
        asked = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(400, f"the body is not a messages request: {error}") from None
    require(bool(asked.messages), "messages: at least one message is required")
    require(asked.max_tokens >= 1, "max_tokens: must be greater than or equal to 1")
    _check_sampling(asked, headers.get("anthropic-version", SAMPLING_VERSION))
    system = (Message("system", _text(asked.system)),) if asked.system else ()
    return ChatRequest(
        model=asked.model,
        messages=(*system, *(_message(message) for message in asked.messages)),
        decoding=Decoding(temperature=asked.temperature, top_p=asked.top_p, max_tokens=asked.max_tokens),
        stream=bool(asked.stream),
        schema=asked.output_config.format.schema if asked.output_config and asked.output_config.format else None,
    )


def _check_sampling(asked: _Body, version: str) -> None:
    for name in ("temperature", "top_p", "top_k"):
        given = getattr(asked, name) is not None
        require(not given or version <= SAMPLING_VERSION, f"{name}: not taken by version {version} of the API")
    temperature, top_p = asked.temperature, asked.top_p
    require(temperature is None or 0.0 <= temperature <= MAX_TEMPERATURE, "temperature: must be in [0, 1]")
    require(top_p is None or 0.0 < top_p <= 1.0, "top_p: must be in (0, 1]")
    require(temperature is None or top_p is None, "`temperature` and `top_p` cannot both be specified for this model")


def _message(message: _Message) -> Message:
    blocks = message.content if isinstance(message.content, list) else []
    images = tuple(_image(block.source) for block in blocks if block.type == "image")
    require(message.role == "user" or not images, "messages: only the user can send pictures")
    texts = [block for block in blocks if block.type != "image"]
    text = _text(message.content if isinstance(message.content, str) else texts)
    require(bool(images or text.strip()), "messages: text content must not be empty")
    return Message(message.role, text, images)


def _image(source: _Source | None) -> Image:
    """The picture in a block, its bytes as they were sent."""
    if source is None or source.type != "base64":
        raise WireError(400, "content of type 'image' is read with a base64 source only")
    kind = source.media_type or ""
    require(kind in _PICTURES, f"image.source.media_type: must be one of {', '.join(_PICTURES)}")
    try:
        data = b64decode(source.data or "", validate=True)
    except ValueError:
        raise WireError(400, "image.source.data: no base64") from None
    require(bool(data), "image.source.data: must not be empty")
    return Image(kind, data)


def _text(content: str | list[_Block]) -> str:
    if isinstance(content, str):
        return content
    for block in content:
        require(block.type == "text" and block.text is not None, f"content of type {block.type!r} is not read")
    return "\n".join(block.text or "" for block in content)


def message(request: ChatRequest, reply: ModelReply, identity: str) -> bytes:
    """The body of a reply that is not streamed."""
    return _encode(
        {
            **_head(request, identity),
            "content": [{"type": "text", "text": reply.text}],
            "stop_reason": _STOP_REASONS[reply.finish_reason],
            "stop_sequence": None,
            "usage": _usage(reply, reply.usage.completion_tokens or 0),
        }
    )


def events(request: ChatRequest, reply: ModelReply, identity: str) -> Iterator[bytes]:
    """The server-sent events of a streamed reply: start, one block in pieces, how it ended with the usage, stop.

    Args:
        reply: must have its tokens.
    """
    assert reply.tokens is not None
    begun = {**_head(request, identity), "content": [], "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message={**begun, "usage": _usage(reply, 0)})
    yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield _event("ping")
    for start in range(0, len(reply.tokens.tokens), TOKENS_PER_EVENT):
        piece = "".join(reply.tokens.tokens[start : start + TOKENS_PER_EVENT])
        yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    yield _event("content_block_stop", index=0)
    ended = {"stop_reason": _STOP_REASONS[reply.finish_reason], "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": reply.usage.completion_tokens or 0})
    yield _event("message_stop")


def _event(kind: str, **data: Any) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + _encode({"type": kind, **data}) + b"\n\n"


def _head(request: ChatRequest, identity: str) -> dict[str, Any]:
    return {"id": f"msg_{identity}", "type": "message", "role": "assistant", "model": request.model}


def _usage(reply: ModelReply, output_tokens: int) -> dict[str, int]:
    return {
        "input_tokens": reply.usage.prompt_tokens or 0,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
    }


def messages_route(server: SimulatedServer) -> web.RouteDef:
    """`POST /v1/messages`, answered by the simulated server; errors have OpenAI's bodies and the right status."""

    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = read_request(body, request.headers)
        reply, identity, _ = await server.answer(request, body, asked)
        if asked.stream:
            return await streamed(request, events(asked, reply, identity))
        return web.Response(body=message(asked, reply, identity), content_type="application/json")

    return web.post("/v1/messages", handler)
