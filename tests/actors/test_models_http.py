"""Both HTTP clients against small servers on loopback."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import pytest
from aiohttp import web
from openai_server import (
    DECODING,
    KEY,
    MESSAGES,
    MakeModel,
    MakeVendor,
    answers,
    compatible,
    completion,
    served,
)
from structlog.testing import capture_logs

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import Model, ModelError
from moot.actors.models.probe import probe
from moot.actors.models.retry import RetryPolicy, call_with_retries
from moot.actors.models.trial import Trial
from moot.protocols.errors import MissingKey, ModelUnavailable
from moot.protocols.messages import Message

pytestmark = pytest.mark.usefixtures("certificates_read_once", "vendor_key")


async def test_request_as_sent_and_reply_as_read(make: MakeModel) -> None:
    seen: list[web.Request] = []
    bodies: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request)
        bodies.append(await request.json())
        return web.json_response(completion(), headers={"Set-Cookie": "a=b"})

    async with served(make, handler) as model:
        reply = await model.complete(MESSAGES, DECODING, step_key="fälle/1/a b\n%")
        await model.complete(MESSAGES, DECODING, step_key="x" * 2000)
    assert (reply.text, reply.finish_reason, reply.http_attempts, reply.tokens) == ("No.", "stop", 1, None)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (7, 2)
    first, second = seen
    assert first.path == "/v1/chat/completions"
    assert first.headers["Authorization"] == f"Bearer {KEY}"
    assert first.headers["X-Client-Request-Id"].isascii()
    assert unquote(first.headers["X-Client-Request-Id"]) == "fälle/1/a b\n%"
    assert len(second.headers["X-Client-Request-Id"]) == 512
    length_field = "max_tokens" if isinstance(model, CompatibleModel) else "max_completion_tokens"
    assert bodies[0] == {
        "model": "m",
        "messages": [{"role": m.role, "content": m.content} for m in MESSAGES],
        "temperature": 0.3,
        length_field: 9,
    }
    if isinstance(model, CompatibleModel):
        assert "Cookie" not in second.headers


async def test_many_calls_at_once(make: MakeModel) -> None:
    """No hidden limit on connections: 120 calls wait for each other."""
    together = asyncio.Event()
    waiting = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal waiting
        waiting += 1
        if waiting == 120:
            together.set()
        await together.wait()
        return web.json_response(completion())

    async with served(make, handler) as model:
        calls = [model.complete(MESSAGES, DECODING, step_key=f"c/{n}") for n in range(120)]
        replies = await asyncio.wait_for(asyncio.gather(*calls), 60)
    assert {reply.text for reply in replies} == {"No."}


async def test_key_is_never_shown(
    vendor: MakeVendor, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    policy = RetryPolicy(max_attempts=3, base_s=0, cap_s=0)
    echo = answers(503, {"error": {"message": f"echo: Bearer {KEY}"}})
    caplog.set_level("DEBUG")
    async with served(vendor, echo) as model:
        with capture_logs() as logs, pytest.raises(ModelError) as caught:
            await call_with_retries(policy, lambda: model.complete(MESSAGES, DECODING, step_key="c/1/a"))
        shown = repr(model) + repr(vars(model)) + repr(logs) + str(caught.value)
    assert len(logs) == 2
    assert KEY not in shown + caplog.text + "".join(capsys.readouterr())


async def test_key_is_missing(vendor: MakeVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOOT_TEST_KEY")
    model = vendor("http://127.0.0.1:9/v1")
    with pytest.raises(MissingKey, match="export MOOT_TEST_KEY="):
        await model.check()
    with pytest.raises(ModelError, match="refused: no API key"):
        await model.complete(MESSAGES, DECODING, step_key="c/1/a")


async def test_key_that_cannot_be_sent(vendor: MakeVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOT_TEST_KEY", f"{KEY}\nX-Evil: 1")
    with pytest.raises(MissingKey) as caught:
        await vendor("http://127.0.0.1:9/v1").check()
    assert KEY not in str(caught.value)


async def test_lone_surrogate_is_a_failed_request(vendor: MakeVendor) -> None:
    with pytest.raises(ModelError) as caught:
        await vendor("http://127.0.0.1:9/v1").complete([Message("user", "\ud800")], DECODING, step_key="c")
    assert caught.value.kind == "request"


def test_one_model_in_two_loops(make: MakeModel) -> None:
    model: list[Model] = []

    async def call() -> str:
        async with served(make, answers(200, completion())) as served_model:
            model.append(served_model)
            return (await served_model.complete(MESSAGES, DECODING, step_key="c")).text

    assert [asyncio.run(call()), asyncio.run(call())] == ["No.", "No."]


# check() of the compatible client, and the probe of both


@pytest.mark.parametrize("status", [200, 404, 405])
async def test_check_passes(status: int) -> None:
    async with served(compatible, answers(status, {"data": []})) as model:
        await model.check()


@pytest.mark.parametrize(
    ("status", "said"), [(401, "MOOT_TEST_KEY"), (403, "MOOT_TEST_KEY"), (503, "HTTP 503"), (500, "HTTP 500")]
)
async def test_check_refuses(status: int, said: str) -> None:
    async with served(compatible, answers(status, {"error": {"message": KEY}})) as model:
        with pytest.raises(ModelUnavailable, match=said) as caught:
            await model.check()
    assert KEY not in str(caught.value)
    assert "/v1/models" in str(caught.value)


async def test_probe_of_a_server_that_never_answers(make: MakeModel) -> None:
    async def hangs(request: web.Request) -> web.Response:
        await asyncio.sleep(1)
        return web.Response()

    async with served(make, hangs) as model:
        with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.2 s"):
            await probe(model, Trial(DECODING, 0.2))
