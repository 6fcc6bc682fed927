"""The schema at /openapi.json: every route with what it takes and gives, and errors of one shape."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import jsonschema
import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT
from server_client import CASE, INLINE, served

from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.task import task_from_cases
from moot.deploy.service.errors import RequestError
from moot.deploy.service.request_models import CaseRequest, CheckRequest, DebateRequest, JudgmentRequest, case_of
from moot.deploy.service.settings import KINDS, ServeConfig
from moot.protocols.case import LabelledCase
from moot.protocols.errors import ConfigError

BODIES: dict[type[CaseRequest], dict[str, Any]] = {
    DebateRequest: {"id": "a", "question": "Is it?", "labels": ["Yes", "No"], "documents": ["one"], "passage": "two"},
    JudgmentRequest: {"reply": "It is.", "prompt": "Is it?", "role": "agent"},
    CheckRequest: {"claim": "It is.", "documents": ["one", "two"], "images": []},
}


class _AnyCase:
    """An open run whose protocol has a use for every case."""

    def prepare_case(self, case: Mapping[str, object] | LabelledCase) -> LabelledCase:
        """See `OpenRun.prepare_case`."""
        return next(task_from_cases([case]).cases())


def _read(body: bytes, model: type[CaseRequest]) -> None:
    try:
        labelled, content = case_of(body, model, cast(OpenRun, _AnyCase()))
    except RequestError as error:
        refused = error
    else:
        assert labelled.case.id
        assert content == labelled.case.content_hash()
        return
    assert 400 <= refused.status_code < 500
    assert refused.detail


def test_null_is_a_missing_value_and_base64_is_read_to_the_letter() -> None:
    nulls = b'{"id": null, "question": "Is it?", "passage": null, "choices": null}'
    _, content = case_of(nulls, DebateRequest, cast(OpenRun, _AnyCase()))
    assert content == case_of(b'{"question": "Is it?"}', DebateRequest, cast(OpenRun, _AnyCase()))[1]
    for wrong in (b'{"question": null}', b'{"question": "x", "labls": null}', b'{"question": "x", "images": ["!!!!"]}'):
        with pytest.raises(RequestError):
            case_of(wrong, DebateRequest, cast(OpenRun, _AnyCase()))


@pytest.mark.parametrize("model", BODIES)
@given(data=st.data())
def test_a_damaged_body_is_refused_or_a_case(model: type[CaseRequest], data: Any) -> None:
    raw = msgspec.json.encode(BODIES[model])
    _read(raw, model)
    at = data.draw(st.integers(0, len(raw) - 1))
    junk = data.draw(
        st.binary(min_size=1, max_size=9) | st.sampled_from([b"[" * 3000, b"9" * 5000, b"\\ud800", b"NaN"])
    )
    _read(raw[:at] + junk + raw[data.draw(st.integers(at, len(raw))) :], model)


MANIFEST = ROOT / "deploy" / "ops" / "kubernetes" / "ray-service.yaml"


async def test_every_route_says_what_it_takes_and_gives(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        schema = (await client.get("/openapi.json")).json
    expected = {"/healthz", "/readyz", "/v1/stats"}
    for kind in KINDS:
        expected |= {f"/v1/{kind}", f"/v1/{kind}/{{id}}", f"/v1/{kind}/{{id}}/events"}
    assert set(schema["paths"]) == expected
    operations = [(path, *each) for path, found in schema["paths"].items() for each in found.items()]
    assert len({operation["operationId"] for *_, operation in operations}) == len(operations)
    for path, method, operation in operations:
        assert operation["description"]
        assert bool(operation.get("security")) == path.startswith("/v1/")
        good = sorted(code for code in operation["responses"] if code.startswith("2"))
        assert good == (["200", "202"] if method == "post" else ["200"])
        if method == "post":
            assert operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("Request")
        for code, response in operation["responses"].items():
            if path.endswith("/events") and code in good:
                assert list(response["content"]) == ["text/event-stream"]
            else:
                named = response["content"]["application/json"]["schema"]["$ref"]
                assert named.endswith("/ErrorBody") != (code in good)
    assert schema["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}


async def test_answers_are_what_the_schema_says(tmp_path: Path) -> None:
    async with served(tmp_path, judgments=INLINE, checks=INLINE) as client:
        schema = (await client.get("/openapi.json")).json

        def fits(value: Any, name: str) -> None:
            root = {"$ref": f"#/components/schemas/{name}", "components": schema["components"]}
            jsonschema.Draft202012Validator(root).validate(value)

        for kind, name, body in (
            ("debates", "DebateRequest", CASE),
            ("judgments", "JudgmentRequest", {"reply": "yes"}),
            ("checks", "CheckRequest", {"claim": "It is."}),
        ):
            told = (await client.post(f"/v1/{kind}", body)).json
            fits(body, name)
            fits(told, "RequestState")
            fits(await client.end(told["links"]["self"]), "RequestState")
        fits((await client.get("/v1/stats")).json, "ServerStats")
        fits((await client.get("/healthz")).json, "Health")
        fits((await client.get("/v1/debates/unknown")).json, "ErrorBody")
        fits((await client.post("/v1/debates", {"x": 1})).json, "ErrorBody")
        with pytest.raises(jsonschema.ValidationError):
            fits({"question": "x", "unknown": 1}, "DebateRequest")


@pytest.mark.filterwarnings("ignore")  # Ray Serve's own code warns while it is imported
def test_the_manifest_gives_its_server_the_time_to_drain_and_begins_it() -> None:
    from ray.serve.scripts import cli

    from moot.deploy.service.deployment import NAME, grace_s

    config_map, service = list(yaml.safe_load_all(MANIFEST.read_text()))[:2]
    needed_s = grace_s(ServeConfig.build(yaml.safe_load(config_map["data"]["serve.yaml"])))
    cluster = service["spec"]["rayClusterConfig"]
    pods = [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
    hooks = []
    for pod in pods:
        assert pod["terminationGracePeriodSeconds"] >= needed_s + 10
        hooks += [each["lifecycle"]["preStop"]["exec"]["command"][-1] for each in pod["containers"]]
    head, worker = hooks
    assert "serve shutdown -y" in head
    assert "-y" in {name for option in cli.commands["shutdown"].params for name in option.opts}
    assert f"get_app_handle('{NAME}').drain." in worker


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"debates": None}, "nothing is offered"),
        ({"debates": {"task": "sample"}}, "`debates`: `task`"),
        ({"checks": {"protocol": "selene"}}, "`checks`: `protocol` is always ceda"),
        ({"debates": {"modle": "simulated"}}, "did you mean 'model'"),
        ({"judgments": {"rubric": "no-such"}}, "`judgments`: "),
        ({"token_env": "A", "token_file": "b"}, "set only one of them"),
        ({"workers": 3}, "workers"),
    ],
)
def test_a_wrong_configuration_is_refused_in_one_line(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        ServeConfig.build(fields)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
