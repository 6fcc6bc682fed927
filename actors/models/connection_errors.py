"""What an HTTP client raises when there is no whole response: its reason in words, and as a `ModelError`."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import aiohttp
from aiohttp.http import HttpProcessingError

from moot.actors.models.interface import ModelError, RateHeaders
from moot.actors.models.openai_errors import plain

_NEVER_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)
"""What aiohttp raises before any of the request has left this machine."""


def connection_failure(
    url: str, error: BaseException, key: str | None = None, limits: RateHeaders | None = None
) -> ModelError:
    """The failure that an exception of aiohttp, or of a client built on it, means.

    It may be billed unless the connection was never opened: a server that had the request may have worked on it.

    Args:
        url: whom we called.
        error: as caught; what aiohttp said is looked for among its causes.
        key: the API key in use, kept out of the message.
        limits: what the headers said, when it broke after them.
    """
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ModelError):
            return cause  # of `reply_bound`, which the vendor's SDK has wrapped
        if isinstance(cause, aiohttp.ClientResponseError):
            message = plain(f"not an HTTP response: {cause.message}", key)
            return ModelError("server", message, may_be_billed=True, limits=limits)
    sent = not any(isinstance(cause, _NEVER_SENT) for cause in causes)
    verb = "lost the connection to" if sent else "cannot reach"
    return ModelError("connection", plain(f"{verb} {url}: {reason(error)}", key), may_be_billed=sent, limits=limits)


def reason(error: BaseException) -> str:
    """Why there was no whole response, in words; may name the address that was called.

    Args:
        error: as caught. The last in its chain of causes knows: the vendor's SDK itself says only "Connection error."
    """
    causes = list(_causes(error))
    return next((said for cause in reversed(causes) if (said := _said(cause))), type(causes[-1]).__name__)


def _said(cause: BaseException) -> str:
    """One exception in words; empty when it has none."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({cause.verify_message})"
    if isinstance(cause, ssl.SSLError):
        return f"TLS cannot be agreed upon with it ({(cause.reason or str(cause)).replace('_', ' ').lower()})"
    if isinstance(cause, aiohttp.ClientConnectorError) and isinstance(cause.os_error, ConnectionError):
        return cause.strerror or "it closed the connection while TLS was being agreed upon"
    if isinstance(cause, HttpProcessingError):
        return cause.message  # its text begins with the status of an answer that nobody gave
    return str(cause)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception, then each one that it was explicitly raised from."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__
