"""HTTP errors, all in one shape: `{"error": {"code", "message"}}`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from moot.protocols.validation_messages import expected_value

LONGEST = 300
"""Maximum characters of a message: a client's input is never echoed at length."""

_MOST_NAMED = 3
_CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "conflict",
    410: "lost",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many",
    500: "internal",
    503: "unavailable",
}


class RequestError(HTTPException):
    """HTTP error response.

    Args:
        status: the HTTP status.
        message: one line for people.
        code: one word for programs; by default that of the status.
        retry_after_s: seconds until a retry makes sense; None when unknown.
        headers: further headers.
    """

    def __init__(
        self,
        status: int,
        message: str,
        code: str = "",
        *,
        retry_after_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        all_headers = dict(headers or {})
        if retry_after_s is not None:
            all_headers["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
        super().__init__(status, message, all_headers or None)
        self.code = code or _CODES.get(status, "error")


def validation_error(errors: Sequence[Mapping[str, Any]]) -> RequestError:
    """Error for a body that pydantic rejects: 400 when it is not JSON, else 422."""
    no_json = bool(errors) and errors[0].get("type") == "json_invalid"
    return RequestError(400 if no_json else 422, first_of(errors))


def error_response(error: Exception) -> Response:
    """Response for an exception; an unexpected one reveals nothing."""
    if not isinstance(error, HTTPException):
        error = RequestError(500, "internal server error: see the server's log")
    code = error.code if isinstance(error, RequestError) else _CODES.get(error.status_code, "error")
    return Response(body(code, str(error.detail)), error.status_code, error.headers, "application/json")


def body(code: str, message: str) -> bytes:
    """JSON body of an error, with its message on one line of bounded length.

    >>> body("invalid", "`question`:\\nexpected text")
    b'{"error":{"code":"invalid","message":"`question`: expected text"}}'
    """
    line = " ".join(message.encode("utf-8", "replace").decode().split())
    shown = line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
    return msgspec.json.encode({"error": {"code": code, "message": shown}})


def first_of(errors: Sequence[Mapping[str, Any]]) -> str:
    """First validation error as text, without the input: its location and the expected content.

    >>> first_of([{"type": "string_type", "loc": ("body", "labels", 0), "msg": "Input should be a valid string"}])
    'labels.0: expected text'
    >>> unknown = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}
    >>> first_of([unknown | {"loc": ("labls",)}, unknown | {"loc": ("seed",)}])
    'labls, seed: is not known here'
    """
    if not errors:
        return "the request is unreadable"
    first = errors[0]
    kind, message = first.get("type"), expected_value(first)
    if kind == "json_invalid":
        return f"the body is not valid JSON: {message.removeprefix('Invalid JSON: ')}"
    alike = [error for error in errors if error.get("type") == kind == "extra_forbidden"] or [first]
    places = ", ".join(filter(None, map(_place, alike[:_MOST_NAMED])))
    return f"{places}: {message}" if places else message


def _place(error: Mapping[str, Any]) -> str:
    return ".".join(str(part)[:60] for part in error["loc"] if part not in ("body", "query", "path"))
