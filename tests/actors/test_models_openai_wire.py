"""The OpenAI wire as data: decoding, log-probability arrays, and hostile bytes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.actors.models.api_key import redact
from moot.actors.models.interface import ModelError, ModelReply
from moot.actors.models.openai_errors import error_from_response, retry_after
from moot.actors.models.openai_wire import decode_reply, encode_request, request_id
from moot.protocols.messages import Decoding, Message, Usage

K = 2
ASKED = Decoding(top_logprobs=K)
KINDS = {"request", "server", "refused", "rate_limited", "content_filter", "context_length"}


def body(text: str | None, content: Any = None, **fields: Any) -> bytes:
    choice = {"message": {"content": text}, "finish_reason": "stop", "logprobs": {"content": content}}
    return json.dumps({"choices": [choice], **fields}).encode()


def token(text: str, logprob: Any, *alternatives: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    top = [{"token": t, "logprob": p} for t, p in alternatives]
    return {"token": text, "logprob": logprob, "top_logprobs": top, **fields}


def test_arrays_are_padded_cut_and_cleaned() -> None:
    content = [
        token("a", -0.25, ("a", -0.25), ("b", -9999.0), ("c", -3)),
        token("b", None, ("b", None)),
        token("c", -1000.0),
        token("d", 1e-7, ("d", 5.0), ("e", -999)),
    ]
    tokens = decode_reply(body("abcd", content), ASKED).tokens
    assert tokens is not None
    assert tokens.logprob.dtype == tokens.alt_logprob.dtype == np.float32
    nan = np.nan
    np.testing.assert_array_equal(tokens.logprob, np.array([-0.25, nan, -np.inf, 0], np.float32))
    rows = [[-0.25, -np.inf], [nan, nan], [nan, nan], [nan, -999]]
    np.testing.assert_array_equal(tokens.alt_logprob, np.array(rows, np.float32))
    assert tokens.tokens == list("abcd")
    assert tokens.alt_tokens == ["a", "b", "b", "", "", "", "d", "e"]
    assert tokens.alternatives == K


def test_numbers_that_json_does_not_have() -> None:
    content = [token("a", float("nan"), ("a", float("-inf")), ("b", float("inf"))), token("b", -1e400)]
    tokens = decode_reply(body("ab", content), ASKED).tokens
    assert tokens is not None
    np.testing.assert_array_equal(tokens.logprob, np.array([np.nan, -np.inf], np.float32))
    np.testing.assert_array_equal(tokens.alt_logprob[0], np.array([-np.inf, np.nan], np.float32))


def test_lone_surrogates_are_replaced() -> None:
    reply = decode_reply(rb'{"choices": [{"message": {"content": "a\ud800b"}}]}', Decoding())
    assert reply.text == "a?b"


def test_tokens_that_split_a_character_are_mended_from_their_bytes() -> None:
    first, second = "é".encode()
    content = [token("\\xc3", -1, bytes=[first]), token("\\xa9", -1, bytes=[second]), token("!", -1, bytes=[33])]
    tokens = decode_reply(body("é!", content), ASKED).tokens
    assert tokens is not None
    assert tokens.tokens == ["", "é", "!"]


def test_tokens_that_are_not_the_text_stay_as_sent() -> None:
    content = [token("a", -1, bytes=[97]), token("<eos>", -1, bytes=list(b"<eos>"))]
    tokens = decode_reply(body("a", content), ASKED).tokens
    assert tokens is not None
    assert tokens.tokens == ["a", "<eos>"]


@pytest.mark.parametrize(
    ("text", "content", "asked", "length"),
    [
        ("a", None, ASKED, None),
        ("a", [], ASKED, None),
        ("", [], ASKED, 0),
        (None, None, ASKED, None),
        ("a", [token("a", -1)], Decoding(), None),
        ("a", [token("a", -1, ("a", -1))], Decoding(top_logprobs=0), 1),
        ("a", [{"token": "a", "logprob": -1}], ASKED, 1),
        ("a", [{"token": "a", "logprob": -1, "top_logprobs": None}], ASKED, 1),
    ],
)
def test_when_log_probabilities_are_known(text: str | None, content: Any, asked: Decoding, length: int | None) -> None:
    reply = decode_reply(body(text, content), asked)
    assert reply.text == (text or "")
    if length is None:
        assert reply.tokens is None
    else:
        assert reply.tokens is not None
        assert reply.tokens.logprob.shape == (length,)
        assert reply.tokens.alt_logprob.shape == (length, asked.top_logprobs)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({}, Usage()),
        ({"prompt_tokens": 3, "completion_tokens": None}, Usage(3)),
        ({"prompt_tokens": -3, "completion_tokens": True}, Usage()),
        ({"prompt_tokens": "3", "completion_tokens": 10**30}, Usage()),
        ({"prompt_tokens": 3, "completion_tokens": 4, "details": {"x": 1}}, Usage(3, 4)),
    ],
)
def test_usage_is_never_guessed(usage: Any, expected: Usage) -> None:
    assert decode_reply(body("a", usage=usage), Decoding()).usage == expected


def test_settings_that_are_none_are_left_out() -> None:
    sent = msgspec.json.decode(
        encode_request("m", [Message("user", "é")], Decoding(temperature=None, top_p=None, max_tokens=1))
    )
    assert sent == {"model": "m", "messages": [{"role": "user", "content": "é"}], "max_tokens": 1}
    zero = msgspec.json.decode(encode_request("m", [], Decoding(temperature=0.0, top_logprobs=0)))
    assert (zero["temperature"], zero["logprobs"], zero["top_logprobs"]) == (0.0, True, 0)


def outcome(raw: bytes, decoding: Decoding) -> None:
    try:
        reply = decode_reply(raw, decoding)
    except ModelError as error:
        check_error(error)
        return
    assert isinstance(reply, ModelReply)
    reply.text.encode()
    if reply.tokens is not None:
        count = len(reply.tokens.tokens)
        assert reply.tokens.logprob.shape == (count,)
        assert reply.tokens.alt_logprob.shape == (count, K)
        assert len(reply.tokens.alt_tokens) == count * K
        assert not (reply.tokens.alt_logprob > 0).any()


def check_error(error: ModelError) -> None:
    assert error.kind in KINDS
    assert len(error.message) <= 300
    assert error.message.isprintable()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
alternatives = st.fixed_dictionaries({"token": st.text(max_size=3), "logprob": st.none() | st.floats()})
tokens = st.fixed_dictionaries(
    {"token": st.text(max_size=3) | json_values, "logprob": st.floats() | json_values},
    optional={
        "top_logprobs": st.none() | st.lists(alternatives, max_size=4),
        "bytes": st.none() | st.lists(st.integers(-1, 300), max_size=4),
    },
)
choices = st.fixed_dictionaries(
    {"message": st.fixed_dictionaries({"content": st.none() | st.text(max_size=9) | json_values})},
    optional={
        "finish_reason": st.none() | st.sampled_from(["stop", "length", "content_filter"]),
        "logprobs": st.none() | st.fixed_dictionaries({"content": st.none() | st.lists(tokens, max_size=4)}),
    },
)
replies = st.fixed_dictionaries(
    {"choices": st.lists(choices, max_size=2) | json_values}, optional={"usage": json_values, "error": json_values}
)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([Decoding(), ASKED]))
def test_any_bytes_give_a_reply_or_a_model_error(raw: bytes, decoding: Decoding) -> None:
    outcome(raw, decoding)


@settings(max_examples=500, deadline=None)
@given(replies, st.integers(0, 40), st.booleans())
def test_any_json_whole_or_cut_gives_a_reply_or_a_model_error(reply: Any, cut: int, ascii_only: bool) -> None:
    raw = json.dumps(reply, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    outcome(raw, ASKED)
    outcome(raw[: len(raw) - cut], ASKED)


@settings(max_examples=200, deadline=None)
@given(st.integers(300, 599), st.binary(max_size=100) | json_values.map(lambda v: json.dumps(v).encode()))
def test_any_error_body_gives_a_model_error(status: int, raw: bytes) -> None:
    check_error(error_from_response(status, {}, raw))


@pytest.mark.parametrize("raw", [b"[" * 200_000, b'{"choices":' * 50_000, b'{"choices":[{"message":' + b"9" * 9999])
def test_bodies_that_exhaust_a_parser(raw: bytes) -> None:
    outcome(raw, ASKED)
    assert error_from_response(400, {}, raw).kind == "request"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 +9999999"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers, now=10.0) == expected


def test_secrets_in_messages() -> None:
    said = "Bearer abc.def and sk-proj_0123456789 and https://me:pw@host/ and my own key hunter2hunter2"
    shown = redact(said, "hunter2hunter2")
    for secret in ("abc.def", "sk-proj", "me:pw", "hunter2"):
        assert secret not in shown


@given(st.text(max_size=80))
def test_request_ids_are_header_safe_and_reversible(step_key: str) -> None:
    sent = request_id(step_key)
    assert sent.isascii()
    assert sent.isprintable()
    assert " " not in sent
    assert unquote(sent, errors="surrogatepass") == step_key


def test_long_request_ids_stay_apart() -> None:
    first, second = request_id("x" * 600 + "1"), request_id("x" * 600 + "2")
    assert first != second
    assert len(first) == len(second) == 512
