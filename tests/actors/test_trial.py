"""What the trial calls before a run find out of a server, and what they leave out for it."""

from __future__ import annotations

from typing import Any

import pytest
from openai_server import completion
from trial_server import DECODING, REPLIES, Body, holds, refusal, schema_of, tried

from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.openai_wire import encode_request
from moot.actors.models.trial import Trial
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import sent_decoding
from moot.protocols.errors import CapabilityMissing, ConfigError, ModelUnavailable


@pytest.mark.parametrize(
    ("owner", "dialect"),
    [("llamacpp", "llama.cpp"), ("vllm", "vllm"), ("sglang", "sglang"), ("library", "ollama"), ("me", "portable")],
)
async def test_every_schema_is_tried_in_the_dialect_of_the_server(owner: str, dialect: str) -> None:
    profile, _, seen, logs = await tried(holds, Trial(DECODING, 5.0, REPLIES), owner)
    assert profile == ModelProfile(schemas=dialect, server=dialect)  # type: ignore[arg-type]
    names = [set((schema_of(body) or {})["properties"]) for body in seen]
    assert names == [{"answer", "reasoning", "confidence"}, {"support", "score", "rationale"}]
    assert [body["max_tokens"] for body in seen] == [300, 64]
    assert not logs


async def test_a_server_that_knows_no_schema_is_read_freely_and_that_is_said() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        return refusal("'response_format' of type 'json_schema' is not supported") if schema_of(body) else holds(body)

    profile, _, seen, logs = await tried(answer, Trial(DECODING, 5.0, REPLIES))
    assert profile == ModelProfile(schemas="free")
    assert schema_of(seen[-1]) is None
    assert len(logs) == 1
    assert "not held to a schema" in logs[0]
    with pytest.raises(CapabilityMissing, match="--structured off"):
        await tried(answer, Trial(DECODING, 5.0, REPLIES, insists=True))


async def test_a_server_that_takes_a_schema_and_ignores_it_is_found_out() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        return 200, completion("Yes, of course.")

    profile, _, _, logs = await tried(answer, Trial(DECODING, 5.0, REPLIES))
    assert profile == ModelProfile(schemas="free")
    assert "Yes, of course." in logs[0]
    insisted, _, _, logs = await tried(answer, Trial(DECODING, 5.0, REPLIES, insists=True))
    assert insisted.schemas == "portable"
    assert "may not be held" in logs[0]


async def test_a_setting_that_nobody_wrote_down_is_left_out_once() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        if "temperature" in body:
            return refusal("Unsupported value: 'temperature' does not support 0.3 with this model.")
        if "top_p" in body:
            return refusal("Unsupported parameter: 'top_p' is not supported with this model.")
        return holds(body)

    profile, _, seen, logs = await tried(answer, Trial(DECODING, 5.0, REPLIES))
    assert profile.omitted == ("temperature", "top_p")
    assert profile.schemas == "portable"
    assert len(seen) == 4
    assert [("temperature" in line, "top_p" in line) for line in logs] == [(True, False), (False, True)]
    with pytest.raises(ConfigError, match="temperature"):
        await tried(answer, Trial(DECODING, 5.0, REPLIES, written=frozenset({"temperature"})))


async def test_a_model_that_only_reasons_is_found_to_and_its_replies_are_held() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        return 200, completion("", finish_reason="length")

    profile, _, _, logs = await tried(answer, Trial(DECODING, 5.0, REPLIES))
    assert (profile.schemas, profile.reasons) == ("portable", True)
    assert "thinks before it replies" in logs[0]


async def test_a_server_that_wants_the_bound_by_its_newer_name() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        if "max_tokens" in body:
            return refusal("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.")
        return holds(body)

    profile, _, seen, _ = await tried(answer, Trial(DECODING, 5.0, REPLIES))
    assert (profile.bounds_completion, profile.schemas) == (True, "portable")
    assert [body.get("max_completion_tokens") for body in seen] == [None, 300, 64]
    decoding = sent_decoding(RoleBinding(profile=profile))
    assert b'"max_completion_tokens":400' in encode_request("m", [], decoding)


@pytest.mark.parametrize("status", [400, 500])
async def test_a_chat_template_without_a_system_role(status: int) -> None:
    def answer(body: Body) -> tuple[int, Any]:
        system = any(message["role"] == "system" for message in body["messages"])
        return (status, refusal("System role not supported")[1]) if system else holds(body)

    profile, _, seen, _ = await tried(answer, Trial(DECODING, 5.0, REPLIES))
    assert (profile.folds_system, profile.schemas) == (True, "portable")
    (message,) = seen[-1]["messages"]
    assert "one word" in message["content"]


async def test_a_request_that_is_quoted_in_an_error_names_no_system_message() -> None:
    quoted = "[{'type': 'missing', 'input': {'messages': [{'role': 'system', 'content': 'x'}]}}]"
    with pytest.raises(ModelUnavailable, match="missing"):
        await tried(lambda body: refusal(quoted), Trial(DECODING, 5.0))


async def test_what_is_no_matter_of_schemas_ends_the_trial() -> None:
    with pytest.raises(ModelUnavailable, match="context length"):
        await tried(lambda body: refusal("maximum context length exceeded"), Trial(DECODING, 5.0, REPLIES))


async def test_of_two_settings_that_exclude_each_other_the_written_one_stays() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        if "temperature" in body and "top_p" in body:
            return refusal("`temperature` and `top_p` cannot both be specified for this model.")
        return holds(body)

    for written in ({"temperature"}, {"top_p"}, set[str]()):
        profile, _, _, _ = await tried(answer, Trial(DECODING, 5.0, REPLIES, written=frozenset(written)))
        assert profile.omitted == (("temperature",) if written == {"top_p"} else ("top_p",))


async def test_a_refused_schema_is_no_matter_of_the_settings_that_the_error_names_beside_it() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        if schema_of(body):
            return refusal("response_format is not supported by this system; supported: temperature, top_p")
        return holds(body)

    written = frozenset({"temperature", "top_p"})
    profile, _, _, logs = await tried(answer, Trial(DECODING, 5.0, REPLIES, written=written))
    assert profile == ModelProfile(schemas="free")
    assert len(logs) == 1


async def test_a_model_that_is_still_thinking_at_the_end_of_its_tokens_gets_more() -> None:
    """OpenAI answers 400 then, and no empty reply."""

    def answer(body: Body) -> tuple[int, Any]:
        if body["max_tokens"] < 1000:
            return refusal("Could not finish the message because max_tokens or model output limit was reached.")
        return holds(body)

    profile, _, seen, _ = await tried(answer, Trial(DECODING, 5.0, REPLIES, reasoning_tokens=4000))
    assert (profile.schemas, profile.reasons) == ("portable", True)
    assert [body["max_tokens"] for body in seen] == [300, 4300, 4064]
