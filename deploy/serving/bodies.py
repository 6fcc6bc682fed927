"""Bodies of requests: read whole, parsed apart from the event loop, and described in the schema."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.security import HTTPBearer
from pydantic import ValidationError
from pydantic.json_schema import models_json_schema

from moot.deploy.running.open_run import OpenRun
from moot.deploy.serving.refusals import Refused, invalid
from moot.deploy.serving.requests import Asked
from moot.protocols.case import LabelledCase
from moot.protocols.errors import TaskFileError, UserError

_REF = "#/components/schemas/{model}"


async def json_of(request: Request) -> bytes:
    """The body as it came.

    Raises:
        Refused: it is sent as something else than JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Refused(415, "the body must be sent as Content-Type: application/json")
    return await request.body()


def case_of(body: bytes, model: type[Asked], run: OpenRun) -> tuple[LabelledCase, str]:
    """The case of a request, and the hash of its content; long for a long body, so not for the event loop.

    Raises:
        Refused: it is no case, or the run has no use for it.
    """
    if not body.strip():
        raise Refused(422, "the body is empty: JSON is expected")
    try:
        labelled = run.labelled(model.model_validate_json(body).case())
    except ValidationError as error:
        raise invalid(error.errors(include_url=False, include_context=False, include_input=False)) from None
    except TaskFileError as error:
        raise Refused(422, f"{error.field}: {error.expected}" if error.field else error.expected) from None
    except UserError as error:
        raise Refused(422, str(error)) from None
    return labelled, labelled.case.content_hash()


def described(model: type[Asked]) -> dict[str, Any]:
    """What the schema says of a route that takes such a body."""
    content = {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}}
    return {"requestBody": {"required": True, "content": content}}


def describe(app: FastAPI, *models: type[Asked]) -> None:
    """Say in the schema what bodies look like, and that the token is sent as `Authorization: Bearer`."""
    made = app.openapi

    def whole() -> dict[str, Any]:
        schema = made()
        bearer = HTTPBearer().model.model_dump(mode="json", by_alias=True, exclude_none=True)
        parts = schema.setdefault("components", {})
        parts["securitySchemes"] = {"token": bearer}
        _, bodies = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
        parts.setdefault("schemas", {}).update(bodies["$defs"])
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                operation["security"] = [{"token": []}] if path.startswith("/v1/") else []
        return schema

    app.openapi = whole  # type: ignore[method-assign]
