"""From what an HTTP client raises when there is no whole response to a `ModelError`."""

from __future__ import annotations

from collections.abc import Iterator

import aiohttp

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
        if isinstance(cause, aiohttp.ClientResponseError):
            message = plain(f"not an HTTP response: {cause.message}", key)
            return ModelError("server", message, may_be_billed=True, limits=limits)
    # The last in the chain knows the reason: the vendor's SDK itself says only "Connection error."
    reason = next((said for cause in reversed(causes) if (said := str(cause))), type(causes[-1]).__name__)
    sent = not any(isinstance(cause, _NEVER_SENT) for cause in causes)
    verb = "lost the connection to" if sent else "cannot reach"
    return ModelError("connection", plain(f"{verb} {url}: {reason}", key), may_be_billed=sent, limits=limits)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception, then each one that it was explicitly raised from."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__
