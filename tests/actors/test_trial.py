"""What the trial calls before a run find out of a server, and what they leave out for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aiohttp import web
from http_backends import completion
from loopback import Handler, served
from structlog.testing import capture_logs

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.openai_wire import encode_request
from moot.actors.models.probe import probe
from moot.actors.models.trial import AskedReply, Trial
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import sent_decoding
from moot.protocols.errors import CapabilityMissing, ConfigError, ModelUnavailable
from moot.protocols.messages import Decoding
from moot.protocols.replies import Position, Score

DECODING = Decoding(temperature=0.3, top_p=0.9, max_tokens=300)
REPLIES = (AskedReply(Position, ("Yes", "No"), 300), AskedReply(Score, None, 300))
HELD = '{"answer": "Yes", "support": "supported", "reasoning": "r"'
LOGPROBS = {"content": [{"token": "{", "logprob": -1, "top_logprobs": [{"token": "{", "logprob": -1}]}]}

Body = Mapping[str, Any]


def schema_of(body: Body) -> dict[str, Any] | None:
    wanted = body.get("response_format")
    return wanted["json_schema"]["schema"] if wanted else None


def refusal(message: str) -> tuple[int, Any]:
    return 400, {"error": {"message": message}}


def server(answer: Callable[[Body], tuple[int, Any]], seen: list[Body], owner: str = "somebody") -> Handler:
    """A server whose list of models names its owner, and that answers every call by its body."""

    async def handle(request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.json_response({"data": [{"id": "m", "owned_by": owner}]})
        body = json.loads(await request.read())
        seen.append(body)
        status, said = answer(body)
        return web.json_response(said, status=status)

    return handle


async def tried(
    answer: Callable[[Body], tuple[int, Any]], trial: Trial, owner: str = "somebody"
) -> tuple[ModelProfile, bool, list[Body], list[str]]:
    """The profile, whether log-probabilities came, what was sent, and what was logged."""
    seen: list[Body] = []
    async with served(lambda url: CompatibleModel(url, "m"), server(answer, seen, owner)) as model:
        await model.check()
        with capture_logs() as logs:
            profile, given = await probe(model, trial)
    return profile, given, seen, [str(line) for line in logs]


def holds(body: Body) -> tuple[int, Any]:
    """Holds replies to schemas, as llama.cpp, vLLM and others do."""
    schema = schema_of(body)
    if schema is None:
        return 200, completion("Yes")
    first = next(iter(schema["properties"]))
    return 200, completion(f'{{"{first}": "Yes"', finish_reason="length")


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


async def test_a_server_that_refuses_log_probabilities_together_with_a_schema() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        if body.get("logprobs") and schema_of(body):
            return refusal("logprobs cannot be used together with response_format")
        if body.get("logprobs"):
            return 200, completion("Yes", logprobs=LOGPROBS)
        return holds(body)

    asks = Decoding(temperature=0.3, top_p=None, max_tokens=300, top_logprobs=1)
    profile, given, _, _ = await tried(answer, Trial(asks, 5.0, REPLIES, needs_logprobs=True))
    assert (profile.schemas, given) == ("free", True)


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


@pytest.mark.parametrize(
    ("alternatives", "masked"),
    [
        ({'{"': 0.0}, True),
        ({'{"': -0.05, "{": -3.1, "{\n": -6.2, "Yes": -9999.0}, True),  # a mask leaves several ways to open
        ({'{"': -2.3, "Yes": -0.2}, False),
        ({'{"': -6.0, "\u2581Yes": -0.005}, False),  # a blank before a word opens no object
    ],
)
async def test_whether_log_probabilities_are_taken_behind_the_mask(
    alternatives: dict[str, float], masked: bool
) -> None:
    """Whoever was asked to say Yes and is sure of a bracket had no choice."""
    top = [{"token": token, "logprob": logprob} for token, logprob in alternatives.items()]
    one = {"token": '{"', "logprob": alternatives['{"'], "top_logprobs": top}

    def answer(body: Body) -> tuple[int, Any]:
        status, said = holds(body)
        said["choices"][0]["logprobs"] = {"content": [one] * 3}
        return status, said

    asks = Decoding(temperature=0.3, top_p=None, max_tokens=300, top_logprobs=4)
    profile, _, _, _ = await tried(answer, Trial(asks, 5.0, REPLIES, needs_logprobs=True))
    assert profile.masked_logprobs is masked


async def test_a_server_that_takes_few_values_of_an_enum_is_sent_no_labels() -> None:
    many = tuple(f"label {number}" for number in range(150))

    def answer(body: Body) -> tuple[int, Any]:
        schema = schema_of(body)
        values = schema["properties"].get("answer", {}).get("enum", ()) if schema else ()
        return refusal("schema: an enum may have at most 100 values") if len(values) > 100 else holds(body)

    asked = (AskedReply(Position, many, 300),)
    vllm, _, _, logs = await tried(answer, Trial(DECODING, 5.0, asked), "vllm")
    assert vllm == ModelProfile(schemas="vllm", server="vllm", listed_labels=False)
    assert not logs


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


async def test_log_probabilities_that_only_the_user_wants_are_not_refused_in_silence() -> None:
    """Every ask would bring them, and be refused."""

    def answer(body: Body) -> tuple[int, Any]:
        return refusal("logprobs are not supported") if body.get("logprobs") else holds(body)

    asks = Decoding(temperature=0.3, top_p=None, max_tokens=300, top_logprobs=3)
    with pytest.raises(ConfigError, match="top_logprobs"):
        await tried(answer, Trial(asks, 5.0, REPLIES))
