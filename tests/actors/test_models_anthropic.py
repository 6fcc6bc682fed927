"""The Anthropic backend against small servers on loopback."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import unquote

import pytest
from aiohttp import web
from openai_server import Handler, answers, served
from structlog.testing import capture_logs

from moot.actors.models.anthropic_sdk import AnthropicModel
from moot.actors.models.interface import Model, ModelError, RateHeaders
from moot.actors.models.reply_schema import reply_schema
from moot.actors.models.retry import RetryPolicy, call_with_retries
from moot.actors.models.schema_dialects import json_schema
from moot.protocols.case import Image
from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import Position

pytestmark = pytest.mark.usefixtures("certificates_read_once")

KEY = "sk-ant-api03-very-secret-0123456789"
MESSAGES = [Message("system", "Be brief."), Message("user", "Can penguins fly?")]
DECODING = Decoding(temperature=0.3, top_p=0.9, max_tokens=9)
LATE, EARLY = "claude-opus-5-5", "claude-haiku-4-5"


def said(text: str = "No.", stop_reason: str = "end_turn", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 7, "output_tokens": 2}
    content = [{"type": "text", "text": text}]
    return {"type": "message", "content": content, "stop_reason": stop_reason, "usage": usage, **fields}


def make(url: str, model: str = LATE) -> Model:
    return AnthropicModel(model, api_key_env="MOOT_TEST_KEY", base_url=url.removesuffix("/v1"))


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOT_TEST_KEY", KEY)
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)


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
    async with served(make, handler) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert KEY not in str(caught.value) + repr(caught.value) + repr(caught.value.__cause__)
    return caught.value


async def test_request_as_sent_and_reply_as_read() -> None:
    listener = Listener()
    async with served(make, listener.answer) as model:
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
    async with served(partial(make, model=EARLY), listener.answer) as model:
        await model.complete(MESSAGES, decoding, step_key="c/1/a")
    assert {name: listener.bodies[0][name] for name in ("temperature", "top_p") if name in listener.bodies[0]} == sent
    assert listener.requests[0].headers["anthropic-version"] == "2023-06-01"


async def test_models_that_take_none_get_the_version_of_the_sdk() -> None:
    listener = Listener()
    async with served(make, listener.answer) as model:
        await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert listener.requests[0].headers["anthropic-version"] > "2023-06-01"


async def test_a_schema_is_sent_as_the_output_format() -> None:
    listener = Listener()
    async with served(make, listener.answer) as model:
        await model.complete(MESSAGES, DECODING, step_key="c/1/a", schema=reply_schema(Position, None))
    expected = {"format": {"type": "json_schema", "schema": json_schema(Position)}}
    assert listener.bodies[0]["output_config"] == expected
    assert list(listener.bodies[0]["output_config"]["format"]["schema"]["properties"]) == list(Position.model_fields)


async def test_images_go_before_the_text() -> None:
    listener = Listener()
    message = Message("user", "what?", (Image("image/png", b"\x00\x01"),))
    async with served(make, listener.answer) as model:
        await model.complete([message], DECODING, step_key="c/1/a")
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAE="}}
    assert listener.bodies[0]["messages"] == [{"role": "user", "content": [image, {"type": "text", "text": "what?"}]}]


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


async def test_limits_of_a_reply() -> None:
    headers = {"anthropic-ratelimit-tokens-limit": "9000", "anthropic-ratelimit-tokens-remaining": "8000"}
    async with served(make, answers(200, said(), headers)) as model:
        reply = await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert reply.limits == RateHeaders(tokens_left=8000, tokens_limit=9000)


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


async def test_key_is_never_shown(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    policy = RetryPolicy(max_attempts=3, base_s=0, cap_s=0)
    echo = answers(529, {"error": {"message": f"echo: Bearer {KEY}"}})
    with caplog.at_level("DEBUG"):
        async with served(make, echo) as model:
            with capture_logs() as logs, pytest.raises(ModelError) as caught:
                await call_with_retries(policy, lambda: model.complete(MESSAGES, DECODING, step_key="c/1/a"))
            shown = repr(model) + repr(vars(model)) + repr(logs) + str(caught.value)
    assert len(logs) == 2
    assert KEY not in shown + caplog.text + "".join(capsys.readouterr())


async def test_lone_surrogate_is_a_failed_request() -> None:
    with pytest.raises(ModelError) as caught:
        await make("http://127.0.0.1:9/v1").complete([Message("user", "\ud800")], DECODING, step_key="c")
    assert caught.value.kind == "request"
