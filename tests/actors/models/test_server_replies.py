"""Replies as servers really send them: optional parts that do not fit, errors inside a 200, filters, parts, streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from anthropic_wire import message
from openai_server import (
    DECODING,
    EVENTS,
    KEY,
    MESSAGES,
    MakeModel,
    completion,
    delta,
    event,
    output_message,
    response,
    sends,
    served_model,
    token,
)
from wire_checks import ASKED, read

from moot.actors.models.interface import ModelError, ModelReply
from moot.actors.models.openai_stream import EVENT_STREAM, read_pieces, read_reply
from moot.actors.models.streamed_reply import joined_reply
from moot.protocols.messages import Decoding, Usage

pytestmark = pytest.mark.usefixtures("certificates_read_once", "vendor_key")

DONE = b"data: [DONE]\n\n"


async def _bytes(raw: bytes) -> AsyncIterator[bytes]:
    yield raw


async def streamed(*events: bytes, decoding: Decoding = ASKED) -> ModelReply:
    """The reply of a stream, joined, and the same when nobody asked for a stream."""
    raw = b"".join(events)
    reply = joined_reply([piece async for piece in read_pieces(_bytes(raw), EVENT_STREAM, decoding)])
    assert read_reply(raw, decoding).text == reply.text
    return reply


async def failure(*events: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await streamed(*events)
    with pytest.raises(ModelError) as as_whole:
        read_reply(b"".join(events), ASKED)
    assert str(as_whole.value) == str(caught.value)
    assert caught.value.may_be_billed
    return caught.value


# Optional parts

FINE = [token("N", -0.5, ("N", -0.5), ("Y", -1.0)), token("o.", -0.25, ("o.", -0.25), ("x", -2.0))]
ODD: list[Any] = [None, True, 7, "x", [], [7], {}, {"x": 1}]
SPOILT: dict[str, tuple[dict[str, Any], list[float], list[float]]] = {
    "a text as log-probability": ({"logprob": "-Infinity"}, [np.nan, -0.25], [-0.5, -1.0]),
    "an object of alternatives": ({"top_logprobs": {"N": -0.1}}, [-0.5, -0.25], [np.nan, np.nan]),
    "an alternative without a token": ({"top_logprobs": [{"logprob": -1}, {"token": "N", "logprob": -1}]},
                                       [-0.5, -0.25], [-1, np.nan]),
    "an alternative of unknown probability": ({"top_logprobs": [{"token": "N", "logprob": []}]},
                                              [-0.5, -0.25], [np.nan, np.nan]),
    "no token, but its bytes": ({"token": None, "bytes": [ord("N")]}, [-0.5, -0.25], [-0.5, -1.0]),
    "bytes that are none": ({"bytes": "N"}, [-0.5, -0.25], [-0.5, -1.0]),
}  # fmt: skip


def _wires(content: Any) -> dict[str, dict[str, Any]]:
    return {
        "chat": completion(logprobs={"content": content}),
        "responses": response(output_message("No.", logprobs=content)),
    }


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("name", SPOILT)
def test_only_the_log_probability_that_does_not_fit_is_unknown(wire: str, name: str) -> None:
    changed, logprob, first = SPOILT[name]
    reply = read(wire, _wires([FINE[0] | changed, FINE[1]])[wire])
    assert reply.text == "No."
    assert reply.usage == Usage(7, 2)
    assert reply.tokens is not None
    assert reply.tokens.tokens == ["N", "o."]
    np.testing.assert_array_equal(reply.tokens.logprob, np.array(logprob, np.float32))
    np.testing.assert_array_equal(reply.tokens.alt_logprob[0], np.array(first, np.float32))
    np.testing.assert_array_equal(reply.tokens.alt_logprob[1], np.array([-0.25, -2], np.float32))


def test_bytes_that_do_not_fit_leave_those_of_the_other_tokens() -> None:
    first, second = "é".encode()
    content = [token("\\xc3", -1, bytes=[first]), token("\\xa9", -1, bytes=[second]), token("!", -1, bytes=[333])]
    tokens = read("chat", completion("é!", logprobs={"content": content})).tokens
    assert tokens is not None
    assert tokens.tokens == ["", "é", "!"]


@pytest.mark.parametrize("odd", ODD, ids=str)
async def test_a_reply_is_kept_whatever_stands_in_an_optional_part(odd: Any) -> None:
    whole = completion()
    (choice,) = whole["choices"]
    bodies: list[tuple[str, Any]] = [
        ("chat", whole | {"usage": odd}),
        ("chat", {"choices": [choice | {"logprobs": odd}]}),
        ("chat", {"choices": [choice | {"logprobs": {"content": odd}}]}),
        ("chat", {"choices": [choice | {"finish_reason": odd if not isinstance(odd, str) else None}]}),
        ("responses", response("No.", usage=odd, incomplete_details=odd)),
        ("responses", response(output_message("No.", logprobs=odd))),
        ("anthropic", message("No.", usage=odd, stop_details=odd)),
        ("anthropic", message("No.", content=[{"type": "text", "text": "No."}, odd])),
    ]
    for wire, body in bodies:
        reply = read(wire, body)
        assert reply.text == "No."
        assert reply.usage in (Usage(), Usage(7, 2))
        assert reply.tokens is None or not np.isfinite(reply.tokens.logprob).any()
    piece = {"delta": {"content": "No."}, "finish_reason": "stop", "logprobs": odd}
    found = await streamed(event({"choices": [piece], "usage": odd}))
    assert (found.text, found.usage) == ("No.", Usage())


# Errors inside a 200

STATED: list[tuple[Any, str, str]] = [
    ({"code": 502, "message": "Upstream dropped"}, "server", "Upstream dropped"),
    ({"code": "429", "message": "slow down"}, "rate_limited", "slow down"),
    ({"code": "rate_limit_exceeded", "message": "slow down"}, "rate_limited", "slow down"),
    ({"status": "RESOURCE_EXHAUSTED", "message": "slow down"}, "rate_limited", "slow down"),
    ({"code": "insufficient_quota", "message": "pay"}, "refused", "pay"),
    ({"code": 401, "message": f"no {KEY}"}, "refused", "no [secret]"),
    ({"code": 402, "message": "pay"}, "refused", "pay"),
    ({"code": 403, "message": "moderated"}, "refused", "moderated"),
    ({"type": "authentication_error", "message": "who?"}, "refused", "who?"),
    ({"code": "invalid_api_key", "type": "invalid_request_error", "message": "who?"}, "refused", "who?"),
    ({"code": 400, "message": "maximum context length is 8"}, "context_length", "is 8"),
    ({"code": "context_length_exceeded", "message": "too long"}, "context_length", "too long"),
    ({"code": "content_filter", "message": "stopped"}, "content_filter", "stopped"),
    ({"type": "server_error", "message": "oops"}, "server", "oops"),
    ({"message": "Provider error", "code": 500, "metadata": {"raw": "overloaded"}}, "server", "overloaded"),
    ({"detail": [{"msg": "overloaded"}]}, "server", "overloaded"),
    ("overloaded", "server", "overloaded"),
    (["overloaded"], "server", "overloaded"),
    ({"code": 7}, "server", "without a message"),
]


@pytest.mark.parametrize(("error", "kind", "words"), STATED)
async def test_an_error_inside_a_reply_is_the_providers_failure(error: Any, kind: str, words: str) -> None:
    """Whatever came of the text, wherever the error stands; it is no HTTP status."""
    choice = {"finish_reason": "error", "error": error}
    half = {"message": {"role": "assistant", "content": "The claim does not"}}
    bodies = [{"choices": [half | choice]}, {"choices": [half], "error": error}, {"error": error}]
    found = [_failed("chat", body) for body in bodies]
    found.append(await failure(delta("The claim"), event({"choices": [{"delta": {"content": ""}, **choice}]}), DONE))
    found.append(await failure(delta("The claim"), event({"error": error})))
    for each in found:
        assert each.kind == kind
        assert words in each.message
        assert "HTTP" not in each.message
        assert KEY not in repr(each)


def _failed(wire: str, body: object) -> ModelError:
    with pytest.raises(ModelError) as caught:
        read(wire, body)
    assert caught.value.may_be_billed
    return caught.value


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (b'event: error\ndata: {"message": "slow down", "code": 429}\n\n', "rate_limited", "slow down"),
        (b'event: error\ndata: {"detail": "worker died"}\n\n', "server", "worker died"),
        (b"event: error\ndata: worker died\n\n", "server", "worker died"),
        (b"event: error\ndata: {}\n\n", "server", ""),
        (b'data: {"message": "worker died", "code": 500}\n\n', "server", "worker died"),
        (b'data: {"object": "error", "message": "worker died"}\n\n' + DONE, "server", "worker died"),
        (b"data: worker died\n\n", "server", "worker died"),
        (b'data: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}\n\n', "server", "busy"),
    ],
)
async def test_an_event_keeps_the_words_of_its_error(said: bytes, kind: str, words: str) -> None:
    found = await failure(delta("No"), said)
    assert found.kind == kind
    assert words in found.message


async def test_an_event_that_is_no_error_ends_nothing() -> None:
    queued = event({"message": "queued at place 3"}) + b"event: ping\ndata: {}\n\n"
    assert (await streamed(queued, delta("No.", finish_reason="stop"))).text == "No."


# How a reply ended


@pytest.mark.parametrize(
    ("finish", "kind"),
    [
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("content_filter: PROHIBITED_CONTENT", "content_filter"),
        ("CONTENT_FILTER", "content_filter"),
        ("guardrail_intervened", "content_filter"),
        ("sensitive", "content_filter"),
        ("refusal", "refused"),
        ("error", "server"),
        ("network_error", "server"),
        ("insufficient_system_resource", "server"),
        ("abort", "server"),
    ],
)
async def test_a_finish_reason_without_an_answer(finish: str, kind: str) -> None:
    """With half a text, no text or no message at all; the server's word is said."""
    for said in ({"message": {"content": "Pen"}}, {"message": {"role": "assistant"}}, {"message": None}, {}):
        found = _failed("chat", {"choices": [{**said, "finish_reason": finish}]})
        assert found.kind == kind
        assert finish in found.message
    assert (await failure(delta("Pen"), event({"choices": [{"delta": {}, "finish_reason": finish}]}))).kind == kind
    ended = {"status": "incomplete", "incomplete_details": {"reason": finish}}
    assert _failed("responses", response("Pen", **ended)).kind == kind
    assert _failed("anthropic", message("Pen", finish)).kind == kind


@pytest.mark.parametrize(
    ("finish", "known"),
    [("MAX_TOKENS", "length"), ("model_length", "length"), ("eos", "eos"), ("stop", "stop"), ("tool_calls",) * 2],
)
async def test_other_finish_reasons_are_those_of_a_reply(finish: str, known: str) -> None:
    assert read("chat", completion(finish_reason=finish)).finish_reason == known
    assert (await streamed(delta("No.", finish_reason=finish))).finish_reason == known


FILTERED = {"jailbreak": {"filtered": True}, "hate": {"filtered": False, "severity": "safe"}}


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ({"choices": [], "prompt_filter_results": [{"content_filter_results": FILTERED}]},
         "content_filter", "jailbreak"),
        ({"prompt_annotations": [{"content_filter_results": FILTERED}]}, "content_filter", "jailbreak"),
        ({"choices": None, "promptFeedback": {"blockReason": "SAFETY"}}, "content_filter", "SAFETY"),
        ({"choices": [{"finish_reason": "stop"}]}, "server", "no message"),
        ({"choices": [], "prompt_filter_results": [{"content_filter_results": {}}]}, "server", "no choices"),
        ({"choices": [], "prompt_filter_results": 7}, "server", "no choices"),
        ({"choices": [{"message": {"content": 7}}]}, "server", "content"),
        ({"model": "m", "message": {"content": "No."}, "done": True}, "server", "no choices"),
    ],
)  # fmt: skip
def test_a_reply_without_choices_or_a_message(body: Any, kind: str, words: str) -> None:
    found = _failed("chat", body)
    assert (found.kind, words in found.message) == (kind, True)


async def test_a_blocked_prompt_of_a_stream() -> None:
    blocked = {"choices": [], "prompt_filter_results": [{"content_filter_results": FILTERED}]}
    assert (await failure(event(blocked), DONE)).kind == "content_filter"
    passed = {"choices": [], "prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": False}}}]}
    assert (await streamed(event(passed), delta("No.", finish_reason="stop"))).text == "No."


def test_a_reply_that_was_all_reasoning_may_have_no_message() -> None:
    assert read("chat", {"choices": [{"finish_reason": "length"}]}).finish_reason == "length"


# Content in parts

THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "It "}, {"type": "text", "text": "rained."}]}


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ([{"type": "text", "text": "N"}, {"type": "text", "text": "o."}], "No.", ""),
        ([THINKING, {"type": "text", "text": "No."}], "No.", "It rained."),
        ([{"type": "thinking", "thinking": "It rained."}, {"type": "output_text", "text": "No."}], "No.", "It rained."),
        ([{"type": "reasoning", "summary": [{"text": "It rained."}]}, {"type": "text", "text": "No."}], "No.",
         "It rained."),
        ([{"text": "It rained.", "thought": True}, {"text": "No."}], "No.", "It rained."),
        ([THINKING], "", "It rained."),
        (["No", "."], "No.", ""),
        ({"type": "text", "text": "No."}, "No.", ""),
        ([{"type": "text", "text": "No."}, {"type": "reference", "reference_ids": [1]}, None, 7], "No.", ""),
        ([{"type": "text", "text": {"value": "No.", "annotations": []}}], "No.", ""),
        ([], "", ""),
    ],
)  # fmt: skip
async def test_text_parts_are_the_reply_and_thinking_parts_its_reasoning(
    content: Any, text: str, reasoning: str
) -> None:
    whole = read("chat", completion(content))
    parts = content if isinstance(content, list) else [content]
    pieces = [event({"choices": [{"delta": {"content": [part]}}]}) for part in parts]
    in_pieces = await streamed(*pieces, event({"choices": [{"delta": {"content": ""}, "finish_reason": "stop"}]}))
    for reply in (whole, in_pieces):
        assert (reply.text, reply.reasoning) == (text, reasoning)


async def test_a_refusal_part_is_a_refusal() -> None:
    content: Any = [{"type": "refusal", "refusal": "I will not."}]
    assert str(_failed("chat", completion(content))) == "refused: I will not."
    ended = event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    found = await failure(event({"choices": [{"delta": {"content": content}}]}), ended)
    assert str(found) == "refused: I will not."


def test_parts_of_a_response() -> None:
    thought = {"type": "reasoning_text", "text": "It rained."}
    said = {"type": "message", "content": [thought, {"type": "output_text", "text": "No."}]}
    reply = read("responses", response(said))
    assert (reply.text, reply.reasoning) == ("No.", "It rained.")
    assert read("responses", response({"type": "message", "content": "No."})).text == "No."


# A stream that nobody asked for, and JSON that was asked for as a stream

EVENT_BODY = delta("N") + delta("o.") + event({"choices": [{"delta": {}, "finish_reason": "stop"}]}) + DONE
WHOLE_BODY = json.dumps(completion()).encode()
PRETTY_BODY = json.dumps(completion(), indent=1).encode()
JSON_TYPE = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (EVENT_BODY, EVENTS),
        (EVENT_BODY, JSON_TYPE),
        (b": waiting\n\n" + EVENT_BODY, {"Content-Type": "text/plain"}),
        (event(completion()) + DONE, EVENTS),
        (WHOLE_BODY + b"\n\n" + DONE, EVENTS),
        (PRETTY_BODY + b"\n" + DONE, EVENTS),
        (b"\n\n" + WHOLE_BODY, EVENTS),
        (WHOLE_BODY + b"data: [DONE]", JSON_TYPE),
        (b"\xef\xbb\xbf" + WHOLE_BODY, JSON_TYPE),
    ],
)
async def test_a_stream_and_json_are_told_apart_by_the_body(
    make: MakeModel, body: bytes, headers: dict[str, str]
) -> None:
    async with served_model(make, sends(body, headers=headers)) as model:
        whole = await model.complete(MESSAGES, DECODING, step_key="k")
        pieces = [piece async for piece in model.stream(MESSAGES, DECODING, step_key="k")]
    assert (whole.text, whole.finish_reason) == ("No.", "stop")
    assert joined_reply(pieces).text == "No."


async def test_a_stream_that_nobody_asked_for_has_all_of_a_reply() -> None:
    chunk = {"delta": {"content": "No.", "reasoning": "It rained."}, "logprobs": {"content": FINE}}
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    reply = await streamed(event({"choices": [chunk | {"finish_reason": "stop"}]}), event(usage), DONE)
    assert (reply.text, reply.reasoning, reply.usage) == ("No.", "It rained.", Usage(7, 2))
    assert reply.tokens is not None
    assert reply.tokens.tokens == ["N", "o."]
