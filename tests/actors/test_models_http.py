"""Both HTTP clients against small servers on loopback."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import unused_port
from loopback import Handler, MakeModel, answers, served, served_raw
from structlog.testing import capture_logs

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import Model, ModelError
from moot.actors.models.openai_sdk import OpenAIModel
from moot.actors.models.probe import probe
from moot.actors.models.retry import RetryPolicy, call_with_retries
from moot.protocols.case import Image
from moot.protocols.errors import MissingKey, ModelUnavailable
from moot.protocols.messages import Decoding, Message

KEY = "sk-very-secret-0123456789"
MESSAGES = [Message("system", "Be brief."), Message("user", "Can penguins fly?")]
DECODING = Decoding(temperature=0.3, top_p=None, max_tokens=9)
WITH_LOGPROBS = Decoding(top_logprobs=2)


def completion(text: str | None = "No.", **choice: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    return {"choices": [{"message": message, "finish_reason": "stop", **choice}], "usage": usage}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    structlog.reset_defaults()  # a test before may have set a level at which retries are not logged
    monkeypatch.setenv("MOOT_TEST_KEY", KEY)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["compatible", "openai"])
def make(request: pytest.FixtureRequest) -> MakeModel:
    if request.param == "compatible":
        return lambda url: CompatibleModel(url, "m", api_key_env="MOOT_TEST_KEY")
    return lambda url: OpenAIModel("m", api_key_env="MOOT_TEST_KEY", base_url=url)


async def failure(make: MakeModel, handler: Handler, decoding: Decoding = DECODING) -> ModelError:
    async with served(make, handler) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(MESSAGES, decoding, step_key="c/1/a")
    assert KEY not in str(caught.value) + repr(caught.value) + repr(caught.value.__cause__)
    return caught.value


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


async def test_logprobs_and_images(make: MakeModel) -> None:
    bodies: list[dict[str, Any]] = []
    token = {"token": "No.", "logprob": -0.5, "bytes": [78, 111, 46]}
    content = [{**token, "top_logprobs": [{"token": "No.", "logprob": -0.5}, {"token": "Yes", "logprob": -1}]}]

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        return web.json_response(completion(logprobs={"content": content}))

    message = Message("user", "what?", (Image("image/png", b"\x00\x01"),))
    async with served(make, handler) as model:
        reply = await model.complete([message], WITH_LOGPROBS, step_key="c/1/a")
    assert bodies[0]["logprobs"] is True
    assert bodies[0]["top_logprobs"] == 2
    parts = bodies[0]["messages"][0]["content"]
    assert parts[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAE="}}
    assert reply.tokens is not None
    np.testing.assert_allclose(reply.tokens.alt_logprob, [[-0.5, -1.0]])
    assert reply.tokens.alt_tokens == ["No.", "Yes"]


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "bad", "code": None}, "request"),
        (400, {"message": "too long", "code": "context_length_exceeded"}, "context_length"),
        (400, {"message": "This model's maximum context length is 8 tokens", "code": 400}, "context_length"),
        (400, {"message": "no", "code": "content_filter"}, "content_filter"),
        (401, {"message": f"Incorrect API key provided: {KEY}"}, "refused"),
        (403, {"message": "no"}, "refused"),
        (404, {"message": "no such model"}, "request"),
        (408, {"message": "slow"}, "server"),
        (409, {"message": "locked"}, "server"),
        (422, {"message": "no"}, "request"),
        (429, {"message": "slow down"}, "rate_limited"),
        (429, {"message": "pay first", "code": "insufficient_quota"}, "refused"),
        (500, {"message": "oops"}, "server"),
        (503, {"message": "loading"}, "server"),
    ],
)
async def test_error_status(make: MakeModel, status: int, error: dict[str, Any], kind: str) -> None:
    caught = await failure(make, answers(status, {"error": error}))
    assert caught.kind == kind
    assert caught.message.startswith(f"HTTP {status}: ")


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry-After": "3"}, 3, 3),
        ({"Retry-After": "3", "retry-after-ms": "250"}, 0.25, 0.25),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
        ({"Retry-After": "-1"}, 0, 0),
    ],
)
async def test_retry_after(make: MakeModel, headers: dict[str, str], low: float, high: float) -> None:
    caught = await failure(make, answers(429, {"error": {"message": "wait"}}, headers))
    assert caught.retry_after_s is not None
    assert low <= caught.retry_after_s <= high


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, {"error": {"message": f"upstream said {KEY}", "code": 429}}, "rate_limited"),
        (200, {"error": "overloaded"}, "server"),
        (200, {"choices": []}, "server"),
        (200, {}, "server"),
        (200, b"", "server"),
        (200, b'{"choices": [{"mess', "server"),
        (200, b"<html>gateway</html>", "server"),
        (200, b"\xff\xfe", "server"),
        (200, {"choices": "none"}, "server"),
        (200, completion("", finish_reason="content_filter"), "content_filter"),
        (200, {"choices": [{"message": {"content": None, "refusal": "I will not."}}]}, "refused"),
        (502, b"<html>bad\x1b[31m gateway</html>", "server"),
        (400, b"", "request"),
        (400, [{"error": {"message": "in a list", "code": "context_length_exceeded"}}], "context_length"),
    ],
)
async def test_unusable_bodies(make: MakeModel, status: int, body: object, kind: str) -> None:
    caught = await failure(make, answers(status, body), WITH_LOGPROBS)
    assert caught.kind == kind
    assert caught.message.isprintable()


async def test_long_message_is_cut(make: MakeModel) -> None:
    caught = await failure(make, answers(500, {"error": {"message": "x" * 5000}}))
    assert len(caught.message) == 300


async def test_redirect_is_not_followed(make: MakeModel) -> None:
    calls: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        calls.append(request.path)
        raise web.HTTPTemporaryRedirect("/v1/elsewhere")

    caught = await failure(make, handler)
    assert caught.kind == "request"
    assert "redirect" in caught.message
    assert calls == ["/v1/chat/completions"]


async def test_nobody_listens(make: MakeModel) -> None:
    model = make(f"http://127.0.0.1:{unused_port()}/v1")
    with pytest.raises(ModelError) as caught:
        await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert caught.value.kind == "connection"
    await model.close()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", "connection"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"choices"', "connection"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "server"),
    ],
)
async def test_broken_http(make: MakeModel, answer: bytes, kind: str) -> None:
    async with served_raw(make, answer) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert caught.value.kind == kind


async def test_cancelling_closes_the_request(make: MakeModel) -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        while await reader.read(1 << 16):
            pass
        gone.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    model = make(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    call = asyncio.ensure_future(model.complete(MESSAGES, DECODING, step_key="c/1/a"))
    await asyncio.wait_for(arrived.wait(), 10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(gone.wait(), 10)
    await model.close()
    server.close()


async def test_many_calls_at_once(make: MakeModel) -> None:
    """No hidden limit on connections: 150 calls wait for each other."""
    together = asyncio.Event()
    waiting = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal waiting
        waiting += 1
        if waiting == 150:
            together.set()
        await together.wait()
        return web.json_response(completion())

    async with served(make, handler) as model:
        calls = [model.complete(MESSAGES, DECODING, step_key=f"c/{n}") for n in range(150)]
        replies = await asyncio.wait_for(asyncio.gather(*calls), 60)
    assert {reply.text for reply in replies} == {"No."}


async def test_key_is_never_shown(make: MakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    policy = RetryPolicy(max_attempts=3, base_s=0, cap_s=0)
    echo = answers(503, {"error": {"message": f"echo: Bearer {KEY}"}})
    async with served(make, echo) as model:
        with capture_logs() as logs, pytest.raises(ModelError) as caught:
            await call_with_retries(policy, lambda: model.complete(MESSAGES, DECODING, step_key="c/1/a"))
        shown = repr(model) + repr(vars(model)) + repr(logs) + str(caught.value)
    assert len(logs) == 2
    assert KEY not in shown + "".join(capsys.readouterr())


async def test_key_is_missing(make: MakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOOT_TEST_KEY")
    model = make("http://127.0.0.1:9/v1")
    with pytest.raises(MissingKey, match="export MOOT_TEST_KEY="):
        await model.check()
    with pytest.raises(ModelError, match="refused: no API key"):
        await model.complete(MESSAGES, DECODING, step_key="c/1/a")


async def test_key_that_cannot_be_sent(make: MakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOT_TEST_KEY", f"{KEY}\nX-Evil: 1")
    with pytest.raises(MissingKey) as caught:
        await make("http://127.0.0.1:9/v1").check()
    assert KEY not in str(caught.value)


async def test_lone_surrogate_is_a_failed_request(make: MakeModel) -> None:
    with pytest.raises(ModelError) as caught:
        await make("http://127.0.0.1:9/v1").complete([Message("user", "\ud800")], DECODING, step_key="c")
    assert caught.value.kind == "request"


def test_one_model_in_two_loops(make: MakeModel) -> None:
    model: list[Model] = []

    async def call() -> str:
        async with served(make, answers(200, completion())) as served_model:
            model.append(served_model)
            return (await served_model.complete(MESSAGES, DECODING, step_key="c")).text

    assert [asyncio.run(call()), asyncio.run(call())] == ["No.", "No."]


# check() of the compatible client, and the probe of both


def compatible(url: str) -> CompatibleModel:
    return CompatibleModel(url, "m", api_key_env="MOOT_TEST_KEY")


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


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
async def test_check_names_the_url_that_is_not_reachable(host: str) -> None:
    url = f"http://{host}:{unused_port()}/v1"
    model = compatible(url)
    with pytest.raises(ModelUnavailable, match=f"cannot reach {url}/models"):
        await model.check()
    await model.close()


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (answers(200, completion()), False),
        (answers(200, completion("", logprobs={"content": []})), False),
        (answers(400, {"error": {"message": "logprobs is not supported"}}), False),
        (
            answers(
                200,
                completion(
                    "Yes",
                    logprobs={
                        "content": [{"token": "Yes", "logprob": -1, "top_logprobs": [{"token": "Yes", "logprob": -1}]}]
                    },
                ),
            ),
            True,
        ),
    ],
)
async def test_probe(make: MakeModel, handler: Handler, expected: bool) -> None:
    async with served(make, handler) as model:
        assert await probe(model, WITH_LOGPROBS, timeout_s=5.0) is expected


async def test_probe_of_an_unknown_model(make: MakeModel) -> None:
    async with served(make, answers(404, {"error": {"message": "no model 'm'"}})) as model:
        with pytest.raises(ModelUnavailable, match="no model 'm'"):
            await probe(model, DECODING, timeout_s=5.0)


@pytest.mark.parametrize(("status", "said"), [(401, "HTTP 401"), (404, "HTTP 404"), (400, "HTTP 400")])
async def test_probe_refuses_what_every_call_would_meet(make: MakeModel, status: int, said: str) -> None:
    async with served(make, answers(status, {"error": {"message": f"no {KEY}"}})) as model:
        with pytest.raises(ModelUnavailable, match=said) as caught:
            await probe(model, DECODING, timeout_s=5.0)
    assert KEY not in str(caught.value)


async def test_probe_of_a_server_that_never_answers(make: MakeModel) -> None:
    async def hangs(request: web.Request) -> web.Response:
        await asyncio.sleep(1)
        return web.Response()

    async with served(make, hangs) as model:
        with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.2 s"):
            await probe(model, DECODING, timeout_s=0.2)
