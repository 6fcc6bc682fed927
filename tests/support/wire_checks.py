"""Checks of replies and errors of any vendor's API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from anthropic_wire import message
from openai_server import KEY, completion, response

from moot.actors.models import anthropic_wire
from moot.actors.models.interface import ModelError, ModelReply, RateHeaders
from moot.actors.models.openai_wire import decode_reply
from moot.actors.models.responses_wire import decode_response
from moot.protocols.messages import Decoding

KINDS = {"request", "server", "refused", "rate_limited", "content_filter", "context_length", "connection"}


def check_error(error: ModelError) -> None:
    """Assert that an error has a known kind and a short one-line message, and may be billed."""
    assert error.kind in KINDS
    assert error.message.isprintable()
    assert len(error.message) <= 300
    assert error.may_be_billed


K = 2


ASKED = Decoding(top_logprobs=K)


LIMITS = RateHeaders(0, 60)


class WireFormat(NamedTuple):
    """Decoder of a reply, body of a complete reply, and names of usage fields: prompt, reply, details, reasoning."""

    decode: Callable[[bytes], ModelReply]
    whole: Callable[..., dict[str, Any]]
    usage: tuple[str, str, str, str]


WIRES = {
    "chat": WireFormat(
        lambda raw: decode_reply(raw, ASKED, key=KEY, limits=LIMITS),
        completion,
        ("prompt_tokens", "completion_tokens", "completion_tokens_details", "reasoning_tokens"),
    ),
    "responses": WireFormat(
        lambda raw: decode_response(raw, ASKED, key=KEY, limits=LIMITS),
        response,
        ("input_tokens", "output_tokens", "output_tokens_details", "reasoning_tokens"),
    ),
    "anthropic": WireFormat(
        lambda raw: anthropic_wire.decode_reply(raw, key=KEY, limits=LIMITS),
        message,
        ("input_tokens", "output_tokens", "output_tokens_details", "thinking_tokens"),
    ),
}


def read(wire: str, body: object) -> ModelReply:
    return WIRES[wire].decode(body if isinstance(body, bytes) else json.dumps(body).encode())


def incomplete(reason: str | None) -> dict[str, Any]:
    return response("Ye", status="incomplete", incomplete_details=reason and {"reason": reason})
