"""From a failure of Anthropic's service to a `ModelError`: the table of its kinds."""

from __future__ import annotations

import time
from collections.abc import Mapping

from moot.actors.models.anthropic_limits import rate_headers
from moot.actors.models.interface import ModelError, RateHeaders
from moot.actors.models.openai_errors import VendorError, plain, retry_after

_KIND_OF_STATUS = {
    401: "refused",
    402: "refused",
    403: "refused",
    408: "server",
    409: "server",
    429: "rate_limited",
}
_KIND_OF_TYPE = {
    "authentication_error": "refused",
    "billing_error": "refused",
    "permission_error": "refused",
    "rate_limit_error": "rate_limited",
    "timeout_error": "server",
    "overloaded_error": "server",
    "api_error": "server",
}
_SPENT = {"contract_spend_limit_reached", "enforced_spend_limit_reached"}
_CONTEXT_WORDS = ("prompt is too long", "context limit", "context window", "context length")
_TIMED_OUT = {408, 504}


def error_from_response(
    status: int, headers: Mapping[str, str], body: bytes, *, key: str | None = None, now: float | None = None
) -> ModelError:
    """The failure that a response with an error status means.

    Args:
        status: HTTP status, 300 and up.
        headers: with case-insensitive lookup, as HTTP clients give them.
        body: as received, decompressed.
        key: the API key in use, kept out of the message.
        now: seconds since the epoch, to read dated headers; the clock when None.
    """
    now = time.time() if now is None else now
    error = VendorError.from_body(body)
    kind = _kind(status, error)
    note = " (redirects are not followed)" if 300 <= status < 400 else ""
    said = f": {error.message}" if error.message.strip() else " without a message"
    return ModelError(
        kind,
        plain(f"HTTP {status}{note}{said}", key),
        retry_after(headers, now) if kind in ("rate_limited", "server") else None,
        may_be_billed=status in _TIMED_OUT,
        limits=rate_headers(headers, now),
    )


def error_from_reply(error: object, limits: RateHeaders | None, key: str | None) -> ModelError:
    """The failure that an error object in the body of a 200 means."""
    found = VendorError.from_data(error)
    kind = next((_KIND_OF_TYPE[code] for code in found.codes if code in _KIND_OF_TYPE), "server")
    said = found.message if found.message.strip() else "an error without a message"
    return ModelError(kind, plain(said, key), may_be_billed=True, limits=limits)


def _kind(status: int, error: VendorError) -> str:
    if error.codes & _SPENT:
        return "refused"
    if status >= 500:
        return "server"
    if status in _KIND_OF_STATUS:
        return _KIND_OF_STATUS[status]
    said = error.message.lower()
    return "context_length" if status in (400, 413) and any(word in said for word in _CONTEXT_WORDS) else "request"
