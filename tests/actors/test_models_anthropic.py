"""The Anthropic backend: its wire as data, and itself against small servers on loopback."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from aiohttp import web
from openai_server import KEY, MESSAGES, Handler, answers, anthropic, served

from moot.actors.models.anthropic_wire import decode_reply, encode_request, takes_sampling
from moot.actors.models.interface import ModelError, RateHeaders
from moot.actors.models.rate_headers import anthropic_rate_headers
from moot.actors.models.reply_schema import reply_schema
from moot.actors.models.schema_dialects import json_schema
from moot.protocols.messages import Decoding, Message, Usage
from moot.protocols.replies import Position

pytestmark = pytest.mark.usefixtures("certificates_read_once", "vendor_key")

DECODING = Decoding(temperature=0.3, top_p=0.9, max_tokens=9)
LATE, EARLY = "claude-opus-5-5", "claude-haiku-4-5"


def said(text: str = "No.", stop_reason: str = "end_turn", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 7, "output_tokens": 2}
    content = [{"type": "text", "text": text}]
    return {"type": "message", "content": content, "stop_reason": stop_reason, "usage": usage, **fields}


class Listener:
    """Answers like a model and keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.bodies: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        self.bodies.append(await request.json())
        return web.json_response(said())


async def failure(handler: Handler) -> ModelError:
    async with served(anthropic, handler) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert KEY not in str(caught.value) + repr(caught.value) + repr(caught.value.__cause__)
    return caught.value


async def test_request_as_sent_and_reply_as_read() -> None:
    listener = Listener()
    async with served(anthropic, listener.answer) as model:
        reply = await model.complete(MESSAGES, DECODING, step_key="fälle/1/a b\n%")
        await model.complete(MESSAGES, DECODING, step_key="x" * 2000)
    assert (reply.text, reply.finish_reason, reply.http_attempts, reply.tokens) == ("No.", "stop", 1, None)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (7, 2)
    assert reply.limits is None
    first, second = listener.requests
    assert first.path == "/v1/messages"
    assert first.headers["Authorization"] == f"Bearer {KEY}"
    assert first.headers["Content-Type"] == "application/json"
    assert unquote(first.headers["X-Client-Request-Id"]) == "fälle/1/a b\n%"
    assert len(second.headers["X-Client-Request-Id"]) == 512
    assert listener.bodies[0] == {
        "model": LATE,
        "max_tokens": 9,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Can penguins fly?"}],
    }


@pytest.mark.parametrize(
    ("decoding", "sent"),
    [
        (DECODING, {"temperature": 0.3}),
        (Decoding(temperature=0.0, top_p=0.9), {"temperature": 0.0}),
        (Decoding(temperature=None, top_p=0.9), {"top_p": 0.9}),
        (Decoding(temperature=None, top_p=None), {}),
    ],
)
async def test_models_that_take_sampling_get_one_setting_and_the_older_version(
    decoding: Decoding, sent: dict[str, Any]
) -> None:
    listener = Listener()
    async with served(partial(anthropic, model=EARLY), listener.answer) as model:
        await model.complete(MESSAGES, decoding, step_key="c/1/a")
    assert {name: listener.bodies[0][name] for name in ("temperature", "top_p") if name in listener.bodies[0]} == sent
    assert listener.requests[0].headers["anthropic-version"] == "2023-06-01"


async def test_a_schema_is_sent_as_the_output_format() -> None:
    listener = Listener()
    async with served(anthropic, listener.answer) as model:
        await model.complete(MESSAGES, DECODING, step_key="c/1/a", schema=reply_schema(Position, None))
    expected = {"format": {"type": "json_schema", "schema": json_schema(Position)}}
    assert listener.bodies[0]["output_config"] == expected
    assert list(listener.bodies[0]["output_config"]["format"]["schema"]["properties"]) == list(Position.model_fields)


@pytest.mark.parametrize(
    ("status", "kind_said", "message", "kind"),
    [
        (400, "invalid_request_error", "max_tokens: must be at least 1", "request"),
        (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum", "context_length"),
        (400, "invalid_request_error", "input length and `max_tokens` exceed context limit", "context_length"),
        (401, "authentication_error", f"invalid x-api-key {KEY}", "refused"),
        (402, "billing_error", "pay first", "refused"),
        (403, "permission_error", "no", "refused"),
        (404, "not_found_error", "model: none", "request"),
        (408, "timeout_error", "slow", "server"),
        (409, "conflict_error", "locked", "server"),
        (413, "request_too_large", "Request exceeds the maximum size", "request"),
        (422, "invalid_request_error", "no", "request"),
        (429, "rate_limit_error", "slow down", "rate_limited"),
        (500, "api_error", "Internal server error", "server"),
        (504, "timeout_error", "slow", "server"),
        (529, "overloaded_error", "Overloaded", "server"),
    ],
)
async def test_error_status(status: int, kind_said: str, message: str, kind: str) -> None:
    body = {"type": "error", "error": {"type": kind_said, "message": message}, "request_id": "req_1"}
    caught = await failure(answers(status, body))
    assert caught.kind == kind
    assert caught.message.startswith(f"HTTP {status}: ")
    assert caught.may_be_billed is (status in (408, 504))


@pytest.mark.parametrize("code", ["enforced_spend_limit_reached", "contract_spend_limit_reached"])
async def test_a_spent_budget_is_not_a_rate_limit(code: str) -> None:
    error = {"type": "rate_limit_error", "message": "spent", "details": {"error_code": code}}
    assert (await failure(answers(429, {"type": "error", "error": error}))).kind == "refused"


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limited"), (529, "server"), (400, "request")])
async def test_waits_and_limits_of_a_refusal(status: int, kind: str) -> None:
    headers = {
        "retry-after": "3",
        "Date": "Wed, 21 Oct 2026 07:28:00 GMT",
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-10-21T07:28:12Z",
    }
    caught = await failure(answers(status, {"error": {"message": "wait"}}, headers))
    assert caught.kind == kind
    assert caught.retry_after_s == (None if status == 400 else 3.0)
    assert caught.limits == RateHeaders(requests_left=0, requests_limit=50)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": f"echo {KEY}"}}, "server"),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "later"}}, "rate_limited"),
        ({"error": "overloaded"}, "server"),
        ({}, "server"),
        ({"content": None}, "server"),
        ({"content": "text"}, "server"),
        ({"content": [{"text": "no type"}]}, "server"),
        ([], "server"),
        (b"", "server"),
        (b'{"content": [{"ty', "server"),
        (b"<html>gateway</html>", "server"),
        (b"\xff\xfe", "server"),
        (said("", "refusal"), "refused"),
        (said("half a", "refusal", stop_details={"type": "refusal", "explanation": f"No {KEY}."}), "refused"),
    ],
)
async def test_unusable_bodies_may_have_been_billed(body: object, kind: str) -> None:
    caught = await failure(answers(200, body))
    assert caught.kind == kind
    assert caught.may_be_billed is True
    assert caught.message.isprintable()


async def test_the_sdk_itself_does_not_retry() -> None:
    calls = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal calls
        calls += 1
        return web.json_response({"error": {"message": "again"}}, status=529, headers={"x-should-retry": "true"})

    await failure(handler)
    assert calls == 1


# The wire as data


def body(*content: Any, **fields: Any) -> bytes:
    return json.dumps({"content": list(content), "stop_reason": "end_turn", **fields}).encode()


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


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
