"""What was found of a model stays with its run: whoever resumes, replays or reuses it is asked as before."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from openai_server import completion, serving

from moot.actors.models.openai_wire import REQUEST_ID_HEADER
from moot.actors.models.resolve import ModelBinding
from moot.actors.models.trial import STEP_KEY
from moot.actors.record.tables import read_table
from moot.deploy.running.checks import check_models
from moot.deploy.running.config import RunConfig
from moot.deploy.running.doctor_protocol import try_protocol
from moot.deploy.running.prepare import prepare
from moot.deploy.running.run import arun
from moot.protocols.errors import CapabilityMissing

CASES = [{"id": f"c{n}", "question": f"Is it {n}?", "labels": ["Yes", "No"], "passage": "It is."} for n in range(3)]
HELD = '{"answer": "Yes", "reasoning": "r", "confidence": 0.5}'

Body = Mapping[str, Any]


class Particular:
    """A server that takes no system message and no temperature, and thinks before it replies."""

    def __init__(self) -> None:
        self.asked: list[Body] = []
        self.trials = 0

    async def handle(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        trial = request.headers[REQUEST_ID_HEADER] == STEP_KEY
        self.trials += trial
        if any(message["role"] == "system" for message in body["messages"]):
            return web.json_response({"error": {"message": "System role not supported"}}, status=400)
        if "temperature" in body:
            return web.json_response({"error": {"message": "temperature is not supported"}}, status=400)
        if not trial:
            self.asked.append(body)
        said = completion(HELD)
        said["choices"][0]["message"]["reasoning_content"] = "Hm."
        return web.json_response(said)


@pytest.fixture
async def particular() -> AsyncIterator[tuple[Particular, str]]:
    """The server, and a model of it."""
    served = Particular()
    async with serving(served.handle, "POST") as url:
        yield served, f"{url}#m"


async def hold(out: Path, model: str, limit: int, **options: Any) -> Any:
    member = {"model": model, **options.pop("member", {})}
    return await arun(
        task=CASES, limit=limit, protocol="single-agent", roles={"agent": member}, engine="inline", out=out, **options
    )


def profile(out: Path) -> Any:
    return yaml.safe_load((out / "run.yaml").read_text())["bindings"]["agent"][0]["profile"]


async def test_a_replay_is_asked_as_the_recorded_model_was(tmp_path: Path, particular: tuple[Particular, str]) -> None:
    _, model = particular
    await hold(tmp_path / "run", model, 2)
    done = await hold(tmp_path / "again", f"replay/{tmp_path / 'run'}", 2)
    assert (done.done, done.failed) == (2, 0)


async def test_whoever_resumes_with_the_key_elsewhere_asks_as_before(
    tmp_path: Path, particular: tuple[Particular, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, model = particular
    monkeypatch.setenv("KEY_ONE", "x" * 20)
    monkeypatch.setenv("KEY_TWO", "x" * 20)
    await hold(tmp_path / "run", model, 1, member={"api_key_env": "KEY_ONE"})
    found, trials = profile(tmp_path / "run"), server.trials
    assert found["folds_system"]
    done = await hold(tmp_path / "run", model, 2, member={"api_key_env": "KEY_TWO"})
    assert (done.done, done.failed) == (2, 0)
    assert profile(tmp_path / "run") == found
    assert server.trials == trials


async def test_what_one_role_sends_is_tried_though_another_one_asks_for_more(
    tmp_path: Path, particular: tuple[Particular, str]
) -> None:
    agent = {"model": particular[1], "temperature": None, "top_p": None, "top_logprobs": 5}
    roles = {"agent": agent, "judge": particular[1]}
    fields = {"protocol": "selene", "set": {"gate.intrinsic": "none"}, "roles": roles, "engine": "inline"}
    found = await check_models(prepare(RunConfig.build({**fields, "out": str(tmp_path / "run")})))
    (judge,) = found.bindings["judge"]
    assert judge.profile is not None
    assert judge.profile.omitted == ("temperature",)


class Choosy:
    """A server that gives log-probabilities of free replies alone, and takes no schema of a judge's score."""

    def __init__(self) -> None:
        self.asked: list[Body] = []
        self.trials = 0

    async def handle(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        wanted = body.get("response_format")
        names = wanted["json_schema"]["schema"]["properties"] if wanted else {}
        if wanted and body.get("logprobs"):
            return web.json_response({"error": {"message": "logprobs are not given with a schema"}}, status=400)
        if "score" in names:
            return web.json_response({"error": {"message": "response_format: invalid schema"}}, status=400)
        if request.headers[REQUEST_ID_HEADER] == STEP_KEY:
            self.trials += 1
        else:
            self.asked.append(body)
        told = {"content": [{"token": "{", "logprob": -1.0, "top_logprobs": [{"token": "{", "logprob": -1.0}]}]}
        said = completion(HELD if "answer" in names else '{"support": "supported", "score": 0.9, "rationale": "r"}')
        said["choices"][0]["logprobs"] = told if body.get("logprobs") else None
        return web.json_response(said)


@pytest.fixture
async def choosy() -> AsyncIterator[tuple[Choosy, str]]:
    """The server, and a model of it."""
    served = Choosy()
    async with serving(served.handle, "POST") as url:
        yield served, f"{url}#m"


async def gated(out: Path, model: str, limit: int, **settings: Any) -> Any:
    return await arun(task=CASES, limit=limit, protocol="selene", model=model, engine="inline", out=out, set=settings)


async def test_a_gate_goes_on_without_log_probabilities_that_a_schema_costs(
    tmp_path: Path, choosy: tuple[Choosy, str]
) -> None:
    server, model = choosy
    done = await gated(tmp_path / "run", model, 1)
    assert (done.done, done.failed) == (1, 0)
    assert [("response_format" in body, "logprobs" in body) for body in server.asked[:3]] == [(True, False)] * 3
    (gate,) = (row for row in read_table(tmp_path / "run", "events").to_pylist() if row["kind"] == "gate")
    assert json.loads(gate["data"])["untested"] == ["misalignment", "low_intrinsic"]
    trials, asked = server.trials, len(server.asked)
    done = await gated(tmp_path / "run", model, 2)
    assert (done.done, server.trials) == (2, trials)
    assert ["response_format" in body for body in server.asked[asked:]] == [
        "response_format" in body for body in server.asked[:asked]
    ]
    with pytest.raises(CapabilityMissing, match="--structured off"):
        await gated(tmp_path / "demanded", model, 1, **{"gate.intrinsic": "normalised"})


async def test_the_doctor_says_which_replies_are_free(choosy: tuple[Choosy, str]) -> None:
    tried = await try_protocol(ModelBinding(model=choosy[1]), RunConfig.build({"protocol": "selene"}), 1)
    assert tried.held == (("agent", "Position", "held (portable)"), ("judge", "Score", "free"))
    assert "judge Score: free" in list(tried.lines())
