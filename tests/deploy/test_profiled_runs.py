"""What was found of a model stays with its run: whoever resumes, replays or reuses it is asked as before."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
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
from moot.deploy.running.doctor import examine
from moot.deploy.running.doctor_protocol import try_protocol
from moot.deploy.running.prepare import prepare
from moot.deploy.running.run import arun
from moot.protocols.errors import CapabilityMissing

CASES = [{"id": f"c{n}", "question": f"Is it {n}?", "labels": ["Yes", "No"], "passage": "It is."} for n in range(3)]
HELD = '{"answer": "Yes", "reasoning": "r", "confidence": 0.5}'

Body = Mapping[str, Any]


class Server:
    """Answers by a rule: the trial apart, what it was asked is kept."""

    url: str

    def __init__(self) -> None:
        self.asked: list[Body] = []
        self.trials = 0

    async def answer(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        trial = request.headers[REQUEST_ID_HEADER] == STEP_KEY
        self.trials += trial
        said = self.refusal(body, request.path)
        if said:
            return web.json_response({"error": {"message": said}}, status=404 if "v1/responses" in said else 400)
        if not trial:
            self.asked.append(body)
        return web.json_response(self.reply(body))

    def refusal(self, body: Body, path: str) -> str:
        """Why it does not answer; empty when it does."""
        raise NotImplementedError

    def reply(self, body: Body) -> Body:
        """What it says otherwise."""
        raise NotImplementedError


class Particular(Server):
    """Takes no system message and no temperature, and thinks before it replies."""

    def refusal(self, body: Body, path: str) -> str:
        if any(message["role"] == "system" for message in body["messages"]):
            return "System role not supported"
        return "temperature is not supported" if "temperature" in body else ""

    def reply(self, body: Body) -> Body:
        said = completion(HELD)
        said["choices"][0]["message"]["reasoning_content"] = "Hm."
        return said


class Choosy(Server):
    """Gives log-probabilities of free replies alone, and takes no schema of a judge's score."""

    def refusal(self, body: Body, path: str) -> str:
        if body.get("response_format") and body.get("logprobs"):
            return "logprobs are not given with a schema"
        return "response_format: invalid schema" if "score" in _fields(body) else ""

    def reply(self, body: Body) -> Body:
        told = {"content": [{"token": "{", "logprob": -1.0, "top_logprobs": [{"token": "{", "logprob": -1.0}]}]}
        judged = '{"support": "supported", "score": 0.9, "rationale": "r"}'
        return completion(
            HELD if "answer" in _fields(body) else judged, logprobs=told if body.get("logprobs") else None
        )


class OnlyResponses(Server):
    """As OpenAI's is for a model that it offers over its Responses API only, which no list of models says."""

    def refusal(self, body: Body, path: str) -> str:
        if path == "/v1/responses":
            return ""
        return "This model is only supported in v1/responses and not in v1/chat/completions."

    def reply(self, body: Body) -> Body:
        message = {"type": "message", "content": [{"type": "output_text", "text": HELD}]}
        return {"status": "completed", "output": [message], "usage": {"input_tokens": 40, "output_tokens": 30}}


def _fields(body: Body) -> Any:
    wanted = body.get("response_format")
    return wanted["json_schema"]["schema"]["properties"] if wanted else {}


@pytest.fixture
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """The one that a test names as its parameter."""
    served: Server = request.param()
    async with serving(served.answer, "POST") as url:
        served.url = url
        yield served


def with_server(kind: type[Server]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("server", [kind], indirect=True, ids=[kind.__name__])


async def hold(out: Path, model: str, limit: int, **options: Any) -> Any:
    member = {"model": model, **options.pop("member", {})}
    return await arun(
        task=CASES, limit=limit, protocol="single-agent", roles={"agent": member}, engine="inline", out=out, **options
    )


def profile(out: Path) -> Any:
    return yaml.safe_load((out / "run.yaml").read_text())["bindings"]["agent"][0]["profile"]


@with_server(Particular)
async def test_a_replay_is_asked_as_the_recorded_model_was(tmp_path: Path, server: Particular) -> None:
    model = f"{server.url}#m"
    await hold(tmp_path / "run", model, 2)
    done = await hold(tmp_path / "again", f"replay/{tmp_path / 'run'}", 2)
    assert (done.done, done.failed) == (2, 0)


@with_server(Particular)
async def test_whoever_resumes_with_the_key_elsewhere_asks_as_before(
    tmp_path: Path, server: Particular, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = f"{server.url}#m"
    monkeypatch.setenv("KEY_ONE", "x" * 20)
    monkeypatch.setenv("KEY_TWO", "x" * 20)
    await hold(tmp_path / "run", model, 1, member={"api_key_env": "KEY_ONE"})
    found, trials = profile(tmp_path / "run"), server.trials
    assert found["folds_system"]
    done = await hold(tmp_path / "run", model, 2, member={"api_key_env": "KEY_TWO"})
    assert (done.done, done.failed) == (2, 0)
    assert profile(tmp_path / "run") == found
    assert server.trials == trials


@with_server(Particular)
async def test_what_one_role_sends_is_tried_though_another_one_asks_for_more(
    tmp_path: Path, server: Particular
) -> None:
    agent = {"model": f"{server.url}#m", "temperature": None, "top_p": None, "top_logprobs": 5}
    roles = {"agent": agent, "judge": f"{server.url}#m"}
    fields = {"protocol": "selene", "set": {"gate.intrinsic": "none"}, "roles": roles, "engine": "inline"}
    found = await check_models(prepare(RunConfig.build({**fields, "out": str(tmp_path / "run")})))
    (judge,) = found.bindings["judge"]
    assert judge.profile is not None
    assert judge.profile.omitted == ("temperature",)


async def gated(out: Path, model: str, limit: int, **settings: Any) -> Any:
    return await arun(task=CASES, limit=limit, protocol="selene", model=model, engine="inline", out=out, set=settings)


@with_server(Choosy)
async def test_a_gate_goes_on_without_log_probabilities_that_a_schema_costs(tmp_path: Path, server: Choosy) -> None:
    model = f"{server.url}#m"
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


@with_server(Choosy)
async def test_the_doctor_says_which_replies_are_free(server: Choosy) -> None:
    tried = await try_protocol(ModelBinding(model=f"{server.url}#m"), RunConfig.build({"protocol": "selene"}), 1)
    assert tried.held == (("agent", "Position", "held (portable)"), ("judge", "Score", "free"))
    assert "judge Score: free" in list(tried.lines())


@pytest.fixture
def _openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key; and authorities that are read once: each client of the SDK reads all of the machine."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setattr(httpx2, "create_ssl_context", cache(httpx2.create_ssl_context))


@with_server(OnlyResponses)
@pytest.mark.usefixtures("_openai")
async def test_a_model_behind_another_api_is_found_recorded_and_asked_so_when_resumed(
    tmp_path: Path, server: OnlyResponses
) -> None:
    member = {"base_url": server.url}
    await hold(tmp_path / "run", "openai/new-model", 1, member=member)
    assert profile(tmp_path / "run")["api"] == "responses"
    assert (server.trials, len(server.asked)) == (2, 1)
    done = await hold(tmp_path / "run", "openai/new-model", 2, member=member)
    assert [turn["answer"] for turn in done.table("turns").to_pylist()] == ["Yes", "Yes"]
    assert (server.trials, len(server.asked)) == (2, 2)
    binding = ModelBinding(model="openai/new-model", base_url=server.url)
    found = {each.what: each for each in await examine(binding)}
    assert found["a call"].state == found["an opening, held to a schema"].state == "ok"
    assert "streaming: no" in found["declares"].said
