"""What the trial calls leave out for a server: settings that its error names and nobody wrote down."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from openai_server import completion, served
from structlog.testing import capture_logs
from trial_server import DECODING, REPLIES, Body, holds, refusal, tried

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.openai_wire import encode_request
from moot.actors.models.probe import probe
from moot.actors.models.trial import Trial
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import fingerprint, sent_decoding
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Ask, Decoding

ALL: dict[str, Any] = {"seed": 7, "stop": ("END",), "repetition_penalty": 1.1, "reasoning_effort": "low"}
SENT = Decoding(temperature=0.3, top_p=0.9, max_tokens=300, seed=7, stop=("END",), reasoning_effort="low")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("seed", "Unrecognized request argument supplied: seed"),
        ("stop", "Unsupported parameter: 'stop' is not supported with this model."),
        ("reasoning_effort", "unknown field `reasoning.effort`"),
    ],
)
async def test_any_setting_that_is_named_is_left_out_once_unless_it_was_written_down(name: str, message: str) -> None:
    def answer(body: Body) -> tuple[int, Any]:
        return refusal(message) if name in body else holds(body)

    profile, _, seen, logs = await tried(answer, Trial(SENT, 5.0, REPLIES))
    assert profile == ModelProfile(schemas="portable", omitted=(name,))  # type: ignore[arg-type]
    assert [name in body for body in seen] == [True, False, False]
    assert len(logs) == 1
    assert name in logs[0]
    with pytest.raises(ConfigError, match=f"`{name}`"):
        await tried(answer, Trial(SENT, 5.0, REPLIES, written=frozenset({name})))


def test_what_is_left_out_is_not_sent_and_changes_the_fingerprint() -> None:
    ask = Ask(
        case_id="c", attempt=1, path="p", role="agent", template="t", slots={}, reply="moot.protocols.replies:Score"
    )
    usual = fingerprint(ask, RoleBinding(**ALL, profile=ModelProfile(schemas="free")), "00")
    for name in (*ALL, "stream_options"):
        binding = RoleBinding(**ALL, profile=ModelProfile(schemas="free", omitted=(name,)))  # type: ignore[arg-type]
        body = json.loads(encode_request("m", [], sent_decoding(binding), stream=True))
        assert name not in body
        assert fingerprint(ask, binding, "00") != usual


async def test_a_key_of_ones_own_that_is_named_is_an_error() -> None:
    def answer(body: Body) -> tuple[int, Any]:
        return refusal("Unknown parameter: 'top_k'.") if "top_k" in body else holds(body)

    with pytest.raises(ConfigError, match=r"`top_k`.*`extra`"):
        await tried(answer, Trial(Decoding(extra='{"top_k": 5}'), 5.0, REPLIES))


async def test_a_server_that_knows_no_stream_options_streams_without_them() -> None:
    streamed: list[Body] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        if not body.get("stream"):
            status, said = holds(body)
            return web.json_response(said, status=status)
        streamed.append(body)
        if "stream_options" in body:
            return web.json_response({"error": {"message": "stream_options is not permitted"}}, status=400)
        return web.json_response(completion("Yes"))

    async with served(lambda url: CompatibleModel(url, "m"), handle) as model:
        profile, _ = await probe(model, Trial(DECODING, 5.0, REPLIES, streams=True))
    assert profile.omitted == ("stream_options",)
    assert len(streamed) == 2


async def test_who_waits_for_a_server_is_told_for_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.models.trial.WAITED_S", 0.0)
    told = asyncio.Event()

    async def handle(request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        await told.wait()
        return web.json_response(holds(body)[1])

    async with served(lambda url: CompatibleModel(url, "m"), handle) as model:
        with capture_logs() as logs:
            trying = asyncio.create_task(probe(model, Trial(DECODING, 60.0)))
            while not logs:  # noqa: ASYNC110 - nothing else tells of a line in the log
                await asyncio.sleep(0)
            told.set()
            await trying
    assert logs[0]["model"] == model.name
    assert "timeout_s" in logs[0]["event"]
