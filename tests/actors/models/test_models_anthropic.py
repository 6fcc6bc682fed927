"""What is Anthropic's alone: sampling, system messages, and thinking, which is asked for, counted and kept apart."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from anthropic_wire import message
from openai_server import KEY_ENV, anthropic, served_model, serving

import moot
from moot.actors.models.anthropic_wire import encode_request, takes_sampling
from moot.actors.models.interface import ModelReply
from moot.actors.models.reply_schema import reply_schema
from moot.actors.models.schema_dialects import json_schema
from moot.actors.models.token_bounds import with_plausible_usage
from moot.protocols.messages import Decoding, Message, Usage
from moot.protocols.replies import Position

pytestmark = pytest.mark.usefixtures("certificates_read_once", "vendor_key")

MESSAGES = [Message("user", "Can penguins fly?")]
LATE, EARLY = "claude-opus-5-5", "claude-haiku-4-5"
THOUGHT = {"type": "thinking", "thinking": "Birds, but heavy.", "signature": "s"}
OMITTED = {**THOUGHT, "thinking": ""}
"""What models from Claude 5 on send unless `display` says `summarized`."""

POSITION = '{"answer": "No", "reasoning": "r", "confidence": 0.9}'


def said(text: str, *thinking: dict[str, str], thought: int | None = 40, stop: str = "end_turn") -> dict[str, Any]:
    """A message of the service; `thought` tokens of 50 are thinking, None where it does not say."""
    details = None if thought is None else {"thinking_tokens": thought}
    usage = {"input_tokens": 7, "output_tokens": 50, "output_tokens_details": details}
    return message(text, stop, *thinking, usage=usage)


class FakeAnthropicService:
    """Answers every request with the same message and keeps what it was sent."""

    def __init__(self, reply: dict[str, Any]) -> None:
        self._reply = reply
        self.versions: list[str | None] = []
        self.bodies: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.versions.append(request.headers.get("anthropic-version"))
        self.bodies.append(await request.json())
        return web.json_response(self._reply)

    async def asked(self, decoding: Decoding, model: str = LATE, **more: Any) -> ModelReply:
        async with served_model(partial(anthropic, model=model), self.answer) as made:
            reply: ModelReply = await made.complete(MESSAGES, decoding, step_key="c", **more)
            return reply


@pytest.mark.parametrize(
    ("decoding", "sent"),
    [
        (Decoding(temperature=0.3, top_p=0.9), {"temperature": 0.3}),
        (Decoding(temperature=0.0, top_p=0.9), {"temperature": 0.0}),
        (Decoding(temperature=None, top_p=0.9), {"top_p": 0.9}),
        (Decoding(temperature=None, top_p=None), {}),
    ],
)
async def test_models_that_take_sampling_get_one_setting_and_the_older_version(
    decoding: Decoding, sent: dict[str, Any]
) -> None:
    service = FakeAnthropicService(message())
    await service.asked(decoding, EARLY)
    assert {name: service.bodies[0][name] for name in ("temperature", "top_p") if name in service.bodies[0]} == sent
    assert service.versions == ["2023-06-01"]


def test_which_models_take_sampling_settings() -> None:
    taking = ("claude-haiku-4-5-20251001", "claude-sonnet-4-6", "claude-opus-4-20250514", "claude-3-5-haiku-latest")
    others = ("claude-opus-4-7", "claude-opus-4-60", "claude-sonnet-5", "claude-mythos-preview", "claude-next")
    assert [takes_sampling(model) for model in (*taking, *others)] == [True] * len(taking) + [False] * len(others)


async def test_the_effort_goes_beside_the_schema() -> None:
    service = FakeAnthropicService(said("No."))
    await service.asked(Decoding(reasoning_effort="xhigh"), schema=reply_schema(Position, None))
    await service.asked(Decoding(reasoning_effort="low"), "claude-opus-4-5")
    await service.asked(Decoding())
    both, alone, neither = (body.get("output_config") for body in service.bodies)
    schema = json_schema(Position)
    assert both == {"effort": "xhigh", "format": {"type": "json_schema", "schema": schema}}
    assert list(both["format"]["schema"]["properties"]) == list(Position.model_fields)
    assert (alone, neither) == ({"effort": "low"}, None)


def sent(*messages: Message) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(encode_request("m", messages, Decoding(max_tokens=5)))
    return decoded


def test_system_messages_are_joined_in_order_and_empty_messages_omitted() -> None:
    request = sent(Message("system", "a"), Message("user", "b"), Message("system", "c"))
    assert request["system"] == "a\n\nc"
    assert request["messages"] == [{"role": "user", "content": "b"}]
    silent = sent(Message("user", "b"), Message("assistant", " \n"), Message("user", "again"))
    assert [each["role"] for each in silent["messages"]] == ["user", "user"]
    assert "system" not in silent


@pytest.mark.parametrize(
    ("model", "effort", "taken"),
    [
        ("claude-opus-4-5", "high", True),
        ("claude-opus-4-5-20251101", "max", False),
        ("claude-sonnet-4-6", "max", True),
        ("claude-opus-4-6", "xhigh", False),
        ("claude-opus-4-8", "xhigh", True),
        ("claude-opus-5-5", "xhigh", True),
        ("claude-opus-5-5", "minimal", False),
        ("claude-mythos-preview", "xhigh", False),
        ("claude-haiku-4-5", "low", False),
        ("claude-sonnet-4-5-20250929", "low", False),
    ],
)
def test_an_effort_that_a_family_does_not_take_is_refused_before_any_call(
    tmp_path: Path, model: str, effort: str, taken: bool
) -> None:
    member = {"model": f"anthropic/{model}", "reasoning_effort": effort, "api_key_env": "MOOT_UNSET_KEY"}
    wanted: dict[str, Any] = {"task": "sample", "protocol": "single-agent", "engine": "inline", "out": tmp_path / "run"}
    with pytest.raises(moot.UserError) as refused:
        moot.run(**wanted, roles={"agent": member})
    named = ("MOOT_UNSET_KEY" if taken else "reasoning_effort") in str(refused.value)
    assert named, refused.value
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("thought", [0, 40, None])
async def test_thinking_is_counted_where_the_service_says_so_and_kept_apart(thought: int | None) -> None:
    called = {"type": "tool_use", "id": "1", "name": "n", "input": "{}"}
    reply = await FakeAnthropicService(
        said("o.", THOUGHT, called, {"type": "text", "text": "N"}, thought=thought)
    ).asked(Decoding())
    assert (reply.text, reply.reasoning) == ("No.", THOUGHT["thinking"])
    assert reply.usage == Usage(7, 50, thought), "those of thinking are among the 50 that are paid for"
    assert with_plausible_usage(reply, MESSAGES) is reply, "a count of thinking is no reason to estimate"


async def _run(tmp_path: Path, service: FakeAnthropicService, **member: Any) -> list[dict[str, Any]]:
    """The turns of a run of one case against the service."""
    async with serving(service.answer) as url:
        base_url = url.removesuffix("/v1")
        agent = {"model": "anthropic/claude-opus-5-5", "base_url": base_url, "api_key_env": KEY_ENV, **member}
        done = await asyncio.to_thread(
            moot.run,
            task=[{"question": "Can penguins fly?", "labels": ["Yes", "No"], "gold": "No"}],
            protocol="single-agent",
            engine="inline",
            out=str(tmp_path / "run"),
            roles={"agent": agent},
            save_reasoning=True,
        )
        rows: list[dict[str, Any]] = done.table("turns").to_pylist()
        return rows


async def test_thinking_is_on_record_beside_the_reply(tmp_path: Path) -> None:
    service = FakeAnthropicService(said(POSITION, THOUGHT))
    (turn,) = await _run(tmp_path, service, reasoning_effort="medium")
    assert (turn["text"], turn["reasoning"], turn["reasoning_tokens"]) == (POSITION, THOUGHT["thinking"], 40)
    assert turn["completion_tokens"] == 50
    assert {body["output_config"]["effort"] for body in service.bodies} == {"medium"}


@pytest.mark.parametrize("block", [THOUGHT, OMITTED])
async def test_a_reply_that_was_all_thinking_is_truncated_and_says_what_mends_it(
    tmp_path: Path, block: dict[str, str]
) -> None:
    turns = await _run(tmp_path, FakeAnthropicService(said("", block, thought=50, stop="max_tokens")))
    assert turns[-1]["failure"] == "unparsable"
    assert "reasoning_tokens" in turns[-1]["error"]
