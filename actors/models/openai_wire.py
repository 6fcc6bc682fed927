"""The OpenAI chat-completions wire as data: a request's bytes, and a response's bytes as a `ModelReply`."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from moot.actors.models.interface import ModelError, ModelReply, TokenLogprobs
from moot.actors.models.openai_errors import VendorError, plain, vendor_failure
from moot.actors.models.openai_logprobs import WireLogprobs, token_logprobs, tokens_from_bytes
from moot.protocols.messages import Decoding, Message, Usage

REQUEST_ID_HEADER = "X-Client-Request-Id"
"""Header that carries the step key, percent-encoded (see `request_id`)."""

LengthField = Literal["max_tokens", "max_completion_tokens"]
"""What the reply's bound is called: compatible servers know the first, OpenAI's newer models the second."""

_MINUS_INFINITY = -9999.0
_HEADER_SAFE = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_LONGEST_ID = 512


def request_id(step_key: str) -> str:
    """The step key as a header value: printable ASCII, all else and `%` percent-encoded.

    `urllib.parse.unquote` gives the key back. An id beyond 512 characters, which OpenAI refuses, keeps its start
    and ends in a hash.

    >>> request_id("boolq-7/1/round/2/agent/é")
    'boolq-7/1/round/2/agent/%C3%A9'
    """
    quoted = quote(step_key, safe=_HEADER_SAFE, errors="surrogatepass")
    if len(quoted) <= _LONGEST_ID:
        return quoted
    digest = blake2b(quoted.encode(), digest_size=16).hexdigest()
    return f"{quoted[: _LONGEST_ID - 33]}~{digest}"


class _Request(msgspec.Struct, omit_defaults=True):
    model: str
    messages: list[dict[str, Any]]
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    logprobs: bool = False
    top_logprobs: int | None = None


_encode = msgspec.json.Encoder().encode


def encode_request(
    model: str, messages: Sequence[Message], decoding: Decoding, length_field: LengthField = "max_tokens"
) -> bytes:
    """The request's JSON body. Settings that are None are left out, so the server's default holds.

    Raises:
        ModelError: `request`, when a message holds what is not Unicode text (a lone surrogate).
    """
    request = _Request(
        model=model,
        messages=[_message(message) for message in messages],
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        logprobs=decoding.top_logprobs is not None,
        top_logprobs=decoding.top_logprobs,
    )
    setattr(request, length_field, decoding.max_tokens)
    try:
        return _encode(request)
    except UnicodeEncodeError:
        raise ModelError("request", "a message holds a lone surrogate, which is not Unicode text") from None


def _message(message: Message) -> dict[str, Any]:
    if not message.images:
        return {"role": message.role, "content": message.content}
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.content}]
    for image in message.images:
        url = f"data:{image.media_type};base64,{b64encode(image.data).decode('ascii')}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": message.role, "content": parts}


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _ChoiceWithLogprobs(_Choice):
    logprobs: WireLogprobs | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None


class _Reply(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


class _ReplyWithLogprobs(msgspec.Struct):
    choices: list[_ChoiceWithLogprobs] | None = None
    usage: _Usage | None = None
    error: Any = None


_plain_reply = msgspec.json.Decoder(_Reply)
_logprobs_reply = msgspec.json.Decoder(_ReplyWithLogprobs)


def decode_reply(body: bytes, decoding: Decoding, *, key: str | None = None) -> ModelReply:
    """The reply in the body of a 200 response.

    Args:
        body: as received, decompressed.
        decoding: what was asked; log-probabilities are read only when it asked for them.
        key: the API key in use, kept out of error messages.

    Raises:
        ModelError: `server` for a body that is not a chat completion, `content_filter` or `refused` when the
            model gave no answer for that reason, or what an error object inside the body says.
    """
    reply = _decode(body, decoding.top_logprobs is not None)
    if not reply.choices or reply.error:
        raise _no_reply(body, reply, key)
    choice = reply.choices[0]
    text = choice.message.content or ""
    if choice.finish_reason == "content_filter":
        raise ModelError("content_filter", "the reply was stopped by the server's content filter")
    if choice.message.refusal:
        raise ModelError("refused", plain(choice.message.refusal, key))
    return ModelReply(
        text=text,
        finish_reason=choice.finish_reason or "",
        usage=_usage(reply.usage),
        tokens=_tokens(choice, text, decoding.top_logprobs, body),
    )


def _decode(body: bytes, logprobs: bool) -> _Reply | _ReplyWithLogprobs:
    decode = _logprobs_reply.decode if logprobs else _plain_reply.decode
    try:
        return decode(body)
    except (ValueError, RecursionError):
        pass
    try:
        return decode(strict_json(body))
    except msgspec.ValidationError as error:
        raise ModelError("server", plain(f"the reply is not a chat completion: {error}")) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(
            "server", plain(f"the reply is not JSON ({type(error).__name__}, {len(body)} bytes)")
        ) from None


def strict_json(body: bytes) -> bytes:
    """The body without what some servers write and JSON has no word for: NaN, Infinity, lone surrogates."""
    data = json.loads(
        body.decode("utf-8", "replace"),
        parse_constant={"-Infinity": _MINUS_INFINITY}.get,
        parse_float=_finite,
        parse_int=_finite,
    )
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")


def _finite(digits: str) -> float | int | None:
    number = float(digits)
    if not math.isfinite(number):
        return None if number > 0 else _MINUS_INFINITY
    return int(digits) if digits.lstrip("-").isdigit() and abs(number) < 2**53 else number


def _no_reply(body: bytes, reply: _Reply | _ReplyWithLogprobs, key: str | None) -> ModelError:
    error = VendorError.from_data(reply.error) if reply.error else VendorError.from_body(body)
    if not (error.message or error.codes):
        return ModelError("server", "the reply holds no choices")
    return vendor_failure(error.status or 500, error, key=key)


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    return Usage(token_count(usage.prompt_tokens), token_count(usage.completion_tokens))


_MOST_TOKENS = 2**31 - 1
"""What the record's columns hold; a server that says more is not believed."""


def token_count(value: object) -> int | None:
    """A number of tokens as a server states it; None for what cannot be one."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _tokens(choice: _Choice, text: str, alternatives: int | None, body: bytes) -> TokenLogprobs | None:
    """None unless the server gave log-probabilities; an empty list beside a text is none given."""
    logprobs = choice.logprobs if isinstance(choice, _ChoiceWithLogprobs) else None
    content = logprobs.content if logprobs is not None else None
    if alternatives is None or content is None or (text and not content):
        return None
    tokens = token_logprobs(content, alternatives)
    if "".join(tokens.tokens) != text:
        whole = tokens_from_bytes(body, text)
        return replace(tokens, tokens=whole) if whole else tokens
    return tokens
