"""The OpenAI wire as data: decoding, log-probability arrays, and hostile bytes."""

from __future__ import annotations

import json
import re
from typing import Any, Literal
from urllib.parse import unquote

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from moot.actors.models.api_key import redact
from moot.actors.models.interface import RateHeaders
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.openai_errors import retry_after
from moot.actors.models.openai_wire import decode_reply, encode_request, request_id, response_format
from moot.actors.models.rate_headers import rate_headers
from moot.actors.models.reply_schema import reply_schema
from moot.actors.models.schema_dialects import json_schema
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import held_schema
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Decoding, Message, Usage
from moot.protocols.replies import FreeText

K = 2
ASKED = Decoding(top_logprobs=K)


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


class Colour(BaseModel):
    """A model with a docstring that is nobody's business."""

    answer: Literal["red", "blue"]
    shade: float = Field(ge=0, le=1, description="0 is light")


def test_a_schema_on_the_wire() -> None:
    sent = msgspec.json.decode(
        encode_request("m", [Message("user", "x")], Decoding(), schema=reply_schema(Colour, None))
    )
    wanted = sent["response_format"]
    assert wanted["type"] == "json_schema"
    held = wanted["json_schema"]
    assert (held["name"], held["strict"]) == ("Colour", True)
    assert held["schema"] == json_schema(Colour)
    assert list(held["schema"]["properties"]) == ["answer", "shade"]
    assert "nobody" not in json.dumps(sent)
    assert "response_format" not in msgspec.json.decode(encode_request("m", [Message("user", "x")], Decoding()))


@pytest.mark.parametrize("name", ["Répo[int]", "x" * 100])
def test_a_schema_has_a_name_that_the_wire_takes(name: str) -> None:
    model = create_model(name, answer=(str, ...))
    held = msgspec.json.decode(response_format(reply_schema(model, None)))["json_schema"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", held["name"])


class Table(BaseModel):
    """A reply that no schema can hold."""

    cells: dict[str, int]


@pytest.mark.parametrize(
    ("offered", "wanted", "model", "held"),
    [
        ("yes", None, Colour, True),
        ("yes", True, Colour, True),
        ("yes", False, Colour, False),
        ("yes", None, FreeText, False),
        ("yes", True, FreeText, False),
        ("yes", None, Table, False),
        ("on request", None, Colour, False),
        ("on request", True, Colour, True),
        ("no", None, Colour, False),
    ],
)
def test_when_a_reply_is_held_to_its_schema(
    offered: Literal["no", "on request", "yes"], wanted: bool | None, model: type[BaseModel], held: bool
) -> None:
    found = held_schema(RoleBinding(structured=wanted), offered, model, None, 400, {})
    assert (found is not None) == held


def test_a_role_that_insists_is_told_of_a_reply_that_no_schema_can_hold() -> None:
    for profile in (None, ModelProfile(schemas="openai")):
        with pytest.raises(ConfigError, match="cells"):
            held_schema(RoleBinding(structured=True, profile=profile), "yes", Table, None, 400, {})


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


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"content-type": "x", "x-ratelimit": "5", "X-RateLimit-Other": "5"}, None),
        ({"X-RateLimit-Limit-Requests": "60"}, RateHeaders(requests_limit=60)),
        ({"x-ratelimit-remaining-requests": " 0 "}, RateHeaders(requests_left=0)),
        ({"x-ratelimit-remaining-tokens": "-1", "x-ratelimit-limit-tokens": "many"}, None),
        ({"x-ratelimit-limit-tokens": "9" * 30}, None),
        (
            {
                "x-ratelimit-limit-requests": "5000",
                "x-ratelimit-limit-tokens": "160000",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-remaining-tokens": "159000",
            },
            RateHeaders(0, 5000, 159000, 160000),
        ),
    ],
)
def test_rate_headers(headers: dict[str, str], expected: RateHeaders | None) -> None:
    assert rate_headers([(name.encode(), value.encode()) for name, value in headers.items()]) == expected


@given(st.lists(st.tuples(st.binary(max_size=9).map(lambda end: b"x-ratelimit-" + end), st.binary(max_size=9))))
def test_any_headers_are_read(raw: list[tuple[bytes, bytes]]) -> None:
    found = rate_headers(raw)
    assert found is None or isinstance(found, RateHeaders)


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
