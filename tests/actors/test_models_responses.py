"""OpenAI's Responses API: what is sent, what is read, which models are asked over it, and spoilt bodies."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from aiohttp import web
from hypothesis import settings
from openai_server import KEY, KEY_ENV, MESSAGES, served
from test_models_fuzz import check_error

from moot.actors.models.interface import ModelError, ModelReply
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.openai_sdk import OpenAIModel, ResponsesModel
from moot.actors.models.probe import probe
from moot.actors.models.reply_schema import reply_schema
from moot.actors.models.resolve import ModelBinding, make_model, over_responses
from moot.actors.models.responses_wire import decode_response, encode_request
from moot.actors.models.trial import OnlyOverResponses, Trial
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import fingerprint, sent_decoding
from moot.protocols.case import Image
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Ask, Decoding, Message, Usage
from moot.protocols.replies import Position

CHAT_REFUSAL = "This model is only supported in v1/responses and not in v1/chat/completions."
ASK = Ask(
    case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={}, labels=("Yes", "No"),
    reply="moot.protocols.replies:Position",
)  # fmt: skip
ASKED, K = Decoding(top_logprobs=2), 2
BODIES = 50 * settings().max_examples
"""Of 20 examples 1,000; of the 100 of `.ci/run` 5,000."""


def token(text: str, logprob: float = -0.5) -> dict[str, Any]:
    top = [{"token": text, "logprob": logprob}, {"token": "x", "logprob": -2.0}]
    return {"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": top}


def said(text: str, **part: Any) -> dict[str, Any]:
    """An output message."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, **part}]}


def response(*output: Any, **others: Any) -> dict[str, Any]:
    """A whole response as the API has it."""
    details = {"output_tokens_details": {"reasoning_tokens": 5}}
    usage = {"input_tokens": 7, "output_tokens": 9, **details}
    return {"status": "completed", "error": None, "incomplete_details": None, "output": output, "usage": usage} | others


def read(body: dict[str, Any], decoding: Decoding = ASKED, **options: Any) -> ModelReply:
    return decode_response(json.dumps(body).encode(), decoding, **options)


def sent(messages: list[Message], decoding: Decoding, **options: Any) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(encode_request("gpt-5-pro", messages, decoding, **options))
    return body


def test_a_request_says_what_the_api_takes_and_nothing_else() -> None:
    assert sent(MESSAGES, Decoding(temperature=None, top_p=None, max_tokens=90, seed=3, stop=("END",))) == {
        "model": "gpt-5-pro",
        "input": [{"role": message.role, "content": message.content} for message in MESSAGES],
        "max_output_tokens": 90,
        "store": False,
    }


def test_a_request_with_all_that_a_role_may_say() -> None:
    extra = '{"reasoning":{"effort":"high","summary":"auto"},"text":{"verbosity":"low"},"model":"other","store":true}'
    decoding = Decoding(temperature=0.5, top_p=0.8, top_logprobs=2, reasoning_effort="low", extra=extra)
    schema = reply_schema(Position, "openai", ("Yes", "No"))
    body = sent([Message("user", "what?", (Image("image/png", b"\x00\x01"),))], decoding, schema=schema)
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
    assert (body["model"], body["store"]) == ("gpt-5-pro", True)


def test_reasoning_and_commentary_are_kept_apart_from_the_reply() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "It rained."}], "content": None}
    aside = {**said("I look it up.", logprobs=[token("I")]), "phase": "commentary"}
    called = {"type": "web_search_call", "content": "of another form"}
    reply = read(response(thought, called, aside, said("Yes", logprobs=[token("Y"), token("es")])))
    assert (reply.text, reply.finish_reason, reply.reasoning) == ("Yes", "stop", "It rained.\nI look it up.")
    assert reply.usage == Usage(7, 9, 5)
    assert reply.tokens is not None
    assert reply.tokens.tokens == ["Y", "es"]
    np.testing.assert_allclose(reply.tokens.alt_logprob, [[-0.5, -2.0]] * 2)


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("steered", "steered"), (None, "incomplete")]
)
def test_a_response_that_is_cut_says_why(reason: str | None, finish: str) -> None:
    cut = response(said("Ye"), status="incomplete", incomplete_details=reason and {"reason": reason})
    assert read(cut).finish_reason == finish


REFUSED = response({"type": "message", "content": [{"type": "refusal", "refusal": "I would rather not."}]})


def failed(code: str | None, message: str = "on purpose") -> dict[str, Any]:
    return response(status="failed", error={"code": code, "message": message}, output=None)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (REFUSED, "refused"),
        (response(status="incomplete", incomplete_details={"reason": "content_filter"}), "content_filter"),
        (failed("server_error"), "server"),
        (failed("rate_limit_exceeded"), "rate_limited"),
        (failed("invalid_prompt"), "request"),
        (failed("context_length_exceeded"), "context_length"),
        (failed("image_content_policy_violation"), "content_filter"),
        (failed("bio_policy", ""), "content_filter"),
        (failed("what nobody knows"), "server"),
        ({"message": "a gateway's own"}, "server"),
        (response(said("Yes"), status="queued"), "server"),
        ({"status": "completed"}, "server"),
    ],
)
def test_what_is_no_reply_is_a_failure_that_may_be_billed(body: dict[str, Any], kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(body)
    check_error(caught.value)
    assert caught.value.kind == kind


def test_a_reply_with_the_key_is_not_recorded() -> None:
    for body in (response(said(KEY)), response({"type": "reasoning", "summary": [{"text": KEY}]}, said("Yes"))):
        with pytest.raises(ModelError, match="holds the API key"):
            read(body, key=KEY)


@pytest.mark.parametrize(
    ("name", "api"),
    [
        *((name, "responses") for name in ("o1-pro", "o3-pro-2025-06-10", "gpt-5-pro", "gpt-5.2-pro", "gpt-5-codex")),
        *((name, "responses") for name in ("gpt-5.1-codex-max", "o3-deep-research", "computer-use-preview")),
        *((name, "chat") for name in ("gpt-5", "gpt-5-mini", "gpt-5-chat-latest", "o3", "o4-mini", "gpt-4o", "m")),
    ],
)
def test_which_models_are_asked_over_which_api(name: str, api: str) -> None:
    can = make_model(ModelBinding(model=f"openai/{name}"), seed=0, answer_key=None).capabilities
    assert (can.api, can.streaming) == (api, api == "chat")
    assert {"seed", "stop"} <= can.settings if api == "chat" else not {"seed", "stop"} & can.settings


def test_the_api_that_was_found_is_used() -> None:
    found = over_responses(ModelBinding(model="openai/m"))
    assert found is not None
    assert isinstance(make_model(found, seed=0, answer_key=None), ResponsesModel)
    assert over_responses(found) is None
    assert over_responses(ModelBinding(model="http://h/v1#m")) is None
    recorded = ModelBinding(model="openai/gpt-5.2-pro", api="chat")  # by a run from before it was known
    assert isinstance(make_model(recorded, seed=0, answer_key=None), OpenAIModel)


def over(url: str) -> ResponsesModel:
    return ResponsesModel("m", api_key_env=KEY_ENV, base_url=url)


@pytest.mark.usefixtures("vendor_key", "certificates_read_once")
async def test_calls_and_failures_go_through_the_same_client() -> None:
    seen: list[web.Request] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request)
        if len(seen) == 1:
            return web.json_response(response(said("Yes")), headers={"x-ratelimit-remaining-requests": "3"})
        return web.json_response({"error": {"message": f"slowly, {KEY}"}}, status=429, headers={"Retry-After": "2"})

    async with served(over, handler) as model:
        reply = await model.complete(MESSAGES, Decoding(), step_key="c/1/a")
        with pytest.raises(ModelError) as caught:
            await model.complete(MESSAGES, Decoding(), step_key="c/1/b")
    assert (reply.text, reply.limits and reply.limits.requests_left) == ("Yes", 3)
    assert (caught.value.kind, caught.value.retry_after_s) == ("rate_limited", 2.0)
    assert KEY not in caught.value.message
    assert (seen[0].path, seen[0].headers["X-Client-Request-Id"]) == ("/v1/responses", "c/1/a")
    assert seen[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.usefixtures("vendor_key", "certificates_read_once")
async def test_the_trial_says_that_a_model_is_offered_elsewhere_and_finds_out_what_it_takes_there() -> None:
    async def handler(request: web.Request) -> web.Response:
        body = await request.json()
        if request.path.endswith("/chat/completions"):
            return web.json_response({"error": {"message": CHAT_REFUSAL}}, status=404)
        if "temperature" in body:
            return web.json_response({"error": {"message": "Unsupported parameter: 'temperature'"}}, status=400)
        return web.json_response(response(said("Yes")))

    trial = Trial(Decoding(), 5.0)
    chat = lambda url: OpenAIModel("m", api_key_env=KEY_ENV, base_url=url)  # noqa: E731
    async with served(chat, handler) as model:
        with pytest.raises(OnlyOverResponses, match="v1/responses"):
            await probe(model, trial)
    async with served(over, handler) as other:
        found, _ = await probe(other, trial)
    assert found == ModelProfile(
        schemas="free", server="openai", reasons=True, omitted=("temperature",), api="responses"
    )


@pytest.mark.usefixtures("vendor_key", "certificates_read_once")
@pytest.mark.parametrize("message", ["Unknown parameter: '{}'.", "Unrecognized request argument supplied: {}"])
@pytest.mark.parametrize(("key", "setting"), [("store", "store"), ("reasoning", "reasoning_effort")])
async def test_what_only_this_api_takes_is_left_out_where_a_server_refuses_it(
    key: str, setting: str, message: str
) -> None:
    seen: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(await request.json())
        if key in seen[-1]:
            return web.json_response({"error": {"message": message.format(key)}}, status=400)
        return web.json_response(response(said("Yes")))

    decoding = Decoding(reasoning_effort="low")
    if key == "store":
        told = Trial(msgspec.structs.replace(decoding, extra='{"store": false}'), 5.0)
    else:
        told = Trial(decoding, 5.0, written=frozenset({setting}))
    async with served(over, handler) as model:
        found, _ = await probe(model, Trial(decoding, 5.0))
        with pytest.raises(ConfigError, match=setting):
            await probe(model, told)
    assert found.omitted == (setting,)
    assert [key in body for body in seen[:2]] == [True, False]
    role = RoleBinding(model="openai/m", reasoning_effort="low", profile=found)
    assert key not in sent([], sent_decoding(role))
    usual = role.model_copy(update={"profile": found.model_copy(update={"omitted": ()})})
    assert fingerprint(ASK, role, "00") != fingerprint(ASK, usual, "00")


@pytest.mark.usefixtures("vendor_key", "certificates_read_once")
async def test_a_server_that_knows_no_include_gives_no_log_probabilities() -> None:
    async def handler(request: web.Request) -> web.Response:
        if "include" in await request.json():
            return web.json_response({"error": {"message": "Unknown parameter: 'include'."}}, status=400)
        return web.json_response(response(said("Yes")))

    async with served(over, handler) as model:
        found, given = await probe(model, Trial(ASKED, 5.0, needs_logprobs=True))
    assert (found.alternatives, given) == (0, False)
