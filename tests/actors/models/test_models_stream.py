"""Replies read while they are written, from both OpenAI backends."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from openai_server import (
    DECODING,
    EVENTS,
    KEY,
    MESSAGES,
    Backend,
    Handler,
    MakeModel,
    answers,
    completion,
    deadline_after,
    delta,
    event,
    sends,
    served_model,
    served_raw_model,
    simulated_server,
)

from moot.actors.models.interface import ModelError, RateHeaders, StreamPiece
from moot.actors.models.openai_stream import EventParser, read_reply
from moot.protocols.messages import Decoding, Message, Usage

pytestmark = pytest.mark.usefixtures("certificates_read_once", "vendor_key")

DONE = b"data: [DONE]\n\n"
STOP = {"delta": {}, "finish_reason": "stop"}
USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}


def streams(*chunks: bytes, headers: dict[str, str] | None = None) -> Handler:
    return sends(*chunks, headers={**EVENTS, **(headers or {})})


async def read(
    model: Backend, decoding: Decoding = DECODING, into: list[StreamPiece] | None = None
) -> list[StreamPiece]:
    """All pieces; `into` holds those that came before a failure."""
    pieces = [] if into is None else into
    async for piece in model.stream(MESSAGES, decoding, step_key="c/1/a"):
        pieces.append(piece)
    return pieces


async def broken(make: MakeModel, *chunks: bytes) -> tuple[list[StreamPiece], ModelError]:
    """What came of a stream, and how it failed."""
    pieces: list[StreamPiece] = []
    async with served_model(make, streams(*chunks, headers={"x-ratelimit-remaining-tokens": "9"})) as model:
        with pytest.raises(ModelError) as caught:
            await read(model, into=pieces)
    assert caught.value.may_be_billed
    assert caught.value.limits == RateHeaders(tokens_left=9)
    return pieces, caught.value


async def test_the_pieces_of_a_reply(make: MakeModel) -> None:
    bodies: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        chunks = (delta(""), delta("No"), delta("."), event({"choices": [STOP]}), event(USAGE), DONE)
        return await streams(*chunks, headers={"x-ratelimit-limit-requests": "5"})(request)

    async with served_model(make, handler) as model:
        pieces = await read(model)
        assert model.capabilities.streaming
    assert [piece.text for piece in pieces] == ["No", ".", "", ""]
    assert [piece.finish_reason for piece in pieces] == ["", "", "stop", ""]
    assert [piece.usage for piece in pieces] == [None, None, None, Usage(7, 2)]
    assert [piece.limits for piece in pieces] == [RateHeaders(requests_limit=5), None, None, None]
    assert bodies[0]["stream"] is True
    assert bodies[0]["stream_options"] == {"include_usage": True}


async def test_as_much_as_a_whole_reply(make: MakeModel) -> None:
    """A stream of `moot simulate` joins to the reply that it gives in one."""
    decoding = Decoding(top_logprobs=2, max_tokens=60)
    with simulated_server(None, seed=4) as port:
        model = make(f"http://127.0.0.1:{port}/v1")
        messages = [Message("user", "Say something long about penguins.")]
        whole = await model.complete(messages, decoding, step_key="c/1/a")
        pieces = [piece async for piece in model.stream(messages, decoding, step_key="c/1/a")]
        await model.close()
    assert len(pieces) > 3
    assert "".join(piece.text for piece in pieces) == whole.text
    assert pieces[-1].usage == whole.usage
    assert [piece.finish_reason for piece in pieces if piece.finish_reason] == [whole.finish_reason]
    assert whole.tokens is not None
    parts = [piece.tokens for piece in pieces if piece.tokens is not None]
    assert list(itertools.chain.from_iterable(part.tokens for part in parts)) == whole.tokens.tokens
    np.testing.assert_array_equal(np.concatenate([part.alt_logprob for part in parts]), whole.tokens.alt_logprob)


async def test_a_server_that_does_not_stream(make: MakeModel) -> None:
    async with served_model(make, answers(200, completion())) as model:
        assert await read(model) == [StreamPiece("No.", None, "stop", Usage(7, 2))]


async def test_closing_early_closes_the_response(make: MakeModel) -> None:
    gone = asyncio.Event()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    first = delta("No")
    async with served_raw_model(make, head + b"%x\r\n%b\r\n" % (len(first), first), gone) as model:
        async with aclosing(model.stream(MESSAGES, DECODING, step_key="c/1/a")) as pieces:
            async for piece in pieces:
                assert piece.text == "No"
                break
        await asyncio.wait_for(gone.wait(), 10)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: wait\n\n"])
async def test_a_deadline_closes_the_response(make: MakeModel, sent: bytes) -> None:
    gone, asked = asyncio.Event(), asyncio.Event()
    async with served_raw_model(make, sent, gone, asked) as model:
        with pytest.raises(TimeoutError):
            async with deadline_after(asked):
                await read(model)
        await asyncio.wait_for(gone.wait(), 10)


FAULTS = [
    ("no end", (delta("No"),), ["No"], "connection"),
    ("nothing at all", (), [], "connection"),
    ("only its end mark", (DONE,), [], "connection"),
    ("an event that is cut", (delta("No"), b'data: {"choices"'), ["No"], "connection"),
    ("an event that is no JSON", (delta("No"), b"data: <html>\n\n"), ["No"], "server"),
    ("an event that is no object", (b"data: 7\n\n",), [], "server"),
    ("an error", (delta("No"), event({"error": {"message": f"no {KEY}", "code": 429}})), ["No"], "rate_limited"),
    ("an error as a text", (event({"error": "overloaded"}),), [], "server"),
    (
        "a filter",
        (delta("No"), event({"choices": [STOP | {"finish_reason": "content_filter"}]})),
        ["No"],
        "content_filter",
    ),
    ("a refusal", (event({"choices": [{"delta": {"refusal": "No."}}]}), event({"choices": [STOP]})), [], "refused"),
]


@pytest.mark.parametrize(("name", "chunks", "came", "kind"), FAULTS)
async def test_a_stream_with_something_wrong(
    make: MakeModel, name: str, chunks: tuple[bytes, ...], came: list[str], kind: str
) -> None:
    pieces, failed = await broken(make, *chunks)
    assert [piece.text for piece in pieces] == came
    assert failed.kind == kind
    assert KEY not in str(failed)


async def test_a_stream_that_is_refused(make: MakeModel) -> None:
    refused = answers(429, {"error": {"message": "wait"}}, {"retry-after-ms": "20", "x-ratelimit-limit-tokens": "9"})
    async with served_model(make, refused) as model:
        with pytest.raises(ModelError) as caught:
            await read(model)
    failed = caught.value
    assert (failed.kind, failed.retry_after_s, failed.may_be_billed) == ("rate_limited", 0.02, False)
    assert failed.limits == RateHeaders(tokens_limit=9)


# The events themselves


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata:  b\r\r", [b"a", b" b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b": ping\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", [b"a"]),
        (b"data: a\n\ndata: b\n", [b"a"]),
        (b"data\ndata: a\n\n", [b"\na"]),
        (b"\n\n\n", []),
        (b"", []),
    ],
)
def test_events(raw: bytes, expected: list[bytes]) -> None:
    assert list(EventParser().feed(raw)) == expected
    one_by_one = EventParser()
    assert [data for byte in raw for data in one_by_one.feed(bytes([byte]))] == expected


lines = st.sampled_from([b"data: a", b"data: {}", b"data:", b": c", b"id: 1", b"", b"", b"x"])
ends = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(lines, max_size=12), ends, st.lists(st.integers(0, 120), max_size=6))
def test_events_do_not_hang_on_how_they_are_split(parts: list[bytes], end: bytes, cuts: list[int]) -> None:
    raw = b"".join(part + end for part in parts)
    parser = EventParser()
    found: list[bytes] = []
    for start, stop in itertools.pairwise([0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]):
        found += parser.feed(raw[start:stop])
    assert found == list(EventParser().feed(b"".join(part + b"\n" for part in parts)))


def test_a_message_behind_the_pieces_that_repeats_them_is_not_added() -> None:
    repeated = event({"choices": [{"message": {"content": "No"}, "finish_reason": "stop"}]})
    assert read_reply(delta("No") + repeated, DECODING).text == read_reply(repeated, DECODING).text == "No"


def test_a_last_event_counts_without_the_empty_line_behind_it() -> None:
    body = (delta("No") + event({"choices": [STOP]})).rstrip(b"\n")
    assert (read_reply(body, DECODING).text, read_reply(body, DECODING).finish_reason) == ("No", "stop")
