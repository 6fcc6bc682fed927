"""The Anthropic wire as data: encoding, decoding, stated limits, and hostile bytes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from moot.actors.models.anthropic_wire import decode_reply, encode_request, takes_sampling
from moot.actors.models.interface import RateHeaders
from moot.actors.models.rate_headers import anthropic_rate_headers
from moot.protocols.messages import Decoding, Message, Usage

KINDS = {"request", "server", "refused", "rate_limited", "context_length"}


def body(*content: Any, **fields: Any) -> bytes:
    return json.dumps({"content": list(content), "stop_reason": "end_turn", **fields}).encode()


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def sent(*messages: Message) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(encode_request("m", messages, Decoding(max_tokens=5)))
    return decoded


def test_system_messages_are_joined_in_order() -> None:
    request = sent(Message("system", "a"), Message("user", "b"), Message("system", "c"))
    assert request["system"] == "a\n\nc"
    assert request["messages"] == [{"role": "user", "content": "b"}]
    assert "system" not in sent(Message("user", "b"))


def test_a_reply_that_said_nothing_is_not_sent_back() -> None:
    request = sent(Message("user", "b"), Message("assistant", " \n"), Message("user", "again"))
    assert [message["role"] for message in request["messages"]] == ["user", "user"]


def test_only_what_was_said_is_the_text() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    called = {"type": "tool_use", "id": "1", "name": "n", "input": {}}
    assert decode_reply(body(thought, text("a"), called, text("b"))).text == "ab"
    assert decode_reply(body()).text == ""
    assert decode_reply(body(thought, stop_reason="max_tokens")).finish_reason == "length"


@pytest.mark.parametrize(
    ("stop_reason", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
        (None, ""),
    ],
)
def test_finish_reasons(stop_reason: str | None, expected: str) -> None:
    assert decode_reply(body(text("a"), stop_reason=stop_reason)).finish_reason == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({}, Usage()),
        ({"input_tokens": 3, "output_tokens": None}, Usage(3)),
        ({"input_tokens": -3, "output_tokens": True}, Usage()),
        ({"input_tokens": "3", "output_tokens": 10**30}, Usage()),
        ({"input_tokens": 3, "output_tokens": 4, "service_tier": "standard"}, Usage(3, 4)),
        (
            {"input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 4},
            Usage(113, 4),
        ),
        ({"input_tokens": 3, "cache_read_input_tokens": None, "output_tokens": 4}, Usage(3, 4)),
        ({"input_tokens": 3, "cache_read_input_tokens": "many", "output_tokens": 4}, Usage(None, 4)),
    ],
)
def test_usage_is_never_guessed(usage: Any, expected: Usage) -> None:
    assert decode_reply(body(text("a"), usage=usage)).usage == expected


def test_which_models_take_sampling_settings() -> None:
    taking = ("claude-haiku-4-5-20251001", "claude-sonnet-4-6", "claude-opus-4-20250514", "claude-3-5-haiku-latest")
    others = ("claude-opus-4-7", "claude-opus-4-60", "claude-sonnet-5", "claude-mythos-preview", "claude-next")
    assert [takes_sampling(model) for model in (*taking, *others)] == [True] * len(taking) + [False] * len(others)


def headers(**named: str) -> dict[str, str]:
    return {f"anthropic-ratelimit-{name.replace('_', '-')}": value for name, value in named.items()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, None),
        (
            headers(requests_limit="50", requests_remaining="49", tokens_limit="9", tokens_remaining="8"),
            RateHeaders(49, 50, 8, 9),
        ),
        (
            headers(requests_remaining="0", requests_limit="-1", tokens_limit="1e9", tokens_remaining="٣"),
            RateHeaders(0),
        ),
    ],
)
def test_rate_limit_headers(given: dict[str, str], expected: RateHeaders | None) -> None:
    assert anthropic_rate_headers(given) == expected
