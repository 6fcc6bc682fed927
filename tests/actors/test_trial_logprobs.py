"""What the trial calls find out of a server's log-probabilities: how many, beside a schema, behind its mask."""

from __future__ import annotations

from typing import Any

import pytest
from openai_server import completion
from trial_server import LOGPROBS, REPLIES, Body, holds, refusal, refusing, schema_of, tried

from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.trial import AskedReply, Trial
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import sent_decoding
from moot.protocols.errors import CapabilityMissing, ConfigError
from moot.protocols.messages import Decoding
from moot.protocols.replies import Score

ASKS = Decoding(temperature=0.3, top_p=None, max_tokens=300, top_logprobs=5)
OPENING = ['{"', 'answer": "Yes"']
WANTED = Trial(ASKS, 5.0, REPLIES, needs_logprobs=True)


def with_logprobs(body: Body) -> tuple[int, Any]:
    status, said = holds(body)
    if body.get("logprobs"):
        said["choices"][0]["logprobs"] = LOGPROBS
    return status, said


async def test_a_bound_of_the_alternatives_is_kept_to_and_the_schemas_stay() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        most = body.get("top_logprobs", 0)
        return refusal(f"top_logprobs must be between 0 and 3, got {most}") if most > 3 else with_logprobs(body)

    profile, given, seen, logs = await tried(answer, WANTED)
    assert (profile.schemas, profile.alternatives, profile.logprobs_when_held, given) == ("portable", 3, True, True)
    assert [body["top_logprobs"] for body in seen] == [5, 3, 3]
    assert len(logs) == 1
    binding = RoleBinding(top_logprobs=5, profile=profile)
    assert sent_decoding(binding).top_logprobs == 3
    assert sent_decoding(RoleBinding(top_logprobs=2, profile=profile)).top_logprobs == 2
    with pytest.raises(ConfigError, match="top_logprobs: 3"):
        await tried(answer, Trial(ASKS, 5.0, REPLIES, needs_logprobs=True, written=frozenset({"top_logprobs"})))


def either(body: Body) -> tuple[int, Any]:
    """Log-probabilities or a schema."""
    if body.get("logprobs") and schema_of(body):
        return refusal("logprobs cannot be used together with response_format")
    return with_logprobs(body)


async def test_a_server_that_refuses_log_probabilities_together_with_a_schema_keeps_the_schema() -> None:
    profile, given, seen, logs = await tried(either, WANTED)
    assert (profile.schemas, profile.logprobs_when_held, given) == ("portable", False, True)
    assert len(logs) == 1
    assert "--structured off" in logs[0]
    held = [(bool(schema_of(body)), bool(body.get("logprobs"))) for body in seen]
    assert held == [(True, True), (True, False), (True, False), (False, True)]
    needed = tuple(AskedReply(each.model, each.labels, 300, "needed") for each in REPLIES)
    with pytest.raises(CapabilityMissing, match="--structured off"):
        await tried(either, Trial(ASKS, 5.0, needed, needs_logprobs=True))


async def test_log_probabilities_of_free_replies_are_asked_for_beside_held_ones_without() -> None:
    held = (AskedReply(Score, None, 300, "no"),)
    profile, given, seen, logs = await tried(either, Trial(ASKS, 5.0, held, needs_logprobs=True, free_logprobs=True))
    assert (profile.schemas, profile.logprobs_when_held, given) == ("portable", True, True)
    assert len(seen) == 2
    assert not logs


async def test_a_server_that_gives_none_is_asked_for_none_and_keeps_the_schema() -> None:
    answer = refusing(lambda body: body.get("logprobs"), "logprobs are not supported")
    profile, given, _, _ = await tried(answer, WANTED)
    assert (profile.schemas, profile.alternatives, given) == ("portable", 0, False)
    assert sent_decoding(RoleBinding(top_logprobs=5, profile=profile)).top_logprobs is None
    with pytest.raises(ConfigError, match="top_logprobs"):  # that only the user wants: every ask would be refused
        await tried(answer, Trial(ASKS, 5.0, REPLIES))


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
        status, said = holds(body)
        said["choices"][0]["logprobs"] = {"content": [one] * 3}
        return status, said

    profile, _, _, _ = await tried(answer, WANTED)
    assert profile.held_logprobs == stage


async def test_one_reply_that_shows_forbidden_tokens_outweighs_those_that_show_none() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        status, said = holds(body)
        is_second = "score" in (schema_of(body) or {"properties": {}})["properties"]
        top = [{"token": "{", "logprob": -0.001}, *([{"token": "Yes", "logprob": -7.0}] if is_second else [])]
        said["choices"][0]["logprobs"] = {"content": [{"token": "{", "logprob": -0.001, "top_logprobs": top}]}
        return status, said

    profile, _, _, _ = await tried(answer, WANTED)
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
            return holds(body)
        said = completion("".join(OPENING), logprobs={"content": content}, finish_reason="length")
        said["choices"][0]["message"] |= message
        said["usage"] |= usage
        return 200, said

    profile, _, _, _ = await tried(answer, Trial(ASKS, 5.0, REPLIES[:1], needs_logprobs=True))
    assert (profile.schemas, profile.held_logprobs) == ("portable", stage)


@pytest.mark.parametrize(("masked", "stage"), [(True, "masked"), (False, None)])
def test_a_profile_of_two_stages_is_still_read(masked: bool, stage: str | None) -> None:
    assert ModelProfile.model_validate({"schemas": "vllm", "masked_logprobs": masked}).held_logprobs == stage
