"""`moot doctor`: what it says of models that work, and of those that only seem to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port
from openai_server import answers, completion, serving, simulated_server
from typer.testing import CliRunner

from moot.actors.models.interface import TokenLogprobs
from moot.actors.models.resolve import ModelBinding
from moot.deploy.cli.main import app
from moot.deploy.runs.doctor import Finding, check_logprobs, examine
from moot.deploy.runs.doctor_protocol import ProtocolTrial, try_protocol
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import ConfigError

HELD = '{"answer": "Yes", "reasoning": "It rained.", "confidence": 0.9}'


def tokens(chosen: list[float], listed: list[list[float]]) -> TokenLogprobs:
    width = len(listed[0])
    return TokenLogprobs(
        tokens=["a"] * len(chosen),
        logprob=np.array(chosen, np.float32),
        alt_tokens=["a"] * (len(chosen) * width),
        alt_logprob=np.array(listed, np.float32),
    )


def by_name(found: list[Finding]) -> dict[str, Finding]:
    return {each.subject: each for each in found}


@pytest.mark.parametrize(
    ("given", "state", "said"),
    [
        (None, "note", "none given"),
        (tokens([0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]), "failed", "every one is 0"),
        (tokens([-0.1], [[-0.1, -0.2]]), "failed", "add up to 1.72"),
        (tokens([-0.1], [[np.nan, np.nan]]), "note", "no alternative has a number"),
        (tokens([-0.1, 0.0], [[-0.1, -3.0], [0.0, -np.inf]]), "ok", "real: 2 alternatives for 2 tokens"),
    ],
)
def test_bogus_log_probabilities_are_distinguished_from_real_ones(
    given: TokenLogprobs | None, state: str, said: str
) -> None:
    found = check_logprobs(given)
    assert found.state == state
    assert said in found.detail


async def test_a_server_that_works() -> None:
    with simulated_server(None) as port:
        found = by_name(await examine(ModelBinding(model=f"http://127.0.0.1:{port}/v1#simulated")))
    assert {each.state for each in found.values()} == {"ok", "note"}
    assert found["log-probabilities"].detail.startswith("real")
    assert found["price"].state == "note"


async def test_a_price_of_ones_own_says_what_the_call_cost(tmp_path: Path) -> None:
    with simulated_server(None) as port:
        model = f"http://127.0.0.1:{port}/v1#simulated"
        prices = tmp_path / "prices.yaml"
        prices.write_text(f'models: {{"{model}": {{input: 1000000, output: 0}}}}')
        found = by_name(await examine(ModelBinding(model=model), str(prices)))
    tokens = found["a call"].detail.split(" s, ")[1].split(" + ")[0]
    assert found["price"] == Finding("price", "ok", f"1e+06 / 0 USD per million; this call {tokens} USD")


@pytest.mark.parametrize(("path", "hinted"), [("", True), ("/api", True), ("/v2", False)])
async def test_a_url_without_a_version_that_is_not_found_gets_a_hint(path: str, hinted: bool) -> None:
    with simulated_server(None) as port:
        found = by_name(await examine(ModelBinding(model=f"http://127.0.0.1:{port}{path}#simulated")))
    assert found["a call"].state == "failed"
    assert "HTTP 404" in found["a call"].detail
    assert ("usually ends with /v1 before `#`" in found["a call"].detail) == hinted


async def test_limits_in_headers_are_shown_and_refused_log_probabilities_are_no_failure() -> None:
    async def handler(request: web.Request) -> web.Response:
        body = json.loads(await request.read() or b"{}")
        headers = {"x-ratelimit-remaining-requests": "7", "x-ratelimit-limit-requests": "60"}
        if body.get("logprobs"):
            return web.json_response({"error": {"message": "logprobs are not supported"}}, status=400)
        return web.json_response(completion("Yes") | {"usage": None}, headers=headers)

    async with serving(handler) as url:
        found = by_name(await examine(ModelBinding(model=f"{url}#m")))
    assert "usage unknown" in found["a call"].detail
    assert found["log-probabilities"].state == "note"
    assert found["limits seen"].detail == "requests: 7 of 60 left"


async def test_a_model_is_asked_as_a_run_asks_it() -> None:
    async def handler(request: web.Request) -> web.Response:
        body = json.loads(await request.read() or b"{}")
        messages = body.get("messages", ())
        if "temperature" in body or any(message["role"] == "system" for message in messages):
            said = "temperature is not supported" if "temperature" in body else "System role not supported"
            return web.json_response({"error": {"message": said}}, status=400)
        return web.json_response(completion(HELD if "response_format" in body else "I think so"))

    async with serving(handler) as url:
        found = by_name(await examine(ModelBinding(model=f"{url}#m")))
    assert "temperature" in found["a run adapts"].detail
    assert "system message" in found["a run adapts"].detail
    assert (found["an opening under a schema"].state, found["an opening, free"].state) == ("ok", "note")


async def test_each_server_of_a_pool_is_examined() -> None:
    async with serving(answers(404, {"error": {"message": "no such model"}})) as wrong:
        with simulated_server(None) as port:
            hosts = [f"127.0.0.1:{port}", wrong.removeprefix("http://").removesuffix("/v1")]
            found = await examine(ModelBinding(model=f"http://{','.join(hosts)}/v1#simulated"))
    assert [each.detail for each in found if each.subject == "server"] == [f"http://{host}/v1" for host in hosts]
    assert [each.state for each in found if each.subject == "a call"] == ["ok", "failed"]


async def test_a_servers_log_probabilities_are_reported() -> None:
    async def handler(request: web.Request) -> web.Response:
        body = json.loads(await request.read() or b"{}")
        if (most := body.get("top_logprobs", 0)) > 2:
            return web.json_response({"error": {"message": f"top_logprobs: at most 2, not {most}"}}, status=400)
        text = HELD if "response_format" in body else "Yes"
        first = [{"token": "{", "logprob": -3.0}, {"token": "Yes", "logprob": -0.1}]
        told = {"content": [{"token": text, "logprob": -3.0, "top_logprobs": first}]}
        return web.json_response(completion(text, logprobs=told))

    async with serving(handler) as url:
        found = by_name(await examine(ModelBinding(model=f"{url}#m")))
    assert "at most 2 alternatives" in found["a run adapts"].detail
    assert "before the schema's mask" in found["under a schema"].detail
    assert found["log-probabilities"].detail.startswith("real: 2 alternatives")


def test_what_cannot_be_used_is_exit_code_2_and_one_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOT_TEST_KEY", "sk-very-secret-0123456789")
    dead = f"http://127.0.0.1:{unused_port()}/v1#m"
    result = CliRunner().invoke(app, ["doctor", "--model", dead, "--api-key-env", "MOOT_TEST_KEY"])
    assert result.exit_code == 2
    assert "failed  reachable" in result.output
    assert "secret" not in result.output


def test_a_preset_is_tried_with_its_own_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[RunConfig] = []

    async def noted(binding: ModelBinding, wanted: RunConfig, cases: int) -> ProtocolTrial:
        tried.append(wanted)
        return ProtocolTrial((), (), cases, cases, "")

    monkeypatch.setattr("moot.deploy.runs.doctor_protocol.try_protocol", noted)
    asked = ["doctor", "--model", "simulated", "--preset", "early-token"]
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert (tried[0].protocol, tried[0].preset) == ("constructor-auditor", "early-token")
    assert "--model" in str(CliRunner().invoke(app, ["doctor", "--preset", "early-token"]).exception)
    assert "ceda" in str(CliRunner().invoke(app, [*asked, "--protocol", "ceda"]).exception)


async def test_what_a_preset_says_reaches_the_debates() -> None:
    model = ModelBinding(model="simulated")
    with pytest.raises(ConfigError, match="top_k"):
        await try_protocol(model, RunConfig.build({"preset": "evince", "set": {"top_k": "many"}}), 1)
    alone = RunConfig.build({"preset": "evince", "set": {"agents": 1}})
    assert (await try_protocol(model, alone, 1)).finished == 1
