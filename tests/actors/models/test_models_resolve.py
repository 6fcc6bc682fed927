"""From a model's name to a backend; over which API OpenAI's are asked, and what the trial calls find out there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest
from aiohttp import web
from openai_server import openai, response, responses, served_model
from pydantic import ValidationError

from moot.actors.agent.backend_factory import make_model
from moot.actors.agent.request_fingerprint import fingerprint, sent_decoding
from moot.actors.agent.roles import RoleBinding
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.openai_sdk import OpenAIModel, ResponsesModel
from moot.actors.models.probe import probe
from moot.actors.models.probe_calls import OnlyOverResponses, ProbeRequest
from moot.actors.models.resolve import ModelBinding, ModelSpec, over_responses
from moot.actors.models.responses_wire import encode_request
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Ask, Decoding

CHAT_REFUSAL = "This model is only supported in v1/responses and not in v1/chat/completions."
ASK = Ask(
    case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={}, labels=("Yes", "No"),
    reply="moot.protocols.replies:Position",
)  # fmt: skip

pytestmark = pytest.mark.usefixtures("vendor_key", "certificates_read_once")


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("simulated", ModelSpec("simulated", "simulated")),
        ("simulated?competence=0.8", ModelSpec("simulated", "simulated?competence=0.8")),
        ("openai/gpt-4o-mini", ModelSpec("openai", "openai/gpt-4o-mini", model="gpt-4o-mini")),
        ("anthropic/claude-opus-5-5", ModelSpec("anthropic", "anthropic/claude-opus-5-5", model="claude-opus-5-5")),
        ("local/models/qwen", ModelSpec("local", "local/models/qwen", model="models/qwen")),
        ("local//srv/qwen", ModelSpec("local", "local//srv/qwen", model="/srv/qwen")),
        ("openai/ft:x/y", ModelSpec("openai", "openai/ft:x/y", model="ft:x/y")),
        (
            "http://localhost:8000/v1/#meta/Llama-3",
            ModelSpec(
                "url",
                "http://localhost:8000/v1/#meta/Llama-3",
                model="meta/Llama-3",
                base_url="http://localhost:8000/v1",
            ),
        ),
        ("https://[::1]#m", ModelSpec("url", "https://[::1]#m", model="m", base_url="https://[::1]")),
    ],
)
def test_names(name: str, spec: ModelSpec) -> None:
    assert ModelSpec.parse(name) == spec


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("anthropc/claude", "'anthropc/claude'"),
        ("anthropic/", "anthropic/NAME"),
        ("replay/", "names no run"),
        ("local", "unknown model"),
        ("local/", "local/PATH"),
        ("local/a\nb", "local/PATH"),
        ("simulatd", "'simulated'"),
        ("gpt-4o", "unknown model"),
        ("", "unknown model"),
        ("openai/", "openai/NAME"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1#NAME"),
        ("http://localhost:8000/v1#", "add #NAME"),
        ("http://#m", "not a server's URL"),
        ("http://h:99999/v1#m", "not a server's URL"),
        ("http://h:x/v1#m", "not a server's URL"),
        ("http://[::1/v1#m", "not a server's URL"),
        ("http://h\n/v1#m", "not a server's URL"),
        ("http://h/v1/chat/completions#m", "/chat/completions"),
        ("http://me:hunter2@h/v1#m", "environment variable"),
        ("http://h/v1?key=hunter2#m", "environment variable"),
        ("htp://me:hunter2@h/v1#m", "unknown model"),
    ],
)
def test_names_that_are_refused(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelSpec.parse(name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("pasted", ["sk-proj-0123456789", "hf_AbCdEf0123", "", "A B"])
def test_a_pasted_key_is_refused_and_not_echoed(pasted: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ModelBinding(model="openai/m", api_key_env=pasted)
    assert not pasted or pasted not in str(caught.value)


@pytest.mark.parametrize("model", ["simulated", "http://h/v1#m"])
def test_base_url_is_for_vendors(model: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        make_model(ModelBinding(model=model, base_url="http://h/v1"), seed=1, answer_key=None)


@pytest.mark.parametrize("url", ["http://u:hunter2@h/v1", "h:80", "http://h/v1#m"])
@pytest.mark.parametrize("model", ["openai/m", "anthropic/m"])
def test_base_url_is_checked(model: str, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_model(ModelBinding(model=model, base_url=url), seed=1, answer_key=None)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("end", ["/v1", "/v1/", "/v1/messages"])
def test_base_url_of_anthropic_ends_before_its_version(end: str) -> None:
    with pytest.raises(ConfigError, match="should end before /v1"):
        make_model(ModelBinding(model="anthropic/m", base_url=f"http://h{end}"), seed=1, answer_key=None)


def test_names_are_resolved_without_heavy_imports() -> None:
    code = (
        "import sys, moot.actors.models.resolve as r;"
        "[r.ModelSpec.parse(f'{v}/m') for v in ('openai', 'anthropic', 'local')];"
        "import moot.actors.models.local.model;"
        "heavy = ('ray', 'openai', 'anthropic', 'aiohttp', 'httpx2', 'pandas', 'torch', 'transformers');"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "api"),
    [
        *((name, "responses") for name in ("o1-pro", "o3-pro-2025-06-10", "gpt-5-pro", "gpt-5.2-pro", "gpt-5-codex")),
        *((name, "responses") for name in ("gpt-5.1-codex-max", "o3-deep-research", "computer-use-preview")),
        *((name, "chat") for name in ("gpt-5", "gpt-5-mini", "gpt-5-chat-latest", "o3", "o4-mini", "gpt-4o", "m")),
    ],
)
def test_which_models_are_asked_over_which_api(name: str, api: str) -> None:
    can = make_model(ModelBinding(model=f"openai/{name}"), seed=0, answer_key=None).capabilities
    assert (can.api, can.streaming) == (api, api == "chat")
    assert {"seed", "stop"} <= can.settings if api == "chat" else not {"seed", "stop"} & can.settings


def test_the_api_that_was_found_is_used() -> None:
    found = over_responses(ModelBinding(model="openai/m"))
    assert found is not None
    assert isinstance(make_model(found, seed=0, answer_key=None), ResponsesModel)
    assert over_responses(found) is None
    assert over_responses(ModelBinding(model="http://h/v1#m")) is None
    recorded = ModelBinding(model="openai/gpt-5.2-pro", api="chat")  # by a run from before it was known
    assert isinstance(make_model(recorded, seed=0, answer_key=None), OpenAIModel)


async def test_the_trial_says_that_a_model_is_offered_elsewhere_and_finds_out_what_it_takes_there() -> None:
    async def handler(request: web.Request) -> web.Response:
        body = await request.json()
        if request.path.endswith("/chat/completions"):
            return web.json_response({"error": {"message": CHAT_REFUSAL}}, status=404)
        if "temperature" in body:
            return web.json_response({"error": {"message": "Unsupported parameter: 'temperature'"}}, status=400)
        return web.json_response(response("Yes", usage={"output_tokens_details": {"reasoning_tokens": 5}}))

    trial = ProbeRequest(Decoding(), 5.0)
    async with served_model(openai, handler) as model:
        with pytest.raises(OnlyOverResponses, match="v1/responses"):
            await probe(model, trial)
    async with served_model(responses, handler) as other:
        found, *_ = await probe(other, trial)
    assert found == ModelProfile(
        schemas="free", server="openai", reasons=True, omitted=("temperature",), api="responses"
    )


@pytest.mark.parametrize("message", ["Unknown parameter: '{}'.", "Unrecognized request argument supplied: {}"])
@pytest.mark.parametrize(("key", "setting"), [("store", "store"), ("reasoning", "reasoning_effort")])
async def test_what_only_this_api_takes_is_left_out_where_a_server_refuses_it(
    key: str, setting: str, message: str
) -> None:
    seen: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(await request.json())
        if key in seen[-1]:
            return web.json_response({"error": {"message": message.format(key)}}, status=400)
        return web.json_response(response("Yes"))

    decoding = Decoding(reasoning_effort="low")
    if key == "store":
        told = ProbeRequest(msgspec.structs.replace(decoding, extra='{"store": false}'), 5.0)
    else:
        told = ProbeRequest(decoding, 5.0, written=frozenset({setting}))
    async with served_model(responses, handler) as model:
        found, *_ = await probe(model, ProbeRequest(decoding, 5.0))
        with pytest.raises(ConfigError, match=setting):
            await probe(model, told)
    assert found.omitted == (setting,)
    assert [key in body for body in seen[:2]] == [True, False]
    role = RoleBinding(model="openai/m", reasoning_effort="low", profile=found)
    assert key not in msgspec.json.decode(encode_request("m", [], sent_decoding(role)))
    usual = role.model_copy(update={"profile": found.model_copy(update={"omitted": ()})})
    assert fingerprint(ASK, role, "00") != fingerprint(ASK, usual, "00")


async def test_a_server_that_knows_no_include_gives_no_log_probabilities() -> None:
    async def handler(request: web.Request) -> web.Response:
        if "include" in await request.json():
            return web.json_response({"error": {"message": "Unknown parameter: 'include'."}}, status=400)
        return web.json_response(response("Yes"))

    async with served_model(responses, handler) as model:
        found, given, lacking = await probe(model, ProbeRequest(Decoding(top_logprobs=2), 5.0, needs_logprobs=True))
    assert (found.alternatives, given, len(lacking)) == (0, False, 1)
