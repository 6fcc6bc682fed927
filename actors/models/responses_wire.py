"""Codec of OpenAI's Responses API: request bytes, and response bytes as a `ModelReply`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from moot.actors.models.content_parts import kind_of_part
from moot.actors.models.finish_reasons import finish_failure, known_finish
from moot.actors.models.hidden_reasoning import split_thinking
from moot.actors.models.interface import (
    ModelError,
    ModelReply,
    RateHeaders,
    ReplySchema,
    TokenLogprobs,
    failures_may_be_billed,
)
from moot.actors.models.openai_errors import failure_in_reply, plain, refuse_key
from moot.actors.models.openai_wire import WireUsage, data_url, usage_of
from moot.actors.models.token_logprobs import WireLogprobs, reply_tokens, without_reasoning
from moot.actors.models.wire_json import decode_json
from moot.protocols.messages import Decoding, Message, Usage

_WITH_LOGPROBS = ["message.output_text.logprobs"]
_MERGED = ("reasoning", "text")
"""Objects of a request that merge moot's keys with those of the user's `extra`."""

_REQUEST_CODES = ("invalid_", "image_", "unsupported_", "empty_", "failed_to_download_", "data_residency_")
"""Prefixes of error codes that depend on the request: it would fail again."""


def only_over_responses(message: str) -> bool:
    """Whether the error of a chat completion states that the model is offered over another API only.

    >>> only_over_responses("This model is only supported in v1/responses and not in v1/chat/completions.")
    True
    """
    lowered = message.lower()
    return "v1/responses" in lowered or "not a chat model" in lowered


def encode_request(
    model: str, messages: Sequence[Message], decoding: Decoding, *, schema: ReplySchema | None = None
) -> bytes:
    """Request body as JSON. Settings that are None are omitted, so that the server's default applies.

    `seed` and `stop` do not exist there. The request disables storing of the response, unless `extra` sets otherwise.

    Args:
        schema: constrains the reply; None leaves it unconstrained.

    Raises:
        ModelError: `request`, when a message contains a lone surrogate.
    """
    with_logprobs = decoding.top_logprobs is not None
    request = {
        "model": model,
        "stream": False,
        "input": [_item(message) for message in messages],
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_output_tokens": decoding.max_tokens,
        "top_logprobs": decoding.top_logprobs,
        "include": _WITH_LOGPROBS if with_logprobs else None,
        "reasoning": None if decoding.reasoning_effort is None else {"effort": decoding.reasoning_effort},
        "text": None if schema is None else {"format": _format(schema)},
    }
    sent = {key: value for key, value in request.items() if value is not None}
    given = {"store": False} if decoding.forbids_storing else {}
    try:
        return msgspec.json.encode(_with_extra(sent, given | msgspec.json.decode(decoding.extra or "{}")))
    except UnicodeEncodeError:
        raise ModelError("request", "a message holds a lone surrogate, which is not Unicode text") from None


def _with_extra(request: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Merges other keys into the request; they take precedence."""
    both = {key: given[key] | request[key] for key in _MERGED if key in request and isinstance(given.get(key), dict)}
    return {**request, **given, **request, **both}


def _item(message: Message) -> dict[str, Any]:
    if not message.images:
        return {"role": message.role, "content": message.content}
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": message.content}]
    parts += [{"type": "input_image", "detail": "auto", "image_url": data_url(image)} for image in message.images]
    return {"role": message.role, "content": parts}


def _format(schema: ReplySchema) -> dict[str, Any]:
    return {"type": "json_schema", "name": schema.name, "strict": True, "schema": msgspec.Raw(schema.body)}


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Usage(msgspec.Struct):
    input_tokens: Any = None
    output_tokens: Any = None
    output_tokens_details: Any = None


class _Response(msgspec.Struct):
    status: str | None = None
    output: list[msgspec.Raw] | None = None
    incomplete_details: _Incomplete | None = None
    usage: _Usage | None = None
    error: Any = None


class _Kind(msgspec.Struct):
    type: str | None = None


class _Part(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    logprobs: msgspec.Raw = msgspec.Raw(b"null")


_Parts = list[_Part] | str | None


class _Message(msgspec.Struct):
    content: _Parts = None
    phase: str | None = None


class _Thought(msgspec.Struct):
    content: _Parts = None
    summary: _Parts = None


class _RawTokens(msgspec.Struct):
    content: list[msgspec.Raw] | None = None


_response = msgspec.json.Decoder(_Response)
_kind = msgspec.json.Decoder(_Kind)
_message = msgspec.json.Decoder(_Message)
_thought = msgspec.json.Decoder(_Thought)
_tokens = msgspec.json.Decoder(WireLogprobs)
_raw_tokens = msgspec.json.Decoder(_RawTokens)


def decode_response(
    body: bytes, decoding: Decoding, *, key: str | None = None, limits: RateHeaders | None = None
) -> ModelReply:
    """Reply decoder for the body of a 200 response; reasoning, its summary and commentary are separate from the text.

    Args:
        body: as received, decompressed.
        decoding: of the request; log-probabilities are read only if requested.
        key: the API key in use, kept out of error messages.
        limits: the rate limits in the response's headers.

    Raises:
        ModelError: `server` for a body that is no response, `content_filter` or `refused` when the model gave no
            answer for that reason, or what an error object inside the body states. Each may be billed.
    """
    with failures_may_be_billed(limits):
        return _reply(body, decoding, key, limits)


def _reply(body: bytes, decoding: Decoding, key: str | None, limits: RateHeaders | None) -> ModelReply:
    response = decode_json(_response, body, "a response")
    if response.error or response.output is None:
        raise failure_in_reply(body, response.error, "output", key, _kind_of_codes)
    finish = _finish_reason(response, key)
    parts, thoughts = _read_output(response.output)
    refusal = next((part.refusal for part in parts if part.refusal), None)
    if refusal:
        raise ModelError("refused", plain(refusal, key))
    text = "".join(part.text or "" for part in parts)
    tokens = None if decoding.top_logprobs is None else _token_logprobs(parts, text, decoding.top_logprobs)
    leaked, text = split_thinking(text)
    reasoning = "\n".join(thought for thought in (*thoughts, leaked) if thought)
    refuse_key(key, body, text, reasoning, "".join(tokens.tokens) if tokens else "")
    return ModelReply(
        text=text,
        finish_reason=finish,
        usage=_usage(response.usage),
        tokens=without_reasoning(tokens, text, leaked),
        limits=limits,
        reasoning=reasoning,
    )


def _read_output(output: list[msgspec.Raw]) -> tuple[list[_Part], list[str | None]]:
    """Parts of the reply, and what precedes it (commentary, reasoning); items of other types are skipped."""
    parts: list[_Part] = []
    thoughts: list[str | None] = []
    for raw in output:
        item = bytes(raw)
        match decode_json(_kind, item, "an output item").type:
            case "message":
                message = decode_json(_message, item, "an output message")
                for part in _parts(message.content):
                    if message.phase == "commentary" or kind_of_part(part.type) == "thinking":
                        thoughts.append(part.text)
                    else:
                        parts.append(part)
            case "reasoning":
                thought = decode_json(_thought, item, "a reasoning item")
                thoughts += [part.text for part in (*_parts(thought.summary), *_parts(thought.content))]
    return parts, thoughts


def _parts(content: _Parts) -> list[_Part]:
    return [_Part(text=content)] if isinstance(content, str) else content or []


def _token_logprobs(parts: list[_Part], text: str, alternatives: int) -> TokenLogprobs | None:
    """Tokens of the parts with a text; None where one of them has no list of tokens."""
    given = [b'{"content":' + bytes(part.logprobs) + b"}" for part in parts if part.text]
    listed = [decode_json(_tokens, each, "a list of tokens").content for each in given]
    if not all(listed):
        return None
    tokens = [token for each in listed for token in each or ()]
    raw = [token for each in given for token in decode_json(_raw_tokens, each, "a list of tokens").content or ()]
    as_chat = msgspec.json.encode({"choices": [{"logprobs": {"content": raw}}]})  # the format with `bytes`
    return reply_tokens(WireLogprobs(tokens), text, alternatives, as_chat)


def _finish_reason(response: _Response, key: str | None) -> str:
    """Finish reason of the response, in terms of chat completions.

    Raises:
        ModelError: the content filter stopped it, or it has not ended.
    """
    match response.status:
        case "completed" | None:
            return "stop" if response.status else ""
        case "incomplete":
            reason = (response.incomplete_details and response.incomplete_details.reason) or "incomplete"
            if failure := finish_failure(reason, key):
                raise failure
            return known_finish(reason)
        case status:
            raise ModelError("server", plain(f"the response is {status!r}", key))


def _kind_of_codes(codes: frozenset[str]) -> str | None:
    """Kind of failure by OpenAI's own codes; None for what they do not decide."""
    if any("policy" in code for code in codes):
        return "content_filter"
    if "invalid_api_key" in codes:
        return "refused"
    return "request" if any(code.startswith(_REQUEST_CODES) for code in codes) else None


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    return usage_of(WireUsage(usage.input_tokens, usage.output_tokens, usage.output_tokens_details))
