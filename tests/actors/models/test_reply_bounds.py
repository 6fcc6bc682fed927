"""What a server sends beyond the tokens that it was asked for is not received: cut and marked on every wire."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from openai_server import (
    BACKENDS,
    DECODING,
    EVENTS,
    MESSAGES,
    VENDORS,
    Handler,
    answers,
    completion,
    delta,
    event,
    served_model,
    token,
)

from moot.actors.models.interface import ModelError, ModelReply, StreamingModel, StreamPiece
from moot.actors.models.openai_stream import EVENT_STREAM, read_pieces, read_reply
from moot.actors.models.reply_bounds import bounded_reply, most_bytes, most_characters
from moot.actors.models.streamed_reply import joined_reply
from moot.actors.models.wire_json import closed_body
from moot.protocols.messages import Decoding, Usage

pytestmark = pytest.mark.usefixtures("vendor_key")

MOST = most_characters(DECODING.max_tokens)

BEGINNINGS = {
    "compatible": b'{"choices":[{"message":{"role":"assistant","content":"',
    "openai": b'{"choices":[{"message":{"role":"assistant","content":"',
    "responses": b'{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"',
    "anthropic": b'{"content":[{"type":"text","text":"',
}
"""Beginning of a response by client, up to the reply's text."""


def endless(beginning: bytes, again: bytes, gone: asyncio.Event, headers: dict[str, str] | None = None) -> Handler:
    """Handler that never stops sending; it sets `gone` when the client closes the connection."""

    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        try:
            await response.write(beginning)
            while True:
                await response.write(again)
                await asyncio.sleep(0)
        finally:
            gone.set()

    return handler


@pytest.mark.parametrize("name", VENDORS)
async def test_of_a_reply_without_end_the_beginning_is_kept_and_the_connection_closed(name: str) -> None:
    gone = asyncio.Event()
    async with served_model(VENDORS[name], endless(BEGINNINGS[name], b"no " * 2**14, gone)) as model:
        reply = await model.complete(MESSAGES, DECODING, step_key="k")
        await asyncio.wait_for(gone.wait(), 10)
    assert (len(reply.text), reply.text[:6]) == (MOST, "no no ")
    assert (reply.finish_reason, reply.overlong, reply.usage, reply.tokens) == ("length", True, Usage(), None)


async def streamed(model: StreamingModel) -> ModelReply:
    async with aclosing(model.stream(MESSAGES, DECODING, step_key="k")) as pieces:
        return joined_reply([piece async for piece in pieces])


STREAMS = {
    "pieces": (delta("It "), delta("rained. ") * 999),
    "reasoning": (delta("It "), event({"choices": [{"delta": {"reasoning": "hm " * 999}}]}) * 99),
    "one piece": (delta("It "), b" " * 2**16),
    "no stream": (BEGINNINGS["openai"], b"no " * 2**14),
}


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("what", STREAMS)
async def test_a_stream_without_end_is_left_where_its_reply_is_too_long(name: str, what: str) -> None:
    gone = asyncio.Event()
    async with served_model(BACKENDS[name], endless(*STREAMS[what], gone, EVENTS)) as model:
        reply = await streamed(model)
        await asyncio.wait_for(gone.wait(), 10)
    assert (reply.finish_reason, reply.overlong, reply.usage) == ("length", True, Usage())
    assert 0 < len(reply.text) <= MOST
    assert len(reply.reasoning) <= 4 * MOST


BEFORE_THE_REPLY = {
    "an id": (b'{"id":"', b"x" * 2**16),
    "blanks": (b"", b" " * 2**16),
    "a list of others": (b'{"others":[', (b'["%0999d"],2,' % 0) * 2**6),
    "a web page": (b"<html>\n\n", b"<p>\n\n" * 2**13),
    "events without a text": (b"", b'data: {"id":"%0999d"}\n\n' % 0 * 2**6),
}


@pytest.mark.parametrize("what", BEFORE_THE_REPLY)
@pytest.mark.parametrize("as_stream", [True, False])
async def test_what_is_too_large_before_its_reply_begins_is_unusable(what: str, as_stream: bool) -> None:
    gone = asyncio.Event()
    async with served_model(BACKENDS["compatible"], endless(*BEFORE_THE_REPLY[what], gone, EVENTS)) as model:
        asked = streamed(model) if as_stream else model.complete(MESSAGES, DECODING, step_key="k")
        with pytest.raises(ModelError, match="larger than 2 MiB") as caught:
            await asked
        await asyncio.wait_for(gone.wait(), 10)
    assert (caught.value.kind, caught.value.may_be_billed) == ("unparsable", True)


@pytest.mark.parametrize("name", BACKENDS)
async def test_a_whole_reply_that_is_too_long_is_cut_and_its_usage_known(name: str) -> None:
    listed = {"content": [token("no ", -0.1, ("no ", -0.1))] * 9}
    body = completion("no " * MOST, logprobs=listed)
    async with served_model(BACKENDS[name], answers(200, body)) as model:
        reply = await model.complete(MESSAGES, Decoding(max_tokens=9, top_logprobs=1), step_key="k")
    assert (len(reply.text), reply.overlong, reply.tokens, reply.usage) == (MOST, True, None, Usage(7, 2))


async def test_an_error_without_end_keeps_its_status_and_its_first_words() -> None:
    for make in VENDORS.values():

        async def handler(request: web.Request) -> web.StreamResponse:
            await request.read()
            response = web.StreamResponse(status=429)
            await response.prepare(request)
            while True:
                await response.write(b"slow down " * 2**13)

        async with served_model(make, handler) as model:
            with pytest.raises(ModelError, match="slow down") as caught:
                await model.complete(MESSAGES, DECODING, step_key="k")
        assert (caught.value.kind, len(caught.value.message) <= 300) == ("rate_limited", True)


# No honest reply is cut


def written(text: str, times: int, alternatives: int) -> dict[str, Any]:
    """A reply of equal tokens with all that OpenAI sends of each."""
    listed = token(text, -12.345678901234567, *[(text, -12.345678901234567)] * alternatives, bytes=[*text.encode()])
    for each in listed["top_logprobs"]:
        each["bytes"] = [*text.encode()]
    return completion(text * times, logprobs={"content": [listed] * times})


@pytest.mark.parametrize(
    ("text", "alternatives"), [(" today", 20), ("今日は", 20), (" " * 128, 0), ('"\\n', 20), ("\U0001f389", 5)]
)
async def test_a_reply_of_as_many_tokens_as_were_asked_for_is_whole(text: str, alternatives: int) -> None:
    times = 1_000
    decoding = Decoding(max_tokens=times, top_logprobs=alternatives or None)
    whole = written(text, times, alternatives)
    body = json.dumps(whole).encode()
    (choice,) = whole["choices"]
    envelope = {"id": "chatcmpl-" + "x" * 29, "object": "chat.completion.chunk", "created": 1_700_000_000,
                "model": "m" * 60, "service_tier": "default", "system_fingerprint": "fp_" + "x" * 10}  # fmt: skip
    pieces = [
        event(
            envelope
            | {"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": [each]}}], "usage": None}
        )
        for each in choice["logprobs"]["content"]
    ]
    stream = b"".join([*pieces, delta("", finish_reason="stop")])
    assert max(len(body), len(stream)) < most_bytes(decoding) - 2**20
    reply = bounded_reply(read_reply(body, decoding), times)
    assert (reply.text, reply.overlong) == (text * times, False)
    assert joined_reply([piece async for piece in pieces_of(stream, decoding)]).text == reply.text


async def pieces_of(stream: bytes, decoding: Decoding) -> Any:
    async def chunks() -> Any:
        for at in range(0, len(stream), 2**16):
            yield stream[at : at + 2**16]

    async for piece in read_pieces(chunks(), EVENT_STREAM, decoding):
        yield piece


def test_a_reply_within_its_bound_is_left_alone() -> None:
    reply = ModelReply("x" * MOST, "stop", Usage(1, 9), reasoning="x" * 4 * MOST)
    assert bounded_reply(reply, DECODING.max_tokens) is reply
    assert bounded_reply(reply, DECODING.max_tokens - 1).overlong


async def test_a_stream_within_its_bound_is_left_alone() -> None:
    stream = delta("x" * MOST) + delta("", finish_reason="stop")
    pieces: list[StreamPiece] = [piece async for piece in pieces_of(stream, DECODING)]
    assert (joined_reply(pieces).text, joined_reply(pieces).overlong) == ("x" * MOST, False)


# A beginning of JSON is completed

TEXTS = st.text(st.sampled_from('a"\\/\n\u00e9\u4eca\U0001f389[]{},:u0'), max_size=9)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(-99, 99), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4), st.booleans(), st.booleans(), st.integers(0, 400))
def test_a_beginning_of_json_is_completed_or_none(
    value: dict[str, Any], spaced: bool, escaped: bool, length: int
) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    whole = json.dumps({"reply": value}, ensure_ascii=escaped, separators=separators).encode()
    closed = closed_body(whole[:length])
    if whole.startswith(b"{") and length and closed:
        assert is_part(json.loads(closed.decode("utf-8", "surrogatepass")), {"reply": value})


def is_part(one: Any, whole: Any) -> bool:
    """Whether data have nothing but beginnings of other data."""
    match one, whole:
        case str(), str():
            return whole.startswith(one) or whole.startswith(one[:-1])  # half a surrogate pair
        case list(), list():
            return len(one) <= len(whole) and all(map(is_part, one, whole))
        case dict(), dict():
            return all(key in whole and is_part(one[key], whole[key]) for key in one)
    return bool(one == whole)


def test_the_text_of_a_beginning_is_kept_at_every_place() -> None:
    whole = json.dumps(completion('It "rained".\n今日は晴れ🎉')).encode()
    text_at = whole.index(b"It ")
    for length in range(text_at, whole.index(b'"usage"')):
        kept = json.loads(closed_body(whole[:length]))["choices"][0]["message"]["content"]
        assert is_part(kept, 'It "rained".\n今日は晴れ🎉')
        assert len(kept) >= min(25, (length - text_at) // 12)
