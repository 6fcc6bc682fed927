"""All wires as data: what is sent, and what is read of a reply."""

from __future__ import annotations

import json
import re
from typing import Any, Literal
from urllib.parse import unquote

import msgspec
import numpy as np
import pytest
from anthropic_wire import message
from hypothesis import given
from hypothesis import strategies as st
from openai_server import MESSAGES, completion, output_message, response, token
from pydantic import BaseModel, Field, create_model
from wire_checks import ASKED, WIRES, K, incomplete, read

from moot.actors.models.openai_wire import decode_reply, encode_request, request_id, response_format
from moot.actors.models.reply_schema import reply_schema
from moot.actors.models.responses_wire import encode_request as encode_for_responses
from moot.actors.models.schema_dialects import json_schema
from moot.protocols.case import Image
from moot.protocols.messages import Decoding, Message, Usage
from moot.protocols.replies import Position

# What is sent


def chat_request(messages: list[Message], decoding: Decoding, **options: Any) -> dict[str, Any]:
    sent: dict[str, Any] = msgspec.json.decode(encode_request("m", messages, decoding, **options))
    return sent


def test_settings_that_are_none_are_left_out() -> None:
    messages = [{"role": message.role, "content": message.content} for message in MESSAGES]
    bare = Decoding(temperature=None, top_p=None, max_tokens=1)
    assert chat_request(MESSAGES, bare) == {"model": "m", "messages": messages, "max_tokens": 1, "stream": False}
    zero = chat_request([], Decoding(temperature=0.0, top_logprobs=0))
    assert (zero["temperature"], zero["logprobs"], zero["top_logprobs"]) == (0.0, True, 0)
    unknown_there = msgspec.structs.replace(bare, seed=3, stop=("END",))
    sent = msgspec.json.decode(encode_for_responses("m", MESSAGES, unknown_there))
    assert sent == {"model": "m", "input": messages, "max_output_tokens": 1, "store": False, "stream": False}


def test_a_response_is_asked_for_with_all_that_a_role_may_say() -> None:
    extra = '{"reasoning":{"effort":"high","summary":"auto"},"text":{"verbosity":"low"},"model":"other","store":true}'
    decoding = Decoding(temperature=0.5, top_p=0.8, top_logprobs=2, reasoning_effort="low", extra=extra)
    schema = reply_schema(Position, "openai", ("Yes", "No"))
    asked = [Message("user", "what?", (Image("image/png", b"\x00\x01"),))]
    body = msgspec.json.decode(encode_for_responses("m", asked, decoding, schema=schema))
    (text, picture) = body["input"][0]["content"]
    assert text == {"type": "input_text", "text": "what?"}
    assert (picture["type"], picture["image_url"]) == ("input_image", "data:image/png;base64,AAE=")
    assert (body["temperature"], body["top_p"], body["top_logprobs"]) == (0.5, 0.8, 2)
    assert body["include"] == ["message.output_text.logprobs"]
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["text"]["verbosity"] == "low"
    form = body["text"]["format"]
    assert (form["type"], form["strict"], form["name"]) == ("json_schema", True, "Position")
    assert form["schema"]["properties"]["answer"]["enum"] == ["Yes", "No"]
    assert (body["model"], body["store"]) == ("m", True)


class Colour(BaseModel):
    """A model with a docstring that is nobody's business."""

    answer: Literal["red", "blue"]
    shade: float = Field(ge=0, le=1, description="0 is light")


def test_a_schema_on_the_wire() -> None:
    sent = chat_request(MESSAGES, Decoding(), schema=reply_schema(Colour, None))
    wanted = sent["response_format"]
    assert wanted["type"] == "json_schema"
    held = wanted["json_schema"]
    assert (held["name"], held["strict"]) == ("Colour", True)
    assert held["schema"] == json_schema(Colour)
    assert list(held["schema"]["properties"]) == ["answer", "shade"]
    assert "nobody" not in json.dumps(sent)
    assert "response_format" not in chat_request(MESSAGES, Decoding())


@pytest.mark.parametrize("name", ["Répo[int]", "x" * 100])
def test_a_schema_has_a_name_that_the_wire_takes(name: str) -> None:
    model = create_model(name, answer=(str, ...))
    held = msgspec.json.decode(response_format(reply_schema(model, None)))["json_schema"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", held["name"])


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


# Log-probabilities


def with_tokens(text: str | None, content: Any) -> dict[str, Any]:
    return completion(text, logprobs={"content": content})


def test_arrays_are_padded_cut_and_cleaned() -> None:
    content = [
        token("a", -0.25, ("a", -0.25), ("b", -9999.0), ("c", -3)),
        token("b", None, ("b", None)),
        token("c", -1000.0),
        token("d", 1e-7, ("d", 5.0), ("e", -999)),
    ]
    tokens = read("chat", with_tokens("abcd", content)).tokens
    assert tokens is not None
    assert tokens.logprob.dtype == tokens.alt_logprob.dtype == np.float32
    nan = np.nan
    np.testing.assert_array_equal(tokens.logprob, np.array([-0.25, nan, -np.inf, 0], np.float32))
    rows = [[-0.25, -np.inf], [nan, nan], [nan, nan], [nan, -999]]
    np.testing.assert_array_equal(tokens.alt_logprob, np.array(rows, np.float32))
    assert tokens.tokens == list("abcd")
    assert tokens.alt_tokens == ["a", "b", "b", "", "", "", "d", "e"]
    assert tokens.alternatives == K


def test_numbers_and_texts_that_json_does_not_have() -> None:
    content = [token("a", float("nan"), ("a", float("-inf")), ("b", float("inf"))), token("b", -1e400)]
    tokens = read("chat", with_tokens("ab", content)).tokens
    assert tokens is not None
    np.testing.assert_array_equal(tokens.logprob, np.array([np.nan, -np.inf], np.float32))
    np.testing.assert_array_equal(tokens.alt_logprob[0], np.array([-np.inf, np.nan], np.float32))
    assert read("chat", rb'{"choices": [{"message": {"content": "a\ud800b"}}]}').text == "a?b"


def test_tokens_that_split_a_character_are_mended_from_their_bytes() -> None:
    first, second = "é".encode()
    content = [token("\\xc3", -1, bytes=[first]), token("\\xa9", -1, bytes=[second]), token("!", -1, bytes=[33])]
    tokens = read("chat", with_tokens("é!", content)).tokens
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
    reply = decode_reply(json.dumps(with_tokens(text, content)).encode(), asked)
    assert reply.text == (text or "")
    shapes = reply.tokens and (reply.tokens.logprob.shape, reply.tokens.alt_logprob.shape)
    assert shapes == (None if length is None else ((length,), (length, asked.top_logprobs)))


def test_reasoning_and_commentary_of_a_response_are_kept_apart_from_the_reply() -> None:
    def said(text: str) -> dict[str, Any]:
        return token(text, -0.5, (text, -0.5), ("x", -2.0), bytes=list(text.encode()))

    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "It rained."}], "content": None}
    aside = {**output_message("I look it up.", logprobs=[said("I")]), "phase": "commentary"}
    called = {"type": "web_search_call", "content": "of another form"}
    answer = output_message("Yes", logprobs=[said("Y"), said("es")])
    reply = read("responses", response(thought, called, aside, answer))
    assert (reply.text, reply.finish_reason, reply.reasoning) == ("Yes", "stop", "It rained.\nI look it up.")
    assert reply.tokens is not None
    assert reply.tokens.tokens == ["Y", "es"]
    np.testing.assert_allclose(reply.tokens.alt_logprob, [[-0.5, -2.0]] * 2)


# How a reply ended and what it used


@pytest.mark.parametrize(
    ("wire", "body", "finish"),
    [
        ("chat", completion(finish_reason="length"), "length"),
        ("chat", completion(finish_reason=None), ""),
        ("responses", response("Yes"), "stop"),
        ("responses", incomplete("max_output_tokens"), "length"),
        ("responses", incomplete("steered"), "steered"),
        ("responses", incomplete(None), "incomplete"),
        ("anthropic", message("a", "end_turn"), "stop"),
        ("anthropic", message("a", "stop_sequence"), "stop"),
        ("anthropic", message("", "max_tokens"), "length"),
        ("anthropic", message("a", "model_context_window_exceeded"), "length"),
        ("anthropic", message("a", "pause_turn"), "pause_turn"),
        ("anthropic", message("a", stop_reason=None), ""),
    ],
)
def test_finish_reasons(wire: str, body: dict[str, Any], finish: str) -> None:
    assert read(wire, body).finish_reason == finish


@pytest.mark.parametrize("wire", WIRES)
def test_usage_is_never_guessed(wire: str) -> None:
    _, whole, (prompt, reply, details, reasoning) = WIRES[wire]

    def usage(stated: Any) -> Usage:
        return read(wire, whole("a") | {"usage": stated}).usage

    assert (
        usage(None) == usage({}) == usage({prompt: -3, reply: True}) == usage({prompt: "3", reply: 10**30}) == Usage()
    )
    assert usage({prompt: 3, reply: None}) == Usage(3)
    assert usage({prompt: 3, reply: 4, "service_tier": "standard"}) == Usage(3, 4)
    for told, known in (({reasoning: 2}, 2), ({reasoning: 0}, 0), ({}, None), (None, None), ("7", None), ([7], None)):
        assert usage({prompt: 3, reply: 4, details: told}) == Usage(3, 4, known)


@pytest.mark.parametrize(
    ("cached", "prompt"),
    [
        ({"cache_creation_input_tokens": 10, "cache_read_input_tokens": 100}, 113),
        ({"cache_read_input_tokens": None}, 3),
        ({"cache_read_input_tokens": "many"}, None),
    ],
)
def test_what_was_cached_of_a_prompt_counts(cached: dict[str, Any], prompt: int | None) -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, **cached}
    assert read("anthropic", message(usage=usage)).usage == Usage(prompt, 4)
