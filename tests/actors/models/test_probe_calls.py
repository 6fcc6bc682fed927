"""What the trial calls before a run find out of a server and its log-probabilities, and what they leave out for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from openai_server import completion, served_model
from trial_server import DECODING, LOGPROBS, REPLIES, Body, enforce_schema, refusal, refusing, run_trial, schema_of

from moot.actors.agent.request_fingerprint import constrained_schema, sent_decoding
from moot.actors.agent.roles import RoleBinding
from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.model_profile import ModelProfile, ReplyOverride
from moot.actors.models.openai_wire import encode_request
from moot.actors.models.probe import probe
from moot.actors.models.probe_calls import ExpectedReply, ProbeRequest
from moot.protocols.errors import CapabilityMissing, ConfigError, ModelUnavailable
from moot.protocols.messages import Decoding
from moot.protocols.replies import Position, Score
from moot.protocols.reply_ids import reply_id


@pytest.mark.parametrize(
    ("owner", "dialect"),
    [("llamacpp", "llama.cpp"), ("vllm", "vllm"), ("sglang", "sglang"), ("library", "ollama"), ("me", "portable")],
)
async def test_every_schema_is_tried_in_the_dialect_of_the_server(owner: str, dialect: str) -> None:
    profile, _, seen, logs = await run_trial(enforce_schema, ProbeRequest(DECODING, 5.0, REPLIES), owner)
    assert profile == ModelProfile(schemas=dialect, server=dialect)  # type: ignore[arg-type]
    names = [set((schema_of(body) or {})["properties"]) for body in seen]
    assert names == [{"answer", "reasoning", "confidence"}, {"support", "score", "rationale"}]
    assert [body["max_tokens"] for body in seen] == [300, 64]
    assert not logs


async def test_a_server_that_knows_no_schema_is_read_freely_and_that_is_logged() -> None:
    answer = refusing(lambda body: schema_of(body), "'response_format' of type 'json_schema' is not supported")
    profile, _, seen, logs = await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES))
    assert profile == ModelProfile(schemas="free")
    assert schema_of(seen[-1]) is None
    assert len(logs) == 1
    assert "not constrained to a schema" in logs[0]
    with pytest.raises(CapabilityMissing, match="--structured off"):
        await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES, insists=True))


async def test_a_server_that_takes_a_schema_and_ignores_it_is_found_out() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        return 200, completion("Yes, of course.")

    profile, _, _, logs = await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES))
    assert profile == ModelProfile(schemas="free")
    assert "Yes, of course." in logs[0]
    with pytest.raises(CapabilityMissing, match=r"--structured off.*Yes, of course\."):
        await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES, insists=True))


async def test_a_model_that_only_reasons_is_detected_and_its_replies_are_constrained() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        return 200, completion("", finish_reason="length")

    profile, _, _, logs = await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES))
    assert (profile.schemas, profile.reasons) == ("portable", True)
    assert "reasons before it replies" in logs[0]


async def test_a_server_that_wants_the_bound_by_its_newer_name() -> None:
    answer = refusing(
        lambda body: "max_tokens" in body,
        "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
    )
    profile, _, seen, _ = await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES))
    assert (profile.bounds_completion, profile.schemas) == (True, "portable")
    assert [body.get("max_completion_tokens") for body in seen] == [None, 300, 64]
    decoding = sent_decoding(RoleBinding(profile=profile))
    assert b'"max_completion_tokens":400' in encode_request("m", [], decoding)


@pytest.mark.parametrize("status", [400, 500])
async def test_a_chat_template_without_a_system_role(status: int) -> None:
    answer = refusing(
        lambda body: any(message["role"] == "system" for message in body["messages"]),
        "System role not supported",
        status,
    )
    profile, _, seen, _ = await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES))
    assert (profile.folds_system, profile.schemas) == (True, "portable")
    (message,) = seen[-1]["messages"]
    assert "one word" in message["content"]


async def test_a_request_that_is_quoted_in_an_error_names_no_system_message() -> None:
    quoted = "[{'type': 'missing', 'input': {'messages': [{'role': 'system', 'content': 'x'}]}}]"
    with pytest.raises(ModelUnavailable, match="missing"):
        await run_trial(lambda body: refusal(quoted), ProbeRequest(DECODING, 5.0))
    with pytest.raises(ModelUnavailable, match="context length"):
        await run_trial(lambda body: refusal("maximum context length exceeded"), ProbeRequest(DECODING, 5.0, REPLIES))


async def test_of_two_settings_that_exclude_each_other_the_written_one_stays() -> None:
    answer = refusing(
        lambda body: "temperature" in body and "top_p" in body,
        "`temperature` and `top_p` cannot both be specified for this model.",
    )
    for written in ({"temperature"}, {"top_p"}, set[str]()):
        profile, _, _, _ = await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES, written=frozenset(written)))
        assert profile.omitted == (("temperature",) if written == {"top_p"} else ("top_p",))


async def test_a_refused_schema_is_no_matter_of_the_settings_that_the_error_names_beside_it() -> None:
    answer = refusing(
        lambda body: schema_of(body),
        "response_format is not supported by this system; supported: temperature, top_p",
    )
    written = frozenset({"temperature", "top_p"})
    profile, _, _, logs = await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES, written=written))
    assert profile == ModelProfile(schemas="free")
    assert len(logs) == 1


async def test_a_model_that_is_still_thinking_at_the_end_of_its_tokens_gets_more() -> None:
    """OpenAI answers 400 then, and no empty reply."""

    answer = refusing(
        lambda body: body["max_tokens"] < 1000,
        "Could not finish the message because max_tokens or model output limit was reached.",
    )
    profile, _, seen, _ = await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES, reasoning_tokens=4000))
    assert (profile.schemas, profile.reasons) == ("portable", True)
    assert [body["max_tokens"] for body in seen] == [300, 4300, 4064]


POSITION, SCORE = reply_id(Position), reply_id(Score)
LABELS = tuple(f"label {number}" for number in range(90))


def refuses(word: str) -> Any:
    """A server that takes no schema with a property of that name."""

    def answer(body: Body) -> tuple[int, Any]:
        properties = (schema_of(body) or {"properties": {}})["properties"]
        return refusal(f"invalid schema for response_format: {word}") if word in properties else enforce_schema(body)

    return answer


@pytest.mark.parametrize(("word", "free"), [("confidence", POSITION), ("rationale", SCORE)])
async def test_a_schema_that_is_refused_leaves_that_reply_free_and_no_other(word: str, free: str) -> None:
    profile, _, _, logs = await run_trial(refuses(word), ProbeRequest(DECODING, 5.0, REPLIES), "vllm")
    assert profile == ModelProfile(
        schemas="vllm", server="vllm", exceptions=(ReplyOverride(reply=free, schemas="free"),)
    )
    assert len(logs) == 1
    assert free.partition(":")[2] in logs[0]
    binding = RoleBinding(model="http://h/v1#m", profile=profile)
    held = [
        constrained_schema(binding, "on request", model, ("Yes", "No"), 300, {}) is None for model in (Position, Score)
    ]
    assert held == [free == POSITION, free == SCORE]
    with pytest.raises(CapabilityMissing, match="--structured off"):
        await run_trial(refuses(word), ProbeRequest(DECODING, 5.0, REPLIES, insists=True))


async def test_a_server_that_refuses_every_schema_is_not_asked_for_each_kind_in_each_way() -> None:
    answer = refusing(lambda body: schema_of(body), "response_format is unknown here")
    profile, _, seen, _ = await run_trial(answer, ProbeRequest(DECODING, 5.0, REPLIES), "vllm")
    assert (profile.schemas, profile.exceptions) == ("free", ())
    assert len(seen) == 6  # four ways of the first kind, the smallest other schema, and one free reply


async def test_a_server_that_takes_few_values_of_an_enum_is_sent_no_labels() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        schema = schema_of(body)
        values = schema["properties"].get("answer", {}).get("enum", ()) if schema else ()
        return refusal("schema: takes at most 50 enum values") if len(values) > 50 else enforce_schema(body)

    asked = (ExpectedReply(Position, LABELS, 300), ExpectedReply(Score, None, 300))
    profile, _, _, logs = await run_trial(answer, ProbeRequest(DECODING, 5.0, asked), "vllm")
    assert profile == ModelProfile(schemas="vllm", server="vllm", listed_labels=False)
    assert not logs


ALL: dict[str, Any] = {"seed": 7, "stop": ("END",), "repetition_penalty": 1.1, "reasoning_effort": "low"}
SENT = Decoding(temperature=0.3, top_p=0.9, max_tokens=300, seed=7, stop=("END",), reasoning_effort="low")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("seed", "Unrecognized request argument supplied: seed"),
        ("temperature", "Unsupported value: 'temperature' does not support that with this model."),
        ("stop", "Unsupported parameter: 'stop' is not supported with this model."),
        ("reasoning_effort", "unknown field `reasoning.effort`"),
    ],
)
async def test_any_setting_that_is_named_is_left_out_once_unless_it_was_written_down(name: str, message: str) -> None:
    answer = refusing(lambda body: name in body, message)
    profile, _, seen, logs = await run_trial(answer, ProbeRequest(SENT, 5.0, REPLIES))
    assert profile == ModelProfile(schemas="portable", omitted=(name,))  # type: ignore[arg-type]
    assert [name in body for body in seen] == [True, False, False]
    assert len(logs) == 1
    assert name in logs[0]
    with pytest.raises(ConfigError, match=f"`{name}`"):
        await run_trial(answer, ProbeRequest(SENT, 5.0, REPLIES, written=frozenset({name})))


async def test_a_key_of_ones_own_that_is_named_is_an_error() -> None:
    answer = refusing(lambda body: "top_k" in body, "Unknown parameter: 'top_k'.")
    with pytest.raises(ConfigError, match=r"`top_k`.*`extra`"):
        await run_trial(answer, ProbeRequest(Decoding(extra='{"top_k": 5}'), 5.0, REPLIES))


async def test_a_server_that_knows_no_stream_options_streams_without_them() -> None:
    streamed: list[Body] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        if not body.get("stream"):
            status, said = enforce_schema(body)
            return web.json_response(said, status=status)
        streamed.append(body)
        if "stream_options" in body:
            return web.json_response({"error": {"message": "stream_options is not permitted"}}, status=400)
        return web.json_response(completion("Yes"))

    async with served_model(lambda url: CompatibleModel(url, "m"), handle) as model:
        profile, *_ = await probe(model, ProbeRequest(DECODING, 5.0, REPLIES, streams=True))
    assert profile.omitted == ("stream_options",)
    assert len(streamed) == 2


ASKS = Decoding(temperature=0.3, top_p=None, max_tokens=300, top_logprobs=5)
OPENING = ['{"', 'answer": "Yes"']
WANTED = ProbeRequest(ASKS, 5.0, REPLIES, needs_logprobs=True)


def with_logprobs(body: Body) -> tuple[int, Any]:
    status, said = enforce_schema(body)
    if body.get("logprobs"):
        said["choices"][0]["logprobs"] = LOGPROBS
    return status, said


async def test_a_bound_of_the_alternatives_is_kept_to_and_the_schemas_stay() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        most = body.get("top_logprobs", 0)
        return refusal(f"top_logprobs must be between 0 and 3, got {most}") if most > 3 else with_logprobs(body)

    profile, given, seen, logs = await run_trial(answer, WANTED)
    assert (profile.schemas, profile.alternatives, profile.logprobs_when_held, given) == ("portable", 3, True, True)
    assert [body["top_logprobs"] for body in seen] == [5, 3, 3]
    assert len(logs) == 1
    binding = RoleBinding(top_logprobs=5, profile=profile)
    assert sent_decoding(binding).top_logprobs == 3
    assert sent_decoding(RoleBinding(top_logprobs=2, profile=profile)).top_logprobs == 2
    with pytest.raises(ConfigError, match="top_logprobs: 3"):
        await run_trial(
            answer, ProbeRequest(ASKS, 5.0, REPLIES, needs_logprobs=True, written=frozenset({"top_logprobs"}))
        )


def either(body: Body) -> tuple[int, Any]:
    """Log-probabilities or a schema."""
    if body.get("logprobs") and schema_of(body):
        return refusal("logprobs cannot be used together with response_format")
    return with_logprobs(body)


async def test_a_server_that_refuses_log_probabilities_together_with_a_schema_keeps_the_schema() -> None:
    profile, given, seen, logs = await run_trial(either, WANTED)
    assert (profile.schemas, profile.logprobs_when_held, given) == ("portable", False, True)
    assert len(logs) == 1
    assert "--structured off" in logs[0]
    held = [(bool(schema_of(body)), bool(body.get("logprobs"))) for body in seen]
    assert held == [(True, True), (True, False), (True, False), (False, True)]
    needed = tuple(ExpectedReply(each.model, each.labels, 300, "needed") for each in REPLIES)
    with pytest.raises(CapabilityMissing, match="--structured off"):
        await run_trial(either, ProbeRequest(ASKS, 5.0, needed, needs_logprobs=True))


async def test_log_probabilities_are_requested_for_unconstrained_replies_beside_constrained_ones_without() -> None:
    held = (ExpectedReply(Score, None, 300, "no"),)
    profile, given, seen, logs = await run_trial(
        either, ProbeRequest(ASKS, 5.0, held, needs_logprobs=True, free_logprobs=True)
    )
    assert (profile.schemas, profile.logprobs_when_held, given) == ("portable", True, True)
    assert len(seen) == 2
    assert not logs


async def test_a_server_that_gives_none_is_asked_for_none_and_keeps_the_schema() -> None:
    answer = refusing(lambda body: body.get("logprobs"), "logprobs are not supported")
    profile, given, _, _ = await run_trial(answer, WANTED)
    assert (profile.schemas, profile.alternatives, given) == ("portable", 0, False)
    assert sent_decoding(RoleBinding(top_logprobs=5, profile=profile)).top_logprobs is None
    with pytest.raises(ConfigError, match="top_logprobs"):  # that only the user wants: every ask would be refused
        await run_trial(answer, ProbeRequest(ASKS, 5.0, REPLIES))


@pytest.mark.parametrize(
    ("alternatives", "stage"),
    [
        ({'{"': 0.0}, "masked"),
        ({'{"': -0.05, "{": -3.1, "{\n": -6.2, "Yes": -9999.0}, "masked"),  # a mask leaves several ways to open
        ({'{"': -0.05, "{": -3.1, "Yes": -100.0}, "masked"),
        ({'{"': -2.3, "Yes": -0.2}, "raw"),
        ({'{"': -0.001, "Yes": -9.0}, "raw"),  # a mask leaves nothing to what is forbidden
        ({'{"': -6.0, "\u2581Yes": -0.005}, "raw"),  # a blank before a word opens no object
        ({'{"': -6.0}, "unknown"),
        ({'{"': -2.0, "<|eot|>": -0.2, "token_id:17": -4.0}, "unknown"),
    ],
)
async def test_whether_log_probabilities_are_taken_behind_the_mask(alternatives: dict[str, float], stage: str) -> None:
    """Whoever was asked to say Yes and is sure of a bracket had no choice."""
    top = [{"token": token, "logprob": logprob} for token, logprob in alternatives.items()]
    one = {"token": '{"', "logprob": alternatives['{"'], "top_logprobs": top}

    def answer(body: Body) -> tuple[int, Any]:
        status, said = enforce_schema(body)
        said["choices"][0]["logprobs"] = {"content": [one] * 3}
        return status, said

    profile, _, _, _ = await run_trial(answer, WANTED)
    assert profile.held_logprobs == stage


async def test_one_reply_that_shows_forbidden_tokens_outweighs_those_that_show_none() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        status, said = enforce_schema(body)
        is_second = "score" in (schema_of(body) or {"properties": {}})["properties"]
        top = [{"token": "{", "logprob": -0.001}, *([{"token": "Yes", "logprob": -7.0}] if is_second else [])]
        said["choices"][0]["logprobs"] = {"content": [{"token": "{", "logprob": -0.001, "top_logprobs": top}]}
        return status, said

    profile, _, _, _ = await run_trial(answer, WANTED)
    assert profile.held_logprobs == "raw"


@pytest.mark.parametrize(
    ("message", "usage", "tokens", "stage"),
    [
        ({"reasoning_content": "Hm."}, {}, ["Hm", ".", '{"', "x"], "unknown"),  # no text of the reply among them
        ({}, {"completion_tokens_details": {"reasoning_tokens": 2}}, ["Hm", ".", *OPENING], "unknown"),
        ({"reasoning_content": "Hm."}, {}, OPENING, "raw"),
        ({}, {"completion_tokens_details": {"reasoning_tokens": 2}}, OPENING, "raw"),
    ],
)
async def test_the_stage_is_never_read_from_hidden_reasoning(
    message: dict[str, Any], usage: dict[str, Any], tokens: list[str], stage: str
) -> None:
    """A mask begins with the reply: what is thought before shows what it forbids, and that would stick."""
    top = [{"token": "Yes", "logprob": -7.0}]
    content = [{"token": token, "logprob": -0.001, "top_logprobs": top} for token in tokens]

    def answer(body: Body) -> tuple[int, Any]:
        if schema_of(body) is None:
            return enforce_schema(body)
        said = completion("".join(OPENING), logprobs={"content": content}, finish_reason="length")
        said["choices"][0]["message"] |= message
        said["usage"] |= usage
        return 200, said

    profile, _, _, _ = await run_trial(answer, ProbeRequest(ASKS, 5.0, REPLIES[:1], needs_logprobs=True))
    assert (profile.schemas, profile.held_logprobs) == ("portable", stage)


@pytest.mark.parametrize(("masked", "stage"), [(True, "masked"), (False, None)])
def test_a_profile_of_two_stages_is_still_read(masked: bool, stage: str | None) -> None:
    assert ModelProfile.model_validate({"schemas": "vllm", "masked_logprobs": masked}).held_logprobs == stage


@pytest.mark.parametrize("status", [429, 503])
async def test_a_trial_call_does_not_wait_for_what_will_not_come(status: int) -> None:
    calls: list[str] = []

    async def refuses(request: web.Request) -> web.Response:
        calls.append(request.path)
        said = {"error": {"message": "the quota is used up"}}
        return web.json_response(said, status=status, headers={"Retry-After": "432"})

    async with served_model(lambda url: CompatibleModel(url, "m"), refuses) as model:
        with pytest.raises(ModelUnavailable, match=r"432 s.*the quota is used up"):
            await probe(model, ProbeRequest(DECODING, 5.0))
    assert len(calls) == 1
