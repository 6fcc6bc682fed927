"""ASGI middleware for authentication and body limits: the outermost layer, before anything is parsed."""

from __future__ import annotations

import asyncio
import hmac
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moot.deploy.service.errors import RequestError, error_response
from moot.deploy.service.settings import is_loopback

_log = structlog.get_logger(__name__)
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths without authentication: liveness and readiness only."""

_BODY_S = 120.0
"""Maximum seconds to receive a body."""

_AGAIN_S = 5.0
"""Retry-After in seconds when too many bodies are being read."""


class _BytesRead:
    """Counter of the bytes of a request's body in memory."""

    def __init__(self) -> None:
        self.size = 0


class Guard:
    """Requires the token of every request; without one, allows only this machine and no cross-origin request.

    Args:
        app: the guarded application.
        token: the required token; None allows this machine without one.
        max_body_bytes: maximum size of a body.
        max_bodies_bytes: maximum total size of the bodies of requests that are being read or answered; a single body
            may always have the maximum size.
        open_paths: paths without authentication.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str | None,
        max_body_bytes: int,
        max_bodies_bytes: int,
        open_paths: frozenset[str] = OPEN_PATHS,
    ) -> None:
        self._app, self._most, self._most_of_all = app, max_body_bytes, max_bodies_bytes
        self._open_paths = open_paths
        self._in_hand = 0
        self._expected = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        started = False
        read = _BytesRead()

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            _check_framing(Headers(scope=scope))
            if scope["path"] not in self._open_paths or scope["method"] not in ("GET", "HEAD"):
                self._check(scope)
            await self._app(scope, await self._bounded(scope, receive, read), sending)
        except Exception as error:
            if started or not isinstance(error, HTTPException):
                _log.error("a request failed", path=scope["path"][:200], error=repr(error)[:500])
            if not started:
                await self._refuse(scope, error)(scope, receive, send)
        finally:
            self._in_hand -= read.size

    def _refuse(self, scope: Scope, error: Exception) -> ASGIApp:
        """Response to a request that failed."""
        return error_response(error)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if self._expected is not None:
            if not self.has_token(headers):
                raise RequestError(401, "the token is missing or wrong", headers={"WWW-Authenticate": "Bearer"})
            return
        check_local(scope, headers)
        check_same_origin(headers)

    def has_token(self, headers: Headers) -> bool:
        """Whether the Authorization header holds the required token."""
        sent = headers.get("authorization", "")
        scheme, _, rest = sent.partition(" ")
        given = f"Bearer {rest}" if scheme.lower() == "bearer" else sent
        expected = self._expected
        return expected is not None and hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected)

    async def _bounded(self, scope: Scope, receive: Receive, read: _BytesRead) -> Receive:
        """`receive` that replays the body, which has been read and is within the limit."""
        if scope["method"] in ("GET", "HEAD", "DELETE", "OPTIONS"):
            return receive
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isascii() and declared.isdigit() and (len(declared) > 15 or int(declared) > self._most):
            raise self._too_large()
        try:
            async with asyncio.timeout(_BODY_S):
                body = await self._whole(receive, read)
        except TimeoutError:
            late = f"the body did not arrive within {_BODY_S:g} seconds"
            raise RequestError(408, late, headers={"Connection": "close"}) from None
        whole: Message | None = {"type": "http.request", "body": body, "more_body": False}

        async def again() -> Message:
            nonlocal whole
            if whole is None:
                return await receive()
            message, whole = whole, None
            return message

        return again

    async def _whole(self, receive: Receive, read: _BytesRead) -> bytes:
        chunks: list[bytes] = []
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestError(400, "the body is incomplete", headers={"Connection": "close"})
            chunks.append(message.get("body", b""))
            read.size += len(chunks[-1])
            self._in_hand += len(chunks[-1])
            more = message.get("more_body", False)
            if read.size > self._most:
                raise self._too_large()
            if self._in_hand > max(read.size, self._most_of_all):
                full = f"bodies of {self._most_of_all:,} bytes are being read: retry later"
                raise RequestError(429, full, retry_after_s=_AGAIN_S, headers={"Connection": "close"})
        return b"".join(chunks)

    def _too_large(self) -> RequestError:
        return RequestError(413, f"the body is longer than {self._most:,} bytes", headers={"Connection": "close"})


def check_local(scope: Scope, headers: Headers) -> None:
    """Refuse a client on another machine, and a page that reached this one under another name (DNS rebinding).

    Raises:
        RequestError: 403.
    """
    server = scope.get("server")
    if server is None or not is_loopback(server[0]):
        raise RequestError(403, "no token is configured: only clients on this machine are allowed", "no_token")
    if not _is_local_host(headers.get("host", "")):
        raise RequestError(403, "the Host header does not name this machine", "host")


def check_same_origin(headers: Headers) -> None:
    """Refuse requests from a page of another origin (cross-site request forgery); a client that is no browser sends
    neither header.

    Raises:
        RequestError: 403.
    """
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise RequestError(403, "cross-origin requests are refused", "origin")
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise RequestError(403, "cross-origin requests are refused", "origin")


def _check_framing(headers: Headers) -> None:
    """Refuse a body with two lengths (request smuggling): a proxy in front may end it elsewhere, and treat the rest as
    another client's request."""
    if "transfer-encoding" in headers and "content-length" in headers:
        both = "the body's length is given by both Content-Length and Transfer-Encoding"
        raise RequestError(400, both, headers={"Connection": "close"})


def _is_local_host(host: str) -> bool:
    """Whether a Host header names the loopback address; after DNS rebinding it does not.

    >>> [_is_local_host(host) for host in ("localhost:8000", "127.0.0.1", "[::1]:8000", "evil.example", "")]
    [True, True, True, False, False]
    """
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return name is not None and is_loopback(name)
