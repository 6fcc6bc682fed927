"""Every client against small servers on loopback: what is sent, which faults are distinguished, and what is bounded."""

from __future__ import annotations

import asyncio
import json
import resource
import zlib
from functools import partial
from typing import Any
from urllib.parse import unquote

import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port
from openai_server import (
    DECODING,
    EVENTS,
    KEY,
    KEY_ENV,
    MESSAGES,
    VENDORS,
    WHOLE,
    Handler,
    MakeModel,
    MakeVendor,
    answers,
    compatible,
    completion,
    deadline_after,
    delta,
    sends,
    served_model,
    served_raw_model,
    serving_in_thread,
)
from structlog.testing import capture_logs
from wire_checks import check_error

from moot.actors.models.interface import ModelError, RateHeaders
from moot.actors.models.probe import probe
from moot.actors.models.probe_calls import ProbeRequest
from moot.actors.models.retry import RetryPolicy, call_with_retries
from moot.protocols.errors import MissingKey, ModelUnavailable
from moot.protocols.messages import Message

pytestmark = pytest.mark.usefixtures("certificates_read_once", "vendor_key")

ASKED = [{"role": message.role, "content": message.content} for message in MESSAGES]
CHAT = {"model": "m", "messages": ASKED, "temperature": 0.3, "stream": False}
SENT = {
    "compatible": ("/v1/chat/completions", {**CHAT, "max_tokens": 9}),
    "openai": ("/v1/chat/completions", {**CHAT, "max_completion_tokens": 9}),
    "responses": (
        "/v1/responses",
        {"model": "m", "input": ASKED, "temperature": 0.3, "max_output_tokens": 9, "store": False, "stream": False},
    ),
    "anthropic": (
        "/v1/messages",
        {
            "model": "claude-opus-5-5",
            "max_tokens": 9,
            "system": ASKED[0]["content"],
            "messages": ASKED[1:],
            "stream": False,
        },
    ),
}
LIMITED = {
    "X-RateLimit-Remaining-Requests": "0", "x-ratelimit-limit-requests": "60",
    "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-limit": "60",
}  # fmt: skip
LIMITS = RateHeaders(requests_left=0, requests_limit=60)


async def failure(make: MakeVendor, handler: Handler) -> ModelError:
    async with served_model(make, handler) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert KEY not in str(caught.value) + repr(caught.value) + repr(caught.value.__cause__)
    return caught.value


@pytest.mark.parametrize("name", VENDORS)
async def test_request_as_sent_and_reply_as_read(name: str) -> None:
    seen: list[web.Request] = []
    bodies: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request)
        bodies.append(await request.json())
        return web.json_response(WHOLE[name], headers={"Set-Cookie": "a=b", **(LIMITED if len(seen) > 1 else {})})

    async with served_model(VENDORS[name], handler) as model:
        reply = await model.complete(MESSAGES, DECODING, step_key="fälle/1/a b\n%")
        limited = await model.complete(MESSAGES, DECODING, step_key="x" * 2000)
    assert (reply.text, reply.finish_reason, reply.http_attempts, reply.tokens) == ("No.", "stop", 1, None)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (7, 2)
    assert (reply.limits, limited.limits) == (None, LIMITS)
    assert (seen[0].path, bodies[0]) == SENT[name]
    assert seen[0].headers["Authorization"] == f"Bearer {KEY}"
    assert seen[0].headers["Content-Type"] == "application/json"
    assert seen[0].headers["X-Client-Request-Id"].isascii()
    assert unquote(seen[0].headers["X-Client-Request-Id"]) == "fälle/1/a b\n%"
    assert len(seen[1].headers["X-Client-Request-Id"]) == 512
    assert name != "compatible" or "Cookie" not in seen[1].headers


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

    async with served_model(make, handler) as model:
        calls = [model.complete(MESSAGES, DECODING, step_key=f"c/{n}") for n in range(120)]
        replies = await asyncio.wait_for(asyncio.gather(*calls), 60)
    assert {reply.text for reply in replies} == {"No."}


def test_one_model_in_two_loops(make: MakeModel) -> None:
    async def call() -> str:
        try:
            return (await model.complete(MESSAGES, DECODING, step_key="c")).text
        finally:
            await model.close()

    with serving_in_thread(answers(200, completion())) as port:
        model = make(f"http://127.0.0.1:{port}/v1")
        assert [asyncio.run(call()), asyncio.run(call())] == ["No.", "No."]


# What a server can do wrong


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limited"), (503, "server"), (400, "request")])
async def test_a_refusal_is_not_retried_and_has_its_kind_wait_and_limits(
    vendor: MakeVendor, status: int, kind: str
) -> None:
    calls = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal calls
        calls += 1
        headers = {"retry-after": "3", "x-should-retry": "true", **LIMITED}
        return web.json_response({"error": {"message": f"no, {KEY}"}}, status=status, headers=headers)

    caught = await failure(vendor, handler)
    assert (calls, caught.kind, caught.may_be_billed) == (1, kind, False)
    assert caught.retry_after_s == (None if status == 400 else 3.0)
    assert caught.limits == LIMITS


async def test_an_error_in_a_reply_may_be_billed(vendor: MakeVendor) -> None:
    caught = await failure(vendor, answers(200, {"error": {"message": f"overloaded, {KEY}"}}, LIMITED))
    check_error(caught)
    assert (caught.kind, caught.limits) == ("server", LIMITS)


BROKEN = [
    ("closed without a word", b"", "connection"),
    ("cut in the head", b"HTTP/1.1 200 OK\r\nContent-", "connection"),
    ("cut in the body", b'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"choices"', "connection"),
    ("cut in a chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{", "connection"),
    ("no HTTP", b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "server"),
    ("not gzip", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nxxxx", "connection"),
]


@pytest.mark.parametrize(("name", "answer", "kind"), BROKEN)
async def test_broken_http(vendor: MakeVendor, name: str, answer: bytes, kind: str) -> None:
    async with served_raw_model(vendor, answer) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert (caught.value.kind, caught.value.may_be_billed) == (kind, True)
    assert "400, message" not in caught.value.message, "no server answered that"


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
async def test_nobody_listens(vendor: MakeVendor, host: str) -> None:
    url = f"http://{host}:{unused_port()}"
    model = vendor(f"{url}/v1")
    with pytest.raises(ModelError, match=url) as caught:
        await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert (caught.value.kind, caught.value.may_be_billed) == ("connection", False)
    await model.close()


async def test_a_redirect_is_not_followed(vendor: MakeVendor) -> None:
    caught = await failure(vendor, answers(307, b"", {"Location": "/v1/elsewhere"}))
    assert caught.kind == "request"
    assert "redirect" in caught.message


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"], ids=["nothing", "half"])
async def test_a_deadline_closes_the_connection_of_a_server_that_never_answers(vendor: MakeVendor, sent: bytes) -> None:
    gone, asked = asyncio.Event(), asyncio.Event()
    async with served_raw_model(vendor, sent, gone, asked) as model:
        with pytest.raises(TimeoutError):
            async with deadline_after(asked):
                await model.complete(MESSAGES, DECODING, step_key="c/1/a")
        await asyncio.wait_for(gone.wait(), 10)


# A response that is too large ends the call, whatever the server calls it, and is not asked for again

LARGE = 8 * 2**20


def gzip_bomb() -> bytes:
    """The first 512 MiB of a gzip stream without end, of which no process ever holds more than one: each of its blocks
    is the same, as none refers to the one before."""
    stream = zlib.compressobj(wbits=31)
    first, other = (stream.compress(b" " * 2**20) + stream.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + 511 * other


BODIES = {
    "a large body": sends(b" " * LARGE),
    "a gzip bomb": sends(gzip_bomb(), headers={"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("what", BODIES)
async def test_a_reply_larger_than_the_bound_is_unusable(what: str, vendor: MakeVendor) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    caught = await failure(vendor, BODIES[what])
    assert (caught.kind, "larger than 2 MiB" in caught.message) == ("unparsable", True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024  # KiB, of a bomb of 512 MiB


@pytest.mark.parametrize(
    "line",
    [b"data: " + b"x" * LARGE, b": %0999d\n\ndata: {}\n\n" % 0 * (LARGE // 999)],
    ids=["line", "events"],
)
async def test_a_stream_without_end_is_unusable(line: bytes, make: MakeModel) -> None:
    async with served_model(make, sends(line, headers=EVENTS)) as model:
        with pytest.raises(ModelError, match="larger than 2 MiB"):
            async for _ in model.stream(MESSAGES, DECODING, step_key="k"):
                pass


async def test_the_list_of_models_is_bounded_too() -> None:
    async with served_model(compatible, sends(b" " * (LARGE + 1))) as model:
        with pytest.raises(ModelUnavailable, match="larger than 8 MiB"):
            await model.check()


# Keys


@pytest.mark.parametrize("name", VENDORS)
async def test_a_reply_with_the_key_is_not_recorded(name: str) -> None:
    for text in (f"your key is {KEY}", KEY):
        told = json.loads(json.dumps(WHOLE[name]).replace("No.", text))
        caught = await failure(VENDORS[name], answers(200, told))
        assert "holds the API key" in caught.message


async def test_a_stream_that_spells_the_key_in_pieces_is_not_recorded(make: MakeModel) -> None:
    pieces = [delta(piece) for piece in ("it is ", KEY[:3], KEY[3:5], KEY[5:], ".")]
    async with served_model(make, sends(*pieces, headers=EVENTS)) as model:
        with pytest.raises(ModelError, match="holds the API key"):
            async for _ in model.stream(MESSAGES, DECODING, step_key="k"):
                pass


async def test_key_is_never_shown(
    vendor: MakeVendor, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    policy = RetryPolicy(max_attempts=3, base_s=0, cap_s=0)
    echo = answers(503, {"error": {"message": f"echo: Bearer {KEY}"}})
    caplog.set_level("DEBUG")
    async with served_model(vendor, echo) as model:
        with capture_logs() as logs, pytest.raises(ModelError) as caught:
            await call_with_retries(policy, lambda: model.complete(MESSAGES, DECODING, step_key="c/1/a"))
        shown = repr(model) + repr(vars(model)) + repr(logs) + str(caught.value)
    assert len(logs) == 2
    assert KEY not in shown + caplog.text + "".join(capsys.readouterr())


async def test_key_is_missing_or_cannot_be_sent(vendor: MakeVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, f"{KEY}\nX-Evil: 1")
    with pytest.raises(MissingKey) as caught:
        await vendor("http://127.0.0.1:9/v1").check()
    assert KEY not in str(caught.value)
    monkeypatch.delenv(KEY_ENV)
    model = vendor("http://127.0.0.1:9/v1")
    with pytest.raises(MissingKey, match=f"export {KEY_ENV}="):
        await model.check()
    with pytest.raises(ModelError, match="refused: no API key"):
        await model.complete(MESSAGES, DECODING, step_key="c/1/a")


async def test_lone_surrogate_is_a_failed_request(vendor: MakeVendor) -> None:
    with pytest.raises(ModelError) as caught:
        await vendor("http://127.0.0.1:9/v1").complete([Message("user", "\ud800")], DECODING, step_key="c")
    assert caught.value.kind == "request"


# A wrong URL

PAGE = b"<!doctype html>" + b"<p>Not what you want</p>" * 30
ELSEWHERE = [
    (404, b'{"detail": "Not Found"}'),
    (404, PAGE),
    (405, b'{"detail": "Method Not Allowed"}'),
    (307, b""),
    (403, PAGE),
    (200, PAGE),
    (200, b"Ollama is running"),
    (200, b'{"status": "ok"}'),
    (200, b'{"message": "Welcome!"}'),
    (200, b'{"error": "Unexpected endpoint or method. (POST /chat/completions)"}'),
    (200, b'{"model": "m", "message": {"content": "No."}}'),
]


@pytest.mark.parametrize(("status", "body"), ELSEWHERE)
async def test_a_wrong_url_is_hinted_at_wherever_it_may_be_the_cause(
    vendor: MakeVendor, status: int, body: bytes
) -> None:
    """For Anthropic, to whose URL its SDK adds `/v1`, it is the other way round."""
    raw = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body)
    for suffix, hinted in (("", True), ("/v1", False)):
        async with served_raw_model(partial(_at, vendor, suffix), raw) as model:
            with pytest.raises(ModelError) as caught:
                await model.complete(MESSAGES, DECODING, step_key="k")
        assert ("/v1" in caught.value.message) is hinted, caught.value
        assert len(caught.value.message) <= 300


def _at(vendor: MakeVendor, suffix: str, url: str) -> Any:
    made: Any = vendor(url.removesuffix("/v1") + suffix)
    if type(made).__name__ == "AnthropicModel":  # its maker took the version away
        return type(made)("claude-opus-5-5", api_key_env="MOOT_TEST_KEY", base_url=url.removesuffix(suffix or "/"))
    return made


# check() of the compatible client, and the probe of both


@pytest.mark.parametrize("status", [200, 404, 405])
async def test_check_passes(status: int) -> None:
    async with served_model(compatible, answers(status, {"data": []})) as model:
        await model.check()


@pytest.mark.parametrize(("status", "said"), [(401, KEY_ENV), (403, KEY_ENV), (503, "HTTP 503"), (500, "HTTP 500")])
async def test_check_refuses(status: int, said: str) -> None:
    async with served_model(compatible, answers(status, {"error": {"message": KEY}})) as model:
        with pytest.raises(ModelUnavailable, match=said) as caught:
            await model.check()
    assert KEY not in str(caught.value)
    assert "/v1/models" in str(caught.value)


async def test_probe_of_a_server_that_never_answers(make: MakeModel) -> None:
    async def hangs(request: web.Request) -> web.Response:
        await asyncio.sleep(1)
        return web.Response()

    async with served_model(make, hangs) as model:
        with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.2 s"):
            await probe(model, ProbeRequest(DECODING, 0.2))
