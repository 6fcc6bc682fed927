"""What a client may send, read whole, parsed apart from the event loop, and described in the schema; nothing in it can
name a file or an address."""

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
"""What an id may look like: no slash, no space, nothing that a path, a header or a page could read otherwise."""


class _Base64(Base64Encoder):
    """Base64 to the letter, white space apart; pydantic's own passes over whatever else is in it."""

    @classmethod
    def decode(cls, data: bytes) -> bytes:
        """The bytes; raises pydantic's error."""
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
    """A request for a verdict.

    Attributes:
        id: makes the request idempotent: the same id with the same content is the same debate, with other content it
            is refused. Without one it is known by its content.
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
        """The case as a run takes it; raises a `UserError` when it is none."""
        raise NotImplementedError


class DebateRequest(CaseRequest):
    """A case to debate.

    Attributes:
        question: what is debated.
        passage: evidence that everybody reads.
        title: a heading for the passage.
        labels: the closed set of answers; without it the answer is free text.
        choices: for lettered labels, the text behind each of them.
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
    """A reply that was given elsewhere, for the panel of judges.

    Attributes:
        reply: as it was given.
        prompt: what it answers.
        system: the system message before it.
        evidence: what the judges are told of the matter.
        role: who gave the reply, in words.
        domain: what kind of task it was, in words.
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
    """A claim to check.

    Attributes:
        claim: a statement, or a question with its answer.
        passage: evidence that everybody reads.
        documents: texts in which evidence is looked for.
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
"""The models of bodies."""


_REF = "#/components/schemas/{model}"


async def json_of(request: Request) -> bytes:
    """The body as it came.

    Raises:
        Refused: it is sent as something else than JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise RequestError(415, "the body must be sent as Content-Type: application/json")
    return await request.body()


def case_of(body: bytes, model: type[CaseRequest], run: OpenRun) -> tuple[LabelledCase, str]:
    """The case of a request, and the hash of its content; long for a long body, so not for the event loop.

    Raises:
        Refused: it is no case, or the run has no use for it.
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
    """What the schema says of a route that takes such a body."""
    content = {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}}
    return {"requestBody": {"required": True, "content": content}}


def describe(app: FastAPI, *models: type[CaseRequest]) -> None:
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
