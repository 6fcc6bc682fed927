"""Codec of the OpenAI chat-completions API: request bytes, and response bytes as a `ModelReply`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from moot.actors.models.content_parts import Content, read_content
from moot.actors.models.finish_reasons import blocked_prompt, finish_failure, known_finish
from moot.actors.models.hidden_reasoning import split_reasoning
from moot.actors.models.interface import ModelError, ModelReply, RateHeaders, ReplySchema, failures_may_be_billed
from moot.actors.models.openai_errors import failure_in_reply, plain, refuse_key
from moot.actors.models.token_logprobs import WireLogprobs, reply_tokens, without_reasoning
from moot.actors.models.wire_json import decode_json
from moot.protocols.case import Image
from moot.protocols.messages import Decoding, Message, Usage
from moot.protocols.seeds import call_digest

REQUEST_ID_HEADER = "X-Client-Request-Id"
"""Header of the step key, percent-encoded (see `request_id`)."""

LengthField = Literal["max_tokens", "max_completion_tokens"]
"""Name of the length limit: compatible servers know the first, OpenAI's newer models the second."""

_HEADER_SAFE = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_LONGEST_ID = 512


def request_id(step_key: str) -> str:
    """Request id: the step key as a header value, printable ASCII, all else and `%` percent-encoded.

    `urllib.parse.unquote` decodes the key. An id beyond 512 characters, which OpenAI refuses, keeps its start and ends
    in a hash.

    >>> request_id("boolq-7/1/round/2/agent/é")
    'boolq-7/1/round/2/agent/%C3%A9'
    """
    quoted = quote(step_key, safe=_HEADER_SAFE, errors="surrogatepass")
    if len(quoted) <= _LONGEST_ID:
        return quoted
    digest = blake2b(quoted.encode(), digest_size=16).hexdigest()
    return f"{quoted[: _LONGEST_ID - 33]}~{digest}"


def step_seed(seed: int | None, messages: Sequence[Message], step_key: str, decoding: Decoding) -> int | None:
    """Seed of one request, below 2**31, derived from its content and step, so that repeated samples differ and a
    repeated run does not. None without a seed of the run."""
    if seed is None:
        return None
    digest = call_digest(seed, messages, step_key, decoding.temperature == 0)
    return int.from_bytes(digest[:4], "little") >> 1


class _Request(msgspec.Struct, omit_defaults=True):
    model: str
    messages: list[dict[str, Any]]
    stream: bool  # always sent: some servers stream where it is missing
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    logprobs: bool = False
    top_logprobs: int | None = None
    response_format: msgspec.Raw | None = None
    stream_options: dict[str, bool] | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    repetition_penalty: float | None = None
    reasoning_effort: str | None = None


_encode = msgspec.json.Encoder().encode


def encode_request(
    model: str,
    messages: Sequence[Message],
    decoding: Decoding,
    length_field: LengthField = "max_tokens",
    *,
    schema: ReplySchema | None = None,
    stream: bool = False,
    seed: int | None = None,
) -> bytes:
    """Request body as JSON. Settings that are None are omitted, so that the server's default applies.

    Args:
        schema: constrains the reply; None leaves it unconstrained.
        stream: whether to request a streamed reply, with its usage at the end.
        seed: for the server's sampling; None sends none.

    Raises:
        ModelError: `request`, when a message contains a lone surrogate.
        ConfigError: the reply type cannot be expressed as a schema.
    """
    request = _Request(
        model=model,
        messages=[_message(message) for message in messages],
        stream=stream,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        logprobs=decoding.top_logprobs is not None,
        top_logprobs=decoding.top_logprobs,
        response_format=None if schema is None else response_format(schema),
        stream_options={"include_usage": True} if stream and decoding.stream_usage else None,
        seed=seed,
        stop=decoding.stop or None,
        repetition_penalty=decoding.repetition_penalty,
        reasoning_effort=decoding.reasoning_effort,
    )
    setattr(request, "max_completion_tokens" if decoding.bounds_completion else length_field, decoding.max_tokens)
    try:
        return with_extra(_encode(request), decoding.extra)
    except UnicodeEncodeError:
        raise ModelError("request", "a message holds a lone surrogate, which is not Unicode text") from None


def with_extra(body: bytes, extra: str) -> bytes:
    """Merges the keys of a JSON object into a request's body.

    >>> with_extra(b'{"model":"m"}', '{"top_k":5}')
    b'{"model":"m","top_k":5}'
    """
    return body if not extra else body[:-1] + b"," + extra.encode()[1:]


@lru_cache(maxsize=1024)
def response_format(schema: ReplySchema) -> msgspec.Raw:
    """`response_format` that constrains a reply to `schema`; cached."""
    body = {"name": schema.name, "strict": True, "schema": msgspec.Raw(schema.body)}
    return msgspec.Raw(msgspec.json.encode({"type": "json_schema", "json_schema": body}))


def _message(message: Message) -> dict[str, Any]:
    if not message.images:
        return {"role": message.role, "content": message.content}
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.content}]
    for image in message.images:
        parts.append({"type": "image_url", "image_url": {"url": data_url(image)}})
    return {"role": message.role, "content": parts}


def data_url(image: Image) -> str:
    """Data URL of a picture."""
    return f"data:{image.media_type};base64,{b64encode(image.data).decode('ascii')}"


_MOST_TOKENS = 2**31 - 1
"""Upper bound of token counts in the record's columns; a larger count from a server is ignored."""


class WireUsage(msgspec.Struct):
    """Usage object of a reply, as sent."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    completion_tokens_details: Any = None
    prompt_tokens_details: Any = None
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None


def usage_of(usage: WireUsage | None) -> Usage:
    """Token usage; None where the server reports none, or no valid count."""
    if usage is None:
        return Usage()
    details = usage.completion_tokens_details
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return Usage(
        token_count(usage.prompt_tokens), token_count(usage.completion_tokens), token_count(reasoning), _cached(usage)
    )


def _cached(usage: WireUsage) -> int | None:
    """Prompt tokens read from or written to a cache, as OpenAI or as Anthropic states them; None for none."""
    details = usage.prompt_tokens_details
    stated = details.get("cached_tokens") if isinstance(details, dict) else None
    parts = map(token_count, (usage.cache_read_input_tokens, usage.cache_creation_input_tokens))
    return max(token_count(stated) or 0, sum(part or 0 for part in parts)) or None


def token_count(value: object) -> int | None:
    """Token count reported by a server; None for an invalid one."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


_LONGEST_NAME = 200
"""Most characters of a model's name or fingerprint that are kept."""


def served_model(model: object, fingerprint: object) -> str:
    """Identity of the model behind a reply: its name and the server's fingerprint; empty without a report.

    >>> served_model("m", "b4567-0f1e"), served_model(None, None)
    ('m b4567-0f1e', '')
    """
    named = (part[:_LONGEST_NAME] for part in (model, fingerprint) if isinstance(part, str) and part.isprintable())
    return " ".join(part for part in named if part)


class WireMessage(msgspec.Struct):
    """Message of a choice, or what an event of a stream adds to it, as sent."""

    content: Any = None
    refusal: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None

    def read(self) -> Content:
        """Text, thinking and refusal.

        Raises:
            ModelError: `server`, for a content of an unknown form.
        """
        try:
            found = read_content(self.content)
        except (TypeError, RecursionError) as error:
            raise ModelError("server", f"the reply is not a chat completion: {error}") from None
        return found._replace(refusal=self.refusal) if self.refusal else found


class _Choice(msgspec.Struct):
    message: WireMessage | None = None
    finish_reason: str | None = None
    error: Any = None


class _ChoiceWithLogprobs(_Choice):
    logprobs: WireLogprobs | None = None


class _Reply(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: WireUsage | None = None
    error: Any = None
    model: Any = None
    system_fingerprint: Any = None


class _ReplyWithLogprobs(msgspec.Struct):
    choices: list[_ChoiceWithLogprobs] | None = None
    usage: WireUsage | None = None
    error: Any = None
    model: Any = None
    system_fingerprint: Any = None


_plain_reply = msgspec.json.Decoder(_Reply)
_logprobs_reply = msgspec.json.Decoder(_ReplyWithLogprobs)


def decode_reply(
    body: bytes, decoding: Decoding, *, key: str | None = None, limits: RateHeaders | None = None
) -> ModelReply:
    """Reply decoder for the body of a 200 response.

    Args:
        body: as received, decompressed.
        decoding: of the request; log-probabilities are read only if requested.
        key: the API key in use, kept out of error messages.
        limits: the rate limits in the response's headers.

    Raises:
        ModelError: `server` for a body that is not a chat completion, `content_filter` or `refused` when the model gave
            no answer for that reason, or what an error object inside the body states. Each may be billed: the server
            received the request.
    """
    with failures_may_be_billed(limits):
        return _reply(body, decoding, key, limits)


def _reply(body: bytes, decoding: Decoding, key: str | None, limits: RateHeaders | None) -> ModelReply:
    reply: _Reply | _ReplyWithLogprobs
    logprobs = None
    if decoding.top_logprobs is None:
        reply = decode_json(_plain_reply, body, "a chat completion")
    else:
        reply = decode_json(_logprobs_reply, body, "a chat completion")
        logprobs = reply.choices[0].logprobs if reply.choices else None
    choice = reply.choices[0] if reply.choices else None
    error = reply.error or (choice.error if choice else None)
    if choice is None or error:
        raise _without_reply(body, error, "choices", key)
    content = _read_choice(choice, body, key)
    message = choice.message or WireMessage()
    split = split_reasoning(content.text, content.thinking or message.reasoning, message.reasoning_content)
    tokens = reply_tokens(logprobs, split.text, decoding.top_logprobs, body)
    refuse_key(key, body, split.text, split.reasoning, "".join(tokens.tokens) if tokens else "")
    return ModelReply(
        text=split.text,
        finish_reason=known_finish(choice.finish_reason),
        usage=usage_of(reply.usage),
        tokens=without_reasoning(tokens, split.text, split.reasoning),
        limits=limits,
        reasoning=split.reasoning,
        from_reasoning=split.from_reasoning,
        served_model=served_model(reply.model, reply.system_fingerprint),
    )


def _read_choice(choice: _Choice, body: bytes, key: str | None) -> Content:
    """Content of a choice; raises `ModelError` where it is no answer."""
    content = choice.message.read() if choice.message else Content()
    raise_unanswered(choice.finish_reason, content.refusal, key)
    if choice.message is None and known_finish(choice.finish_reason) != "length":
        raise _without_reply(body, None, "message", key)
    return content


def raise_unanswered(finish: str | None, refusal: str, key: str | None) -> None:
    """Raises a `ModelError` where the finish reason or a refusal states that there is no answer.

    Args:
        finish: as sent; None before the end.
        refusal: why the model declined, in its words; empty when it did not.
        key: the API key in use, kept out of the message.
    """
    failure = finish_failure(finish, key)
    if refusal and (failure is None or failure.kind == "refused"):
        raise ModelError("refused", plain(refusal, key))
    if failure is not None:
        raise failure


def _without_reply(body: bytes, error: object, missing: str, key: str | None) -> ModelError:
    blocked = None if error else blocked_prompt(body, key)
    return blocked or failure_in_reply(body, error, missing, key)
