"""The schema at /openapi.json: every route with what it takes and gives, and errors of one shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from served import CASE, INLINE, served

from moot.deploy.serving.settings import KINDS

METHODS = {"get", "post", "delete"}


async def _schema(tmp_path: Path) -> Any:
    async with served(tmp_path) as client:
        return (await client.get("/openapi.json")).json


async def test_every_route_says_what_it_takes_and_gives(tmp_path: Path) -> None:
    schema = await _schema(tmp_path)
    assert schema["openapi"].startswith("3.1")
    expected = {"/healthz", "/readyz", "/v1/stats"}
    for kind in KINDS:
        expected |= {f"/v1/{kind}", f"/v1/{kind}/{{id}}", f"/v1/{kind}/{{id}}/events"}
    assert set(schema["paths"]) == expected
    names = []
    for path, operations in schema["paths"].items():
        assert set(operations) <= METHODS
        for method, operation in operations.items():
            names.append(operation["operationId"])
            assert operation["description"]
            assert bool(operation.get("security")) == path.startswith("/v1/")
            (good,) = (code for code in operation["responses"] if code.startswith("2"))
            assert good == ("202" if method == "post" else "200")
            content = operation["responses"][good]["content"]
            if path.endswith("/events"):
                assert list(content) == ["text/event-stream"]
            else:
                assert content["application/json"]["schema"]["$ref"].startswith("#/components/schemas/")
            if method == "post":
                body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
                assert body.endswith("Request")
            for code, response in operation["responses"].items():
                if not code.startswith("2"):
                    assert response["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorBody")
    assert len(set(names)) == len(names)
    assert schema["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}


async def test_answers_are_what_the_schema_says(tmp_path: Path) -> None:
    async with served(tmp_path, judgments=INLINE, checks=INLINE) as client:
        schema = (await client.get("/openapi.json")).json

        def fits(value: Any, name: str) -> None:
            root = {"$ref": f"#/components/schemas/{name}", "components": schema["components"]}
            jsonschema.Draft202012Validator(root).validate(value)

        for kind, body in (("debates", CASE), ("judgments", {"reply": "yes"}), ("checks", {"claim": "It is."})):
            told = (await client.post(f"/v1/{kind}", body)).json
            fits(body, {"debates": "DebateRequest", "judgments": "JudgmentRequest", "checks": "CheckRequest"}[kind])
            fits(told, "State")
            fits(await client.end(told["links"]["self"]), "State")
        fits((await client.get("/v1/stats")).json, "Stats")
        fits((await client.get("/healthz")).json, "Health")
        fits((await client.get("/v1/debates/unknown")).json, "ErrorBody")
        fits((await client.post("/v1/debates", {"x": 1})).json, "ErrorBody")
        with pytest.raises(jsonschema.ValidationError):
            fits({"question": "x", "unknown": 1}, "DebateRequest")
        assert json.dumps(schema)
