"""What both OpenAI backends make of bad input: each row of the tables is one fault, and what it must come to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from openai_server import (
    DECODING,
    KEY,
    MESSAGES,
    WITH_LOGPROBS,
    Handler,
    MakeModel,
    answers,
    completion,
    deadline_after,
    served,
    served_raw,
    simulated_server,
    stats_of,
)

from moot.actors.models.interface import ModelError, ModelReply, RateHeaders
from moot.actors.models.retry import RetryPolicy, call_with_retries
from moot.protocols.messages import Decoding, Message

pytestmark = pytest.mark.usefixtures("certificates_read_once", "vendor_key")

LIMITS = {"X-RateLimit-Remaining-Requests": "0", "x-ratelimit-limit-requests": "60"}


def error(message: str, code: object = None) -> dict[str, Any]:
    return {"error": {"message": message, "code": code}}


# A status line that says no: nothing was billed.

STATUS = [
    (400, error("bad"), "request"),
    (400, error("too long", "context_length_exceeded"), "context_length"),
    (400, error("This model's maximum context length is 8 tokens", 400), "context_length"),
    (400, error("no", "content_filter"), "content_filter"),
    (400, b"", "request"),
    (400, [error("in a list", "context_length_exceeded")], "context_length"),
    (401, error(f"Incorrect API key provided: {KEY}"), "refused"),
    (403, error("no"), "refused"),
    (404, error("no such model"), "request"),
    (408, error("slow"), "server"),
    (409, error("locked"), "server"),
    (422, error("no"), "request"),
    (429, error("slow down"), "rate_limited"),
    (429, error("pay first", "insufficient_quota"), "refused"),
    (500, error("oops"), "server"),
    (502, b"<html>bad\x1b[31m gateway</html>", "server"),
    (503, error("loading"), "server"),
]

# 200, and yet no usable reply: the server took the request, so it may bill it.

TOKENS = [{"token": "No", "logprob": -0.1}, {"token": ".", "logprob": -0.2}]

BODIES = [
    ("an error object", error(f"upstream said {KEY}", 429), "rate_limited"),
    ("an error text", {"error": "overloaded"}, "server"),
    ("no choices", {"choices": []}, "server"),
    ("an empty object", {}, "server"),
    ("nothing", b"", "server"),
    ("cut JSON", b'{"choices": [{"mess', "server"),
    ("HTML", b"<html>gateway</html>", "server"),
    ("no text at all", b"\xff\xfe", "server"),
    ("choices that are a text", {"choices": "none"}, "server"),
    ("a filtered reply", completion("", finish_reason="content_filter"), "content_filter"),
    ("a filtered beginning", completion("Penguins", finish_reason="content_filter"), "content_filter"),
    ("a refusal", {"choices": [{"message": {"content": None, "refusal": "I will not."}}]}, "refused"),
    ("a token without text", completion(logprobs={"content": [{"logprob": -1}]}), "server"),
]

# Bytes that are no HTTP response, or only the beginning of one.

BROKEN = [
    ("closed without a word", b"", "connection"),
    ("cut in the head", b"HTTP/1.1 200 OK\r\nContent-", "connection"),
    ("cut in the body", b'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"choices"', "connection"),
    ("cut in a chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{", "connection"),
    ("no HTTP", b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "server"),
    (
        "not what it was packed as",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nxxxx",
        "connection",
    ),
]


NAN, INF = float("nan"), float("inf")


async def failure(make: MakeModel, handler: Handler, decoding: Decoding = DECODING) -> ModelError:
    async with served(make, handler) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(MESSAGES, decoding, step_key="c/1/a")
    assert KEY not in str(caught.value) + repr(caught.value) + repr(caught.value.__cause__)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) <= 300
    return caught.value


@pytest.mark.parametrize(("status", "body", "kind"), STATUS)
async def test_status(make: MakeModel, status: int, body: object, kind: str) -> None:
    caught = await failure(make, answers(status, body, LIMITS))
    assert (caught.kind, caught.may_be_billed) == (kind, False)
    assert caught.message.startswith(f"HTTP {status}")
    assert caught.limits == RateHeaders(requests_left=0, requests_limit=60)


@pytest.mark.parametrize(("name", "body", "kind"), BODIES)
async def test_a_body_that_is_no_reply(make: MakeModel, name: str, body: object, kind: str) -> None:
    caught = await failure(make, answers(200, body, LIMITS), WITH_LOGPROBS)
    assert (caught.kind, caught.may_be_billed) == (kind, True)
    assert caught.limits is not None


@pytest.mark.parametrize(("name", "answer", "kind"), BROKEN)
async def test_broken_http(make: MakeModel, name: str, answer: bytes, kind: str) -> None:
    async with served_raw(make, answer) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert (caught.value.kind, caught.value.may_be_billed) == (kind, True)
    assert "400, message" not in caught.value.message, "no server answered that"


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
async def test_nobody_listens(make: MakeModel, host: str) -> None:
    url = f"http://{host}:{unused_port()}/v1"
    model = make(url)
    with pytest.raises(ModelError, match=url) as caught:
        await model.complete(MESSAGES, DECODING, step_key="c/1/a")
    assert (caught.value.kind, caught.value.may_be_billed) == ("connection", False)
    await model.close()


async def test_a_redirect_is_not_followed(make: MakeModel) -> None:
    caught = await failure(make, answers(307, b"", {"Location": "/v1/elsewhere"}))
    assert caught.kind == "request"
    assert "redirect" in caught.message


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"], ids=["nothing", "half"])
async def test_a_deadline_closes_the_connection_of_a_server_that_never_answers(make: MakeModel, sent: bytes) -> None:
    gone, asked = asyncio.Event(), asyncio.Event()
    async with served_raw(make, sent, gone, asked) as model:
        with pytest.raises(TimeoutError):
            async with deadline_after(asked):
                await model.complete(MESSAGES, DECODING, step_key="c/1/a")
        await asyncio.wait_for(gone.wait(), 10)


async def test_storms_of_429_and_500_cost_nothing_twice(make: MakeModel) -> None:
    """Many calls at once, of which most fail at first: each is answered and counted once, by the server as by us."""
    policy = RetryPolicy(max_attempts=1000, total_s=60.0, base_s=0.01, cap_s=0.1)
    with simulated_server(None, seed=3, fail_rate=0.4, rate_limit=2400.0) as port:
        model = make(f"http://127.0.0.1:{port}/v1")

        async def call(number: int) -> ModelReply:
            messages = [Message("user", f"Say {number}")]
            return await call_with_retries(policy, lambda: model.complete(messages, DECODING, step_key=f"c/{number}"))

        replies = await asyncio.wait_for(asyncio.gather(*(call(number) for number in range(40))), 60)
        await model.close()
        stats = await asyncio.to_thread(stats_of, port)
    assert stats["calls"] == 40
    assert stats["limited"] > 0
    assert stats["failed"] > 0
    assert sum(reply.usage.prompt_tokens or 0 for reply in replies) == stats["prompt_tokens"]
    assert sum(reply.usage.completion_tokens or 0 for reply in replies) == stats["completion_tokens"]
    assert sum(reply.http_attempts for reply in replies) == 40 + stats["failed"] + stats["limited"]
