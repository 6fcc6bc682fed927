"""Server-side codec of the OpenAI API: requests in; completions, chunks, embeddings and errors out."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, Literal, TypeVar

import msgspec

from moot.actors.encoders.interface import Rows
from moot.actors.models.interface import ModelReply, TokenLogprobs
from moot.actors.simulated.model import MAX_ALTERNATIVES
from moot.protocols.case import Image
from moot.protocols.messages import Decoding, Message

TOKENS_PER_EVENT = 4
"""Tokens per event of a stream."""
MOST_TEXTS = 2048
"""Most texts of one embeddings request, as at OpenAI."""

_UNBOUNDED = 1 << 20
_LARGEST_DIMENSION = 4096
_CHARACTERS_PER_TOKEN = 4
_TYPES = {429: "requests", 500: "server_error"}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}

_encode = msgspec.json.Encoder().encode


class WireError(Exception):
    """Error of a request, answered with an error object.

    Args:
        status: HTTP status; it determines the type of the error object.
        message: what is wrong, for the client.
        headers: further response headers.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, message, headers)
        self.status, self.message, self.headers = status, message, headers or {}


def require(holds: bool, message: str) -> None:
    """Validates a request: raises unless a condition is true.

    Raises:
        WireError: 400.
    """
    if not holds:
        raise WireError(400, message)


class _ImageUrl(msgspec.Struct):
    url: str


class _Part(msgspec.Struct):
    type: str
    text: str | None = None
    image_url: _ImageUrl | None = None


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part] | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _NamedSchema(msgspec.Struct):
    name: str
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class _ResponseFormat(msgspec.Struct):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _NamedSchema | None = None


class _Body(msgspec.Struct):
    model: str
    messages: list[_Message]
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    n: int | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    response_format: _ResponseFormat | None = None


class EmbeddingsRequest(msgspec.Struct):
    """Embeddings request; any model name is accepted.

    Attributes:
        encoding_format: `base64` encodes little-endian float32.
        dimensions: length of the vectors.
    """

    model: str
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None

    @property
    def texts(self) -> list[str]:
        """Texts to embed; in a validated request at least one, and none is empty."""
        return [self.input] if isinstance(self.input, str) else self.input

    @property
    def dimension(self) -> int:
        """Requested vector length, or OpenAI's shortest."""
        return 512 if self.dimensions is None else self.dimensions


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Validated chat-completions request.

    Attributes:
        model: the model's name in the request; any name is accepted.
        messages: the conversation; text parts of one message are joined with newlines.
        decoding: `top_logprobs` is 0 when log-probabilities without alternatives are requested.
        stream: whether to respond with server-sent events.
        schema: JSON schema that constrains the reply; None for an unconstrained one.
        stream_usage: whether the last event contains the usage.
    """

    model: str
    messages: tuple[Message, ...]
    decoding: Decoding
    stream: bool
    schema: dict[str, Any] | None = None
    stream_usage: bool = False


B = TypeVar("B")


def _decoded(body: bytes, kind: type[B], name: str) -> B:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(400, f"the body is not {name} request: {error}") from None


def read_request(body: bytes) -> ChatRequest:
    """Validates and decodes a chat request; unknown fields are ignored.

    The prompt determines the form of the reply; a schema only counts where the prompt has no known form.

    Raises:
        WireError: 400, for an invalid request or an unsupported parameter.
    """
    asked = _decoded(body, _Body, "a chat-completions")
    require(bool(asked.messages), "`messages` is empty")
    require(asked.n in (None, 1), "`n` must be 1")
    require(asked.temperature is None or 0.0 <= asked.temperature <= 2.0, "`temperature` must be in [0, 2]")
    require(asked.top_p is None or 0.0 < asked.top_p <= 1.0, "`top_p` must be in (0, 1]")
    longest = asked.max_tokens if asked.max_completion_tokens is None else asked.max_completion_tokens
    require(longest is None or longest >= 1, "`max_tokens` must be at least 1")
    wanted = asked.response_format
    named = wanted is None or wanted.type != "json_schema" or (wanted.json_schema and wanted.json_schema.schema)
    require(bool(named), "`response_format` of type json_schema needs `json_schema` with a `name` and a `schema`")
    options = asked.stream_options
    return ChatRequest(
        model=asked.model,
        messages=tuple(_message(message) for message in asked.messages),
        decoding=Decoding(
            temperature=asked.temperature,
            top_p=asked.top_p,
            max_tokens=_UNBOUNDED if longest is None else longest,
            top_logprobs=_top_logprobs(asked),
        ),
        stream=bool(asked.stream),
        stream_usage=bool(options and options.include_usage),
        schema=wanted.json_schema.schema if wanted is not None and wanted.json_schema is not None else None,
    )


def _top_logprobs(asked: _Body) -> int | None:
    if not asked.logprobs:
        require(asked.top_logprobs is None, "`top_logprobs` needs `logprobs: true`")
        return None
    alternatives = asked.top_logprobs or 0
    require(0 <= alternatives <= MAX_ALTERNATIVES, f"`top_logprobs` must be in [0, {MAX_ALTERNATIVES}]")
    return alternatives


def _message(message: _Message) -> Message:
    role: Literal["system", "user", "assistant"] = "system" if message.role == "developer" else message.role
    if not isinstance(message.content, list):
        return Message(role, message.content or "")
    texts, images = [], []
    for part in message.content:
        if part.type == "image_url" and part.image_url is not None:
            images.append(_image(part.image_url.url))
        else:
            require(part.type == "text" and part.text is not None, f"content of type {part.type!r} is not read")
            texts.append(part.text or "")
    return Message(role, "\n".join(texts), tuple(images))


def _image(url: str) -> Image:
    """Image of a `data:` URL, with its original bytes."""
    head, _, encoded = url.partition(";base64,")
    require(head.startswith("data:image/"), "`image_url` must be data:image/...;base64,...")
    try:
        return Image(head.removeprefix("data:"), b64decode(encoded, validate=True))
    except ValueError:
        raise WireError(400, "`image_url` holds no base64") from None


def completion(request: ChatRequest, reply: ModelReply, identity: str) -> bytes:
    """Response body of a reply without streaming."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": reply.text, "refusal": None},
        "logprobs": _logprobs(reply.tokens, 0, None),
        "finish_reason": reply.finish_reason,
    }
    head = _head("chat.completion", request, identity)
    return _encode({**head, "choices": [choice], "usage": _usage(reply)})


def events(request: ChatRequest, reply: ModelReply, identity: str) -> Iterator[bytes]:
    """Server-sent events of a streamed reply: role, pieces, finish, usage if requested, and the end marker.

    Args:
        reply: with its tokens; their log-probabilities are sent only if requested.
    """
    assert reply.tokens is not None
    head = _head("chat.completion.chunk", request, identity)
    usage = {"usage": None} if request.stream_usage else {}
    asked = request.decoding.top_logprobs is not None

    def event(delta: dict[str, Any], logprobs: object = None, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return _event({**head, "choices": [choice], **usage})

    yield event({"role": "assistant", "content": "", "refusal": None})
    for start in range(0, len(reply.tokens.tokens), TOKENS_PER_EVENT):
        end = start + TOKENS_PER_EVENT
        piece = "".join(reply.tokens.tokens[start:end])
        yield event({"content": piece}, _logprobs(reply.tokens, start, end) if asked else None)
    yield event({}, finish=reply.finish_reason)
    if request.stream_usage:
        yield _event({**head, "choices": [], "usage": _usage(reply)})
    yield b"data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + _encode(data) + b"\n\n"


def _head(kind: str, request: ChatRequest, identity: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{identity}", "object": kind, "created": int(time.time()), "model": request.model}


def _usage(reply: ModelReply) -> dict[str, int]:
    prompt, written = reply.usage.prompt_tokens or 0, reply.usage.completion_tokens or 0
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


def _logprobs(tokens: TokenLogprobs | None, start: int, end: int | None) -> dict[str, Any] | None:
    if tokens is None:
        return None
    width = tokens.alternatives
    content = []
    chosen, listed = tokens.logprob[start:end].tolist(), tokens.alt_logprob[start:end].tolist()
    for place, (logprob, row) in enumerate(zip(chosen, listed, strict=True), start):
        names = tokens.alt_tokens[place * width : (place + 1) * width]
        alternatives = [_token(name, value) for name, value in zip(names, row, strict=True)]
        content.append({**_token(tokens.tokens[place], logprob), "top_logprobs": alternatives})
    return {"content": content, "refusal": None}


def _token(token: str, logprob: float) -> dict[str, Any]:
    # The simulated model's values have six decimals: rounding removes the float32 error.
    return {"token": token, "logprob": round(logprob, 6), "bytes": None}


def error_body(error: WireError) -> bytes:
    """Response body of an error."""
    kind = _TYPES.get(error.status, "invalid_request_error")
    return _encode({"error": {"message": error.message, "type": kind, "param": None, "code": _CODES.get(error.status)}})


def read_embeddings_request(body: bytes) -> EmbeddingsRequest:
    """Validates and decodes an embeddings request; unknown fields are ignored. As with OpenAI, no text may be empty.

    Raises:
        WireError: 400, for an invalid request or an unsupported parameter.
    """
    asked = _decoded(body, EmbeddingsRequest, "an embeddings")
    require(bool(asked.texts) and all(asked.texts), "`input` is empty or holds an empty text")
    require(len(asked.texts) <= MOST_TEXTS, f"`input` holds more than {MOST_TEXTS} texts")
    require(1 <= asked.dimension <= _LARGEST_DIMENSION, f"`dimensions` must be in [1, {_LARGEST_DIMENSION}]")
    return asked


def embeddings(request: EmbeddingsRequest, rows: Rows) -> bytes:
    """Response body of embeddings; `rows` has one vector per text. Prompts count as four characters a token."""
    base64 = request.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": b64encode(row.astype("<f4").tobytes()).decode("ascii") if base64 else row.tolist(),
        }
        for index, row in enumerate(rows)
    ]
    tokens = sum(-(-len(text) // _CHARACTERS_PER_TOKEN) for text in request.texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return _encode({"object": "list", "data": data, "model": request.model, "usage": usage})
