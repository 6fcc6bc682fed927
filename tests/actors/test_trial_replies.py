"""What the trial calls find out of each kind of reply: one that a server refuses leaves the others held."""

from __future__ import annotations

from typing import Any

import pytest
from trial_server import DECODING, REPLIES, Body, holds, refusal, schema_of, tried

from moot.actors.models.model_profile import ModelProfile, ReplyException
from moot.actors.models.trial import AskedReply, Trial
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import fingerprint, held_schema
from moot.protocols.errors import CapabilityMissing
from moot.protocols.messages import Ask
from moot.protocols.replies import Position, Score, reply_path

POSITION, SCORE = reply_path(Position), reply_path(Score)
LABELS = tuple(f"label {number}" for number in range(90))


def refuses(word: str) -> Any:
    """A server that takes no schema with a property of that name."""

    def answer(body: Body) -> tuple[int, Any]:
        properties = (schema_of(body) or {"properties": {}})["properties"]
        return refusal(f"invalid schema for response_format: {word}") if word in properties else holds(body)

    return answer


@pytest.mark.parametrize(("word", "free"), [("confidence", POSITION), ("rationale", SCORE)])
async def test_a_schema_that_is_refused_leaves_that_reply_free_and_no_other(word: str, free: str) -> None:
    profile, _, _, logs = await tried(refuses(word), Trial(DECODING, 5.0, REPLIES), "vllm")
    assert profile == ModelProfile(
        schemas="vllm", server="vllm", exceptions=(ReplyException(reply=free, schemas="free"),)
    )
    assert len(logs) == 1
    assert free.partition(":")[2] in logs[0]
    binding = RoleBinding(model="http://h/v1#m", profile=profile)
    held = [held_schema(binding, "on request", model, ("Yes", "No"), 300, {}) is None for model in (Position, Score)]
    assert held == [free == POSITION, free == SCORE]
    with pytest.raises(CapabilityMissing, match="--structured off"):
        await tried(refuses(word), Trial(DECODING, 5.0, REPLIES, insists=True))


async def test_a_free_reply_is_not_taken_for_a_held_one() -> None:
    ask = Ask(case_id="c", attempt=1, path="p", role="agent", template="t", slots={}, reply=POSITION)
    profiles = [
        ModelProfile(schemas="vllm", exceptions=exceptions)
        for exceptions in (
            (),
            (ReplyException(reply=POSITION, schemas="free"),),
            (ReplyException(reply=SCORE, schemas="free"),),
        )
    ]
    held, free, other = (fingerprint(ask, RoleBinding(model="http://h/v1#m", profile=each), "00") for each in profiles)
    assert held == other != free
    assert free == fingerprint(ask, RoleBinding(model="http://h/v1#m", profile=ModelProfile(schemas="free")), "00")


async def test_a_server_that_refuses_every_schema_is_not_asked_for_each_kind_in_each_way() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        return refusal("response_format is unknown here") if schema_of(body) else holds(body)

    profile, _, seen, _ = await tried(answer, Trial(DECODING, 5.0, REPLIES), "vllm")
    assert (profile.schemas, profile.exceptions) == ("free", ())
    assert len(seen) == 6  # four ways of the first kind, the smallest other schema, and one free reply


async def test_a_server_that_takes_few_values_of_an_enum_is_sent_no_labels() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        schema = schema_of(body)
        values = schema["properties"].get("answer", {}).get("enum", ()) if schema else ()
        return refusal("schema: takes at most 50 enum values") if len(values) > 50 else holds(body)

    asked = (AskedReply(Position, LABELS, 300), AskedReply(Score, None, 300))
    profile, _, _, logs = await tried(answer, Trial(DECODING, 5.0, asked), "vllm")
    assert profile == ModelProfile(schemas="vllm", server="vllm", listed_labels=False)
    assert not logs


async def test_a_server_that_takes_no_enum_at_all_holds_what_has_none() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        return refusal("schema: enum is not supported") if "enum" in str(schema_of(body)) else holds(body)

    asked = (AskedReply(Position, LABELS, 300), AskedReply(Score, None, 300))
    profile, _, _, _ = await tried(answer, Trial(DECODING, 5.0, asked), "vllm")
    assert profile.way(POSITION) == ("vllm", False)
    assert profile.way(SCORE)[0] == "free"  # its support is one of three words
