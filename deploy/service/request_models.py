"""Request models: bodies are parsed off the event loop and described in the schema; no field can name a file or an
address."""

from __future__ import annotations

import base64
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.security import HTTPBearer
from pydantic import Base64Encoder, BaseModel, ConfigDict, EncodedBytes, Field, ValidationError, model_validator
from pydantic.json_schema import models_json_schema
from pydantic_core import PydanticCustomError

from moot.deploy.runs.checking.check import claim_case
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.service.errors import RequestError, validation_error
from moot.deploy.service.settings import Kind
from moot.protocols.case import LabelledCase
from moot.protocols.errors import TaskFileError, UserError
from moot.protocols.tasks.replies import replies_in_memory

ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
"""Pattern of an id: no slash, no space, nothing special in a path, a header or HTML."""


class _Base64(Base64Encoder):
    """Strict base64, white space aside; pydantic's own ignores invalid characters."""

    @classmethod
    def decode(cls, data: bytes) -> bytes:
        """Decode; raises pydantic's error."""
        try:
            return base64.b64decode(b"".join(data.split()), validate=True)
        except ValueError as error:
            raise PydanticCustomError(
                "base64", "the picture's bytes are not in base64 ({why})", {"why": str(error)}
            ) from None


Id = Annotated[str, Field(pattern=ID, description="Idempotency key: the same id gives the same debate.")]
_Image = Annotated[
    bytes, EncodedBytes(encoder=_Base64), Field(description="A PNG, JPEG or WebP picture, its bytes in base64.")
]
Images = Annotated[list[_Image], Field(max_length=16)]
_Texts = Annotated[list[str], Field(max_length=1000)]
_Text = Annotated[str, Field(min_length=1)]


class CaseRequest(BaseModel):
    """Request for a verdict.

    Attributes:
        id: idempotency key: the same id with the same content is the same debate; with other content it is refused. By
            default a hash of the content.
    """

    model_config = ConfigDict(extra="forbid")

    id: Id | None = None

    @model_validator(mode="before")
    @classmethod
    def _null_is_missing(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {key: value for key, value in given.items() if value is not None or key not in cls.model_fields}

    def case(self) -> dict[str, Any] | LabelledCase:
        """Convert the request to a case; raises a `UserError` when it is invalid."""
        raise NotImplementedError


class DebateRequest(CaseRequest):
    """Case to debate.

    Attributes:
        question: the question or subject.
        passage: evidence that all agents read.
        title: a heading for the passage.
        labels: the closed set of answers; without it the answer is free text.
        choices: for lettered labels, the text of each.
        documents: texts that a protocol may retrieve from.
        images: pictures.
    """

    question: _Text
    passage: str = ""
    title: str = ""
    labels: _Texts | None = None
    choices: _Texts = []
    documents: _Texts = []
    images: Images = []

    def case(self) -> dict[str, Any]:
        """See `CaseRequest.case`."""
        return {**self.model_dump(exclude_none=True), "images": list(self.images)}


class JudgmentRequest(CaseRequest):
    """Existing reply, for the panel of judges.

    Attributes:
        reply: the reply's text.
        prompt: the prompt that it answers.
        system: the system message before it.
        evidence: evidence for the judges.
        role: description of the reply's author.
        domain: description of the kind of task.
    """

    reply: _Text
    prompt: str = ""
    system: str = ""
    evidence: str = ""
    role: Annotated[str, Field(max_length=500)] = ""
    domain: Annotated[str, Field(max_length=500)] = ""

    def case(self) -> LabelledCase:
        """See `CaseRequest.case`."""
        found = next(replies_in_memory([self.model_dump(exclude={"id"})]).cases())
        return msgspec.structs.replace(found, case=msgspec.structs.replace(found.case, id=self.id or ""))


class CheckRequest(CaseRequest):
    """Claim to check.

    Attributes:
        claim: a statement, or a question with its answer.
        passage: evidence that all agents read.
        documents: texts to search for evidence.
        images: pictures.
    """

    claim: _Text
    passage: str = ""
    documents: _Texts = []
    images: Images = []

    def case(self) -> dict[str, Any]:
        """See `CaseRequest.case`."""
        found = {**claim_case(self.claim, self.images), "passage": self.passage, "documents": self.documents}
        del found["id"]
        return found if self.id is None else {**found, "id": self.id}


REQUESTS: dict[Kind, type[CaseRequest]] = {
    "debates": DebateRequest,
    "judgments": JudgmentRequest,
    "checks": CheckRequest,
}
"""Body models by kind of request."""


_REF = "#/components/schemas/{model}"


async def json_of(request: Request) -> bytes:
    """Read the body.

    Raises:
        RequestError: its content type is not JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise RequestError(415, "the body must be sent as Content-Type: application/json")
    return await request.body()


def case_of(body: bytes, model: type[CaseRequest], run: OpenRun) -> tuple[LabelledCase, str]:
    """Case of a request, and the hash of its content; slow for a long body, so not for the event loop.

    Raises:
        RequestError: the body is not a case, or the run cannot use it.
    """
    if not body.strip():
        raise RequestError(422, "the body is empty: JSON is expected")
    try:
        labelled = run.prepare_case(model.model_validate_json(body).case())
    except ValidationError as error:
        raise validation_error(error.errors(include_url=False, include_context=False, include_input=False)) from None
    except TaskFileError as error:
        raise RequestError(422, f"{error.field}: {error.expected}" if error.field else error.expected) from None
    except UserError as error:
        raise RequestError(422, str(error)) from None
    return labelled, labelled.case.content_hash()


def described(model: type[CaseRequest]) -> dict[str, Any]:
    """OpenAPI request body of a route."""
    content = {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}}
    return {"requestBody": {"required": True, "content": content}}


def describe(app: FastAPI, *models: type[CaseRequest]) -> None:
    """Add the bodies and the bearer token to the OpenAPI schema."""
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
