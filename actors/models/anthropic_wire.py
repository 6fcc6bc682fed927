"""Codec of the Anthropic messages API: request bytes, response bytes as a `ModelReply`, and failures."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from moot.actors.models.families import family_of_model
from moot.actors.models.finish_reasons import finish_failure, known_finish
from moot.actors.models.hidden_reasoning import split_thinking
from moot.actors.models.interface import ModelError, ModelReply, RateHeaders, ReplySchema, failures_may_be_billed
from moot.actors.models.openai_errors import (
    VendorError,
    failure_in_reply,
    plain,
    refuse_key,
    retry_after,
    status_failure,
)
from moot.actors.models.openai_wire import token_count, with_extra
from moot.actors.models.rate_headers import anthropic_rate_headers
from moot.actors.models.wire_json import decode_json
from moot.protocols.messages import Decoding, Message, Usage

_STOPPED = frozenset(("end_turn", "stop_sequence"))

SAMPLING_VERSION = "2023-06-01"
"""Last `anthropic-version` with `temperature` and `top_p`; the SDK sends a later one, which answers 400 to both."""

MAX_TEMPERATURE = 1.0
"""Highest temperature of the models that support one."""


def takes_sampling(model: str) -> bool:
    """Whether a model supports `temperature` or `top_p`: those up to Claude 4.6 do, all later ones refuse them.

    An unknown name counts as later, so that a new model does not refuse our settings.

    >>> [takes_sampling(name) for name in ("claude-haiku-4-5-20251001", "claude-opus-4-7", "claude-opus-5-5")]
    [True, False, False]
    """
    family = family_of_model("anthropic", model)
    return family is not None and family.sampling


def sampling(model: str, decoding: Decoding) -> tuple[float | None, float | None]:
    """Sampling parameters to send, `temperature` and `top_p`; None leaves one out.

    Models that support them refuse both at once: the temperature takes precedence.
    """
    if not takes_sampling(model):
        return None, None
    return decoding.temperature, (decoding.top_p if decoding.temperature is None else None)


class _Request(msgspec.Struct, omit_defaults=True):
    model: str
    max_tokens: int
    messages: list[dict[str, Any]]
    stream: bool  # always sent: some gateways stream where it is missing
    system: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    output_config: dict[str, Any] | None = None
    stop_sequences: tuple[str, ...] | None = None


_encode = msgspec.json.Encoder().encode


def encode_request(
    model: str, messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None = None
) -> bytes:
    """Request body as JSON.

    System messages go into `system`, in order. A message without text and images is omitted: the service refuses empty
    ones, and merges consecutive messages of one speaker into one turn.

    Raises:
        ModelError: `request`, when a message contains a lone surrogate.
    """
    temperature, top_p = sampling(model, decoding)
    system = [message.content for message in messages if message.role == "system"]
    request = _Request(
        model=model,
        max_tokens=decoding.max_tokens,
        messages=[_message(message) for message in messages if message.role != "system" and _says(message)],
        stream=False,
        system="\n\n".join(system) or None,
        temperature=temperature,
        top_p=top_p,
        output_config=_output_config(decoding.reasoning_effort, schema),
        stop_sequences=decoding.stop or None,
    )
    try:
        return with_extra(_encode(request), decoding.extra)
    except UnicodeEncodeError:
        raise ModelError("request", "a message holds a lone surrogate, which is not Unicode text") from None


def _output_config(effort: str | None, schema: ReplySchema | None) -> dict[str, Any] | None:
    """Reasoning effort, and the schema that constrains the reply; None for neither."""
    config: dict[str, Any] = {} if effort is None else {"effort": effort}
    if schema is not None:
        # Not a forced tool: the models that always reason refuse that.
        config["format"] = {"type": "json_schema", "schema": msgspec.Raw(schema.body)}
    return config or None


def _says(message: Message) -> bool:
    return bool(message.images or message.content.strip())


def _message(message: Message) -> dict[str, Any]:
    if not message.images:
        return {"role": message.role, "content": message.content}
    blocks: list[dict[str, Any]] = [
        {
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": image.media_type,
                "data": b64encode(image.data).decode("ascii"),
            },
        }
        for image in message.images
    ]
    if message.content.strip():
        blocks.append({"type": "text", "text": message.content})
    return {"role": message.role, "content": blocks}


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    thinking: Any = None


class _StopDetails(msgspec.Struct):
    explanation: str | None = None


class _Usage(msgspec.Struct):
    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None
    output_tokens_details: Any = None


class _Reply(msgspec.Struct):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    usage: _Usage | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Reply)


def decode_reply(body: bytes, *, limits: RateHeaders | None = None, key: str | None = None) -> ModelReply:
    """Reply decoder for the body of a 200 response: text blocks are the text, thinking blocks the reasoning.

    Args:
        body: as received, decompressed.
        limits: the rate limits in the response's headers.
        key: the API key in use, kept out of error messages.

    Raises:
        ModelError: `server` for a body that is not a message, `refused` when the model or the service refused to
            answer, or what an error object inside the body states. All of these may have been billed.
    """
    with failures_may_be_billed(limits):
        return _reply(body, limits, key)


def _reply(body: bytes, limits: RateHeaders | None, key: str | None) -> ModelReply:
    reply = decode_json(_decoder, body, "a message")
    if reply.error:
        raise failure_in_reply(body, reply.error, "content", key, _kind_of_codes)
    stopped = reply.stop_reason or ""
    if failure := finish_failure(stopped, key):
        why = reply.stop_details.explanation if reply.stop_details else None
        raise ModelError(failure.kind, plain(why, key)) if why else failure
    if reply.content is None:
        raise failure_in_reply(body, None, "content", key, _kind_of_codes)
    text = "".join(block.text or "" for block in reply.content if block.type == "text")
    thoughts = [block.thinking for block in reply.content if block.type == "thinking"]
    leaked, text = split_thinking(text)
    reasoning = "\n".join(thought for thought in (*thoughts, leaked) if isinstance(thought, str) and thought)
    refuse_key(key, body, text, reasoning)
    return ModelReply(
        text=text,
        finish_reason="stop" if stopped in _STOPPED else known_finish(stopped),
        usage=_usage(reply.usage),
        limits=limits,
        reasoning=reasoning,
    )


def _kind_of_codes(codes: frozenset[str]) -> str | None:
    """Kind of failure by Anthropic's types of errors; None for others."""
    return next((_KIND_OF_TYPE[code] for code in codes if code in _KIND_OF_TYPE), None)


def _usage(usage: _Usage | None) -> Usage:
    """Billed tokens, including prompt tokens written to or read from a cache.

    Reasoning tokens are part of the reply's; their number is None where the service does not state it.
    """
    if usage is None:
        return Usage()
    parts = [token_count(usage.input_tokens)]
    parts += [
        token_count(part)
        for part in (usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
        if part is not None
    ]
    known = [part for part in parts if part is not None]
    prompt = token_count(sum(known)) if len(known) == len(parts) else None
    details = usage.output_tokens_details
    thinking = details.get("thinking_tokens") if isinstance(details, dict) else None
    return Usage(prompt, token_count(usage.output_tokens), token_count(thinking))


_KIND_OF_STATUS = {
    401: "refused",
    402: "refused",
    403: "refused",
    408: "server",
    409: "server",
    429: "rate_limited",
}
_KIND_OF_TYPE = {
    "authentication_error": "refused",
    "billing_error": "refused",
    "permission_error": "refused",
    "rate_limit_error": "rate_limited",
    "timeout_error": "server",
    "overloaded_error": "server",
    "api_error": "server",
}
_SPENT = {"contract_spend_limit_reached", "enforced_spend_limit_reached"}
_CONTEXT_WORDS = ("prompt is too long", "context limit", "context window", "context length")
_TIMED_OUT = {408, 504}


def error_from_response(
    status: int, headers: Mapping[str, str], body: bytes, *, key: str | None = None, now: float | None = None
) -> ModelError:
    """Maps a response with an error status to a `ModelError`.

    Args:
        status: HTTP status, 300 and up.
        headers: with case-insensitive lookup.
        body: as received, decompressed.
        key: the API key in use, kept out of the message.
        now: seconds since the epoch, to read dated headers; the clock when None.
    """
    now = time.time() if now is None else now
    error = VendorError.from_body(body)
    failure = status_failure(_kind(status, error), status, error, key, retry_after(headers, now))
    failure.may_be_billed, failure.limits = status in _TIMED_OUT, anthropic_rate_headers(headers)
    return failure


def _kind(status: int, error: VendorError) -> str:
    if error.codes & _SPENT:
        return "refused"
    if status >= 500:
        return "server"
    if status in _KIND_OF_STATUS:
        return _KIND_OF_STATUS[status]
    message = error.message.lower()
    return "context_length" if status in (400, 413) and any(word in message for word in _CONTEXT_WORDS) else "request"
