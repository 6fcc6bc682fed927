"""The decoders of all wires against thousands of spoilt bodies: a `ModelReply` or a `ModelError`, and nothing else."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest
from anthropic_wire import message
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_server import completion, output_message, response, token
from wire_checks import KINDS, check_error

from moot.actors.models import anthropic_wire
from moot.actors.models.interface import ModelError, ModelReply, StreamPiece
from moot.actors.models.openai_errors import error_from_response
from moot.actors.models.openai_stream import EVENT_STREAM, read_pieces
from moot.actors.models.openai_wire import decode_reply
from moot.actors.models.responses_wire import decode_response
from moot.protocols.messages import Decoding

K = 2
BODIES, STREAMS = 150 * settings().max_examples, 40 * settings().max_examples
"""Of 20 examples 3,000 and 800; of the 50 of `.ci/run` 7,500 and 2,000."""

NASTY: list[Any] = [None, True, 0, -1, 2**63, 10**40, 0.5, -9999.0, float("nan"), float("inf"), float("-inf")]
NASTY += ["", "x", "\ud800", "é", "\x00", [], {}, [[]], [None], {"content": None}, {"error": {"code": "429"}}]
Whole = Callable[[random.Random], dict[str, Any]]

SCRAPS = [b"NaN", b"-Infinity", b"1e999", b"-1e999", b"null", b"[", b"}", b'"', b"\\ud800", b"\\", b"\xff", b"\xc3"]
SCRAPS += [b"9" * 400, b"[" * 3000, b'{"a":' * 500, b",", b":", b"\r\n", b"\n\n", b"data: ", b"[DONE]", b": comment\n"]
SCRAPS += [b"\x00"]


def chat(rng: random.Random) -> dict[str, Any]:
    """A chat completion, or a piece of one, as it should be."""
    text, tokens = _tokens(rng)
    return completion(text, delta={"content": text, "refusal": None}, logprobs={"content": tokens})


def whole_response(rng: random.Random) -> dict[str, Any]:
    """A response of the Responses API."""
    text, tokens = _tokens(rng)
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]}
    output = [thought, output_message(text, logprobs=tokens)][rng.randrange(2) :]
    ended = rng.choice(["completed", "completed", "incomplete"])
    return response(*output, status=ended, incomplete_details={"reason": "max_output_tokens"})


def whole_message(rng: random.Random) -> dict[str, Any]:
    """A message of Anthropic's."""
    thinking = [{"type": "thinking", "thinking": "Hm."}][rng.randrange(2) :]
    ended = rng.choice(["end_turn", "end_turn", "max_tokens", "refusal"])
    usage = {"input_tokens": 3, "output_tokens": 4, "output_tokens_details": {"thinking_tokens": 1}}
    said = {"explanation": "I will not."}
    return message(rng.choice(["No.", "é", ""]), ended, *thinking, stop_details=said, usage=usage)


def _tokens(rng: random.Random) -> tuple[str, list[dict[str, Any]]]:
    """A text, and the tokens that join to it."""
    texts = [rng.choice(["a", " b", "é", "\ufffd", ""]) for _ in range(rng.randrange(4))]
    return "".join(texts), [_token(text, rng) for text in texts]


def _token(text: str, rng: random.Random) -> dict[str, Any]:
    top = [(rng.choice("abc"), -rng.random()) for _ in range(rng.randrange(4))]
    return token(text, -rng.random(), *top, bytes=list(text.encode()))


WIRES: dict[str, tuple[Whole, Callable[[bytes], ModelReply]]] = {
    "chat": (chat, lambda raw: decode_reply(raw, Decoding(top_logprobs=K))),
    "chat without tokens": (chat, lambda raw: decode_reply(raw, Decoding())),
    "responses": (whole_response, lambda raw: decode_response(raw, Decoding(top_logprobs=K), key="k" * 20)),
    "anthropic": (whole_message, anthropic_wire.decode_reply),
}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def spoilt(whole: Whole, rng: random.Random) -> bytes:
    """A reply's bytes with fields left out, up to two values replaced and up to two places of the text damaged."""
    body = whole(rng)
    for holder, name in [*places(body)]:
        if isinstance(holder, dict) and rng.random() < 0.01:
            holder.pop(name, None)
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


@pytest.mark.parametrize("wire", WIRES)
def test_any_body_gives_a_reply_or_a_model_error(wire: str) -> None:
    rng = random.Random(20261)
    seen: Counter[str] = Counter()
    whole, decode = WIRES[wire]
    for _ in range(BODIES):
        seen[outcome(decode, spoilt(whole, rng))] += 1
    assert seen.keys() <= KINDS | {"reply"}
    assert min(seen["reply"], seen["server"]) > BODIES / 50, seen


async def test_any_stream_gives_pieces_or_a_model_error() -> None:
    rng = random.Random(20262)
    seen: Counter[str] = Counter()
    for _ in range(STREAMS):
        events = [
            b"data: " + spoilt(chat, rng) + rng.choice([b"\n\n", b"\r\n\r\n", b"\r\r"]) for _ in range(rng.randrange(3))
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


def outcome(decode: Callable[[bytes], ModelReply], raw: bytes) -> str:
    """The kind of its failure, or `reply`; both are checked."""
    try:
        reply = decode(raw)
    except ModelError as error:
        check_error(error)
        return error.kind
    check_reply(reply)
    reply.reasoning.encode()
    return "reply"


@pytest.mark.parametrize("wire", WIRES)
@given(raw=st.binary(max_size=200))
def test_any_bytes_give_a_reply_or_a_model_error(wire: str, raw: bytes) -> None:
    for body in (raw, b'{"output":[{"type":"message","content":' + raw + b"}]}"):
        outcome(WIRES[wire][1], body)


@given(st.integers(300, 599), st.binary(max_size=100), st.sampled_from([{}, {"error": None}, *NASTY]), st.text())
def test_any_error_body_gives_a_model_error(status: int, raw: bytes, data: Any, header: str) -> None:
    names = ("requests-reset", "tokens-remaining", "requests-limit")
    headers = {"retry-after": header, "date": header} | {f"anthropic-ratelimit-{name}": header for name in names}
    for body in (raw, json.dumps(data).encode(), json.dumps({"error": data}).encode()):
        ours = error_from_response(status, headers, body)
        assert not ours.may_be_billed
        for error in (ours, anthropic_wire.error_from_response(status, headers, body)):
            assert error.kind in KINDS
            assert error.message.isprintable()


@pytest.mark.parametrize("raw", [b"[" * 200_000, b'{"choices":' * 50_000, b'{"output":[' + b"[" * 99_999, b"9" * 9999])
def test_bodies_that_exhaust_a_parser(raw: bytes) -> None:
    for _, decode in WIRES.values():
        assert outcome(decode, raw) != "reply"
    assert error_from_response(400, {}, raw).kind == "request"


@pytest.mark.parametrize("deep", [100, 900, 99_999])
def test_parts_within_parts_exhaust_nothing(deep: int) -> None:
    outcome(WIRES["chat"][1], b'{"choices":[{"message":{"content":' + b"[" * deep + b"]" * deep + b"}}]}")
