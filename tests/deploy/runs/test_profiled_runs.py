"""Model profiles and constraints of replies stay with their run: resuming, replaying or reusing it sends the same
requests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from aiohttp import web
from openai_server import ScriptedServer, completion, serving

from moot.actors.agent.request_fingerprint import fingerprint_of_role
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.openai_wire import REQUEST_ID_HEADER
from moot.actors.models.probe_calls import STEP_KEY
from moot.actors.models.resolve import ModelBinding
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.tables import read_table
from moot.deploy.runs.checks import check_models
from moot.deploy.runs.doctor import examine
from moot.deploy.runs.doctor_protocol import try_protocol
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run import arun
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import CapabilityMissing

CASES = [{"id": f"c{n}", "question": f"Is it {n}?", "labels": ["Yes", "No"], "passage": "It is."} for n in range(3)]
HELD = '{"answer": "Yes", "reasoning": "r", "confidence": 0.5}'

Body = Mapping[str, Any]


class RuleServer:
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


class Particular(RuleServer):
    """Takes no system message and no temperature, and thinks before it replies."""

    def refusal(self, body: Body, path: str) -> str:
        if any(message["role"] == "system" for message in body["messages"]):
            return "System role not supported"
        return "temperature is not supported" if "temperature" in body else ""

    def reply(self, body: Body) -> Body:
        said = completion(HELD)
        said["choices"][0]["message"]["reasoning_content"] = "Hm."
        return said


class Choosy(RuleServer):
    """Gives log-probabilities of free replies alone, and takes no schema of a judge's score."""

    def refusal(self, body: Body, path: str) -> str:
        if body.get("response_format") and body.get("logprobs"):
            return "logprobs are not given with a schema"
        return "response_format: invalid schema" if "score" in _fields(body) else ""

    def reply(self, body: Body) -> Body:
        told = {"content": [{"token": "{", "logprob": -1.0, "top_logprobs": [{"token": "{", "logprob": -1.0}]}]}
        judged = '{"support": "supported", "score": 0.9, "rationale": "r"}'
        asks = "answer" in _fields(body) or any('{"answer"' in each["content"] for each in body["messages"])
        return completion(HELD if asks else judged, logprobs=told if body.get("logprobs") else None)


class OnlyResponses(RuleServer):
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
async def odd(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """The one that a test names as its parameter."""
    served: RuleServer = request.param()
    async with serving(served.answer, "POST") as url:
        served.url = url
        yield served


def with_server(kind: type[RuleServer]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("odd", [kind], indirect=True, ids=[kind.__name__])


async def run_profiled(out: Path, model: str, limit: int, **options: Any) -> Any:
    fields: dict[str, Any] = {"task": CASES, "protocol": "single-agent", "model": model, **options}
    return await arun(limit=limit, engine="inline", out=out, **fields)


def profile(out: Path) -> Any:
    """What run.yaml says was found of the agent's model."""
    return yaml.safe_load((out / "run.yaml").read_text())["bindings"]["agent"][0]["profile"]


@with_server(Particular)
async def test_a_replay_is_asked_as_the_recorded_model_was(tmp_path: Path, odd: Particular) -> None:
    model = f"{odd.url}#m"
    await run_profiled(tmp_path / "run", model, 2)
    done = await run_profiled(tmp_path / "again", f"replay/{tmp_path / 'run'}", 2)
    assert (done.done, done.failed) == (2, 0)


@with_server(Particular)
async def test_resuming_with_another_key_variable_sends_the_same_requests(
    tmp_path: Path, odd: Particular, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = f"{odd.url}#m"
    monkeypatch.setenv("KEY_ONE", "x" * 20)
    monkeypatch.setenv("KEY_TWO", "x" * 20)
    one, two = ({"agent": {"model": model, "api_key_env": name}} for name in ("KEY_ONE", "KEY_TWO"))
    await run_profiled(tmp_path / "run", model, 1, roles=one)
    found, trials = profile(tmp_path / "run"), odd.trials
    assert found["folds_system"]
    done = await run_profiled(tmp_path / "run", model, 2, roles=two)
    assert (done.done, done.failed) == (2, 0)
    assert profile(tmp_path / "run") == found
    assert odd.trials == trials


@with_server(Particular)
async def test_what_one_role_sends_is_tried_though_another_one_asks_for_more(tmp_path: Path, odd: Particular) -> None:
    agent = {"model": f"{odd.url}#m", "temperature": None, "top_p": None, "top_logprobs": 5}
    roles = {"agent": agent, "judge": f"{odd.url}#m"}
    fields = {"protocol": "selene", "set": {"gate.intrinsic": "none"}, "roles": roles, "engine": "inline"}
    found = await check_models(prepare(RunConfig.build({**fields, "out": str(tmp_path / "run")})))
    (judge,) = found.bindings["judge"]
    assert judge.profile is not None
    assert judge.profile.omitted == ("temperature",)


@with_server(Choosy)
async def test_a_gate_continues_without_log_probabilities_that_a_schema_costs(tmp_path: Path, odd: Choosy) -> None:
    model = f"{odd.url}#m"
    done = await run_profiled(tmp_path / "run", model, 1, protocol="selene")
    assert (done.done, done.failed) == (1, 0)
    assert [("response_format" in body, "logprobs" in body) for body in odd.asked[:3]] == [(True, False)] * 3
    (gate,) = (row for row in read_table(tmp_path / "run", "events").to_pylist() if row["kind"] == "gate")
    assert json.loads(gate["data"])["untested"] == ["misalignment", "low_intrinsic"]
    trials, asked = odd.trials, len(odd.asked)
    done = await run_profiled(tmp_path / "run", model, 2, protocol="selene")
    assert (done.done, odd.trials) == (2, trials)
    assert ["response_format" in body for body in odd.asked[asked:]] == [
        "response_format" in body for body in odd.asked[:asked]
    ]
    with pytest.raises(CapabilityMissing, match="--structured off"):
        await run_profiled(tmp_path / "demanded", model, 1, protocol="selene", set={"gate.intrinsic": "normalised"})


@with_server(Choosy)
async def test_the_doctor_says_which_replies_are_free(odd: Choosy) -> None:
    tried = await try_protocol(ModelBinding(model=f"{odd.url}#m"), RunConfig.build({"protocol": "selene"}), 1)
    assert tried.modes == (("agent", "Position", "schema (portable)"), ("judge", "Score", "free"))
    assert "judge Score: free" in list(tried.lines())


@pytest.fixture
def _openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key; and authorities that are read once: each client of the SDK reads all of the machine."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setattr(httpx2, "create_ssl_context", cache(httpx2.create_ssl_context))


@with_server(OnlyResponses)
@pytest.mark.usefixtures("_openai")
async def test_a_model_behind_another_api_is_found_recorded_and_asked_so_when_resumed(
    tmp_path: Path, odd: OnlyResponses
) -> None:
    roles = {"agent": {"model": "openai/new-model", "base_url": odd.url}}
    await run_profiled(tmp_path / "run", "openai/new-model", 1, roles=roles)
    assert profile(tmp_path / "run")["api"] == "responses"
    assert (odd.trials, len(odd.asked)) == (2, 1)
    done = await run_profiled(tmp_path / "run", "openai/new-model", 2, roles=roles)
    assert [turn["answer"] for turn in done.table("turns").to_pylist()] == ["Yes", "Yes"]
    assert (odd.trials, len(odd.asked)) == (2, 2)
    binding = ModelBinding(model="openai/new-model", base_url=odd.url)
    found = {each.subject: each for each in await examine(binding)}
    assert found["a call"].state == found["an opening under a schema"].state == "ok"
    assert "streaming: no" in found["declares"].detail


def asked(server: ScriptedServer) -> dict[str, Any]:
    """What replies were to be held to, by step; the trial aside."""
    bodies = {step: json.loads(body) for step, body in server.bodies.items() if step != STEP_KEY}
    return {step: body.get("response_format") for step, body in bodies.items()}


def with_profile(out: Path, older: dict[str, Any] | None) -> None:
    """Write the record as an older version did: with another profile, or with none."""
    recorded = read_run_yaml(RunFolder(out))
    (member,) = recorded["bindings"]["agent"]
    del member["profile"]
    member |= {} if older is None else {"profile": older}
    (out / "run.yaml").write_text(yaml.safe_dump(recorded))


async def no_profile(*given: object) -> None:
    """As in records from before there were any: replies are left free."""


async def test_what_is_found_is_recorded_and_used_again(tmp_path: Path, server: ScriptedServer) -> None:
    await run_profiled(tmp_path / "run", server.model, 1)
    assert ModelProfile.model_validate(profile(tmp_path / "run")) == ModelProfile(schemas="portable")
    (wanted,) = asked(server).values()
    assert wanted["json_schema"]["schema"]["properties"]["answer"]["enum"] == ["Yes", "No"]
    trials = server.calls[STEP_KEY]
    done = await run_profiled(tmp_path / "run", server.model, 3)
    assert (done.status, server.calls[STEP_KEY]) == ("finished", trials)
    assert list(asked(server).values()) == [wanted] * 3


@pytest.mark.parametrize("masked", [True, False, None])
async def test_a_record_that_is_older_is_resumed_as_it_was_without_another_trial(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, masked: bool | None
) -> None:
    """One without any profile, and one that knew two stages of log-probabilities."""
    with monkeypatch.context() as patched:
        if masked is None:
            patched.setattr("moot.deploy.runs.model_trials.ModelTrial.profile", no_profile)
        await run_profiled(tmp_path / "run", server.model, 2)
    older = ("schemas", "listed_labels", "server", "reasons", "folds_system", "bounds_completion", "api", "omitted")
    found = profile(tmp_path / "run")
    known = None if masked is None else {name: found[name] for name in older} | {"masked_logprobs": masked}
    with_profile(tmp_path / "run", known)
    trials = server.calls[STEP_KEY]
    done = await run_profiled(tmp_path / "run", server.model, 3)
    assert (done.status, server.calls[STEP_KEY]) == ("finished", trials)
    assert [wanted is None for wanted in asked(server).values()] == [masked is None] * 3
    assert all(calls == 1 for step, calls in server.calls.items() if step != STEP_KEY)


@pytest.mark.parametrize("structured", ["on", "off", "auto"])
async def test_all_roles_are_constrained_or_not_as_the_flag_says(
    tmp_path: Path, server: ScriptedServer, structured: str
) -> None:
    done = await run_profiled(
        tmp_path / "run", server.model, 1, structured=structured, temperature=0.7, max_reply_tokens=77
    )
    (wanted,) = asked(server).values()
    assert (wanted is None) == (structured == "off")
    assert done.table("turns")["held"].to_pylist() == [structured != "off"]
    (body,) = [json.loads(body) for step, body in server.bodies.items() if step != STEP_KEY]
    assert (body["temperature"], body["max_tokens"]) == (0.7, 77)


@pytest.mark.parametrize("structured", ["on", "off"])
async def test_a_record_in_which_the_flag_itself_counted_is_resumed_and_reused(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, structured: str
) -> None:
    def replies() -> Counter[str]:
        return Counter({step: calls for step, calls in server.calls.items() if step != STEP_KEY})

    options: dict[str, Any] = {"structured": structured, "protocol": "majority-vote"}
    with monkeypatch.context() as patched:
        patched.setattr("moot.actors.debate.context.fingerprint", fingerprint_of_role)
        stopped = await run_profiled(tmp_path / "run", server.model, 2, **options, max_tokens=2000)
    assert stopped.status == "stopped"
    assert replies().total() % 9, "a debate was under way"
    await run_profiled(tmp_path / "run", server.model, 2, **options)
    assert (replies().total(), set(replies().values())) == (18, {1})
    with monkeypatch.context() as patched:
        patched.setattr("moot.actors.debate.context.fingerprint", fingerprint_of_role)
        await run_profiled(tmp_path / "whole", server.model, 1, **options, seed=1)
    paid = replies().total()
    await run_profiled(tmp_path / "reused", server.model, 1, **options, reuse=tmp_path / "whole")
    assert replies().total() == paid
