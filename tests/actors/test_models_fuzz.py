"""The decoder of replies against thousands of spoilt bodies: a `ModelReply` or a `ModelError`, and nothing else."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.actors.models.interface import ModelError, ModelReply, StreamPiece
from moot.actors.models.openai_errors import error_from_response
from moot.actors.models.openai_stream import EVENT_STREAM, read_pieces
from moot.actors.models.openai_wire import decode_reply
from moot.protocols.messages import Decoding

K = 2
BODIES, STREAMS = 150 * settings().max_examples, 40 * settings().max_examples
"""Of 20 examples 3,000 and 800; of the 100 of `.ci/run` 15,000 and 4,000."""
KINDS = {"request", "server", "refused", "rate_limited", "content_filter", "context_length", "connection"}

NASTY: list[Any] = [None, True, 0, -1, 2**63, 10**40, 0.5, -9999.0, float("nan"), float("inf"), float("-inf")]
NASTY += ["", "x", "\ud800", "é", "\x00", [], {}, [[]], [None], {"content": None}, {"error": {"code": "429"}}]
SCRAPS = [
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-1e999",
    b"null",
    b"[",
    b"}",
    b'"',
    b"\\ud800",
    b"\\",
    b"\xff",
    b"\xc3",
    b"\x00",
]
SCRAPS += [b"9" * 400, b"[" * 3000, b'{"a":' * 500, b",", b":", b"\r\n", b"\n\n", b"data: ", b"[DONE]", b": comment\n"]


def whole(rng: random.Random) -> dict[str, Any]:
    """A reply that is as it should be, with some of its fields left out."""
    tokens: list[dict[str, Any]] = []
    for _ in range(rng.randrange(4)):
        text = rng.choice(["a", " b", "é", "\ufffd", ""])
        top = [{"token": rng.choice("abc"), "logprob": -rng.random()} for _ in range(rng.randrange(4))]
        tokens.append({"token": text, "logprob": -rng.random(), "bytes": list(text.encode()), "top_logprobs": top})
    message = {"role": "assistant", "content": "".join(token["token"] for token in tokens), "refusal": None}
    choice = {"index": 0, "message": message, "delta": message, "finish_reason": "stop"}
    body = {
        "choices": [choice | {"logprobs": {"content": tokens}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    for holder in (body, choice, message):
        for name in list(holder):
            if rng.random() < 0.03:
                del holder[name]
    return body


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def spoilt(rng: random.Random) -> bytes:
    """A reply's bytes with up to two values replaced and up to two places of the text damaged."""
    body = whole(rng)
    for _ in range(rng.randrange(3)):
        if found := [*places(body)]:
            holder, key = rng.choice(found)
            holder[key] = copy.deepcopy(rng.choice(NASTY))
    raw = bytearray(json.dumps(body, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice([0, 0, 1, 2])):
        at = rng.randrange(len(raw) + 1)
        damage = rng.randrange(4)
        if damage == 0:
            del raw[at:]
        elif damage == 1:
            raw[at : at + rng.randrange(9)] = rng.choice(SCRAPS)
        elif damage == 2:
            raw[at : at + 1] = bytes([rng.randrange(256)])
        else:
            del raw[at : at + rng.randrange(40)]
    return bytes(raw)


def check_reply(reply: ModelReply | StreamPiece) -> None:
    """Its arrays have the shapes that are promised, its log-probabilities are none above 0, its text is Unicode."""
    reply.text.encode()
    if reply.tokens is not None:
        count = len(reply.tokens.tokens)
        assert reply.tokens.logprob.shape == (count,)
        assert reply.tokens.alt_logprob.shape == (count, K)
        assert len(reply.tokens.alt_tokens) == count * K
        assert not (reply.tokens.alt_logprob > 0).any()
        assert not np.isposinf(reply.tokens.logprob).any()
        "".join([*reply.tokens.tokens, *reply.tokens.alt_tokens]).encode()


def check_error(error: ModelError) -> None:
    """Its kind is known, its message one short line, and it may have cost something."""
    assert error.kind in KINDS
    assert error.message.isprintable()
    assert len(error.message) <= 300
    assert error.may_be_billed


def test_any_body_gives_a_reply_or_a_model_error() -> None:
    rng = random.Random(20261)
    seen: Counter[str] = Counter()
    for _ in range(BODIES):
        decoding = Decoding(top_logprobs=K if rng.random() < 0.8 else None)
        try:
            reply = decode_reply(spoilt(rng), decoding)
        except ModelError as error:
            check_error(error)
            seen[error.kind] += 1
        else:
            check_reply(reply)
            seen["tokens" if reply.tokens is not None else "reply"] += 1
    assert min(seen["tokens"], seen["reply"], seen["server"]) > BODIES / 50, seen


async def test_any_stream_gives_pieces_or_a_model_error() -> None:
    rng = random.Random(20262)
    seen: Counter[str] = Counter()
    for _ in range(STREAMS):
        events = [
            b"data: " + spoilt(rng) + rng.choice([b"\n\n", b"\r\n\r\n", b"\r\r"]) for _ in range(rng.randrange(3))
        ]
        raw = b"".join(events) + rng.choice([b"", b"data: [DONE]\n\n"])
        try:
            async for piece in read_pieces(split(raw, rng), EVENT_STREAM, Decoding(top_logprobs=K)):
                check_reply(piece)
                seen["piece"] += 1
        except ModelError as error:
            check_error(error)
            seen[error.kind] += 1
    assert min(seen["piece"], seen["server"], seen["connection"]) > STREAMS / 50, seen


async def split(raw: bytes, rng: random.Random) -> AsyncIterator[bytes]:
    """The bytes in pieces of any size."""
    at = 0
    while at < len(raw):
        end = at + rng.randint(1, 400)
        yield raw[at:end]
        at = end


@given(st.binary(max_size=200))
def test_any_bytes_give_a_reply_or_a_model_error(raw: bytes) -> None:
    outcome(raw)


def outcome(raw: bytes) -> None:
    """Decode and check."""
    try:
        check_reply(decode_reply(raw, Decoding(top_logprobs=K)))
    except ModelError as error:
        check_error(error)


@given(st.integers(300, 599), st.binary(max_size=100), st.sampled_from([{}, {"error": None}, *NASTY]))
def test_any_error_body_gives_a_model_error(status: int, raw: bytes, data: Any) -> None:
    for body in (raw, json.dumps(data).encode(), json.dumps({"error": data}).encode()):
        error = error_from_response(status, {}, body)
        assert error.kind in KINDS
        assert error.message.isprintable()
        assert not error.may_be_billed


@pytest.mark.parametrize("raw", [b"[" * 200_000, b'{"choices":' * 50_000, b'{"choices":[{"message":' + b"9" * 9999])
def test_bodies_that_exhaust_a_parser(raw: bytes) -> None:
    outcome(raw)
    assert error_from_response(400, {}, raw).kind == "request"
