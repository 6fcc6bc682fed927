"""ASGI middleware for pages: a browser sends the token once, and a cookie from then on."""

from __future__ import annotations

import hmac
from html import escape
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moot.deploy.service.errors import RequestError
from moot.deploy.service.guard import Guard, check_local, check_same_origin
from moot.deploy.service.view.refusals import refuse_entry

_MAX_BODY_BYTES = 2**20
_READ = ("GET", "HEAD")

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Default headers of every response."""


class PageGuard(Guard):
    """Requires the token of every request, as a bearer token or by the cookie that `?token=` sets; without a token,
    allows only this machine. Cross-origin requests are refused.

    Args:
        app: the guarded application.
        token: required token; None allows this machine without one.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        super().__init__(_with_headers(app), token, _MAX_BODY_BYTES, 16 * _MAX_BODY_BYTES, open_paths=frozenset())
        self._token = token
        self._session = None if token is None else hmac.digest(token.encode(), b"moot view", "sha256").hex()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http" and scope["method"] == "GET" and self._shows_token(scope):
            await self._begin_session(scope)(scope, receive, send)
            return
        await super().__call__(scope, receive, send)

    def _refuse(self, scope: Scope, error: Exception) -> ASGIApp:
        return _with_headers(refuse_entry(scope, error))

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if not _is_navigation(scope, headers):
            check_same_origin(headers)
        if self._token is None:
            check_local(scope, headers)
        elif not self._has_session(scope, headers) and not self.has_token(headers):
            message = "the token is missing or wrong: open the address with ?token= and the token"
            raise RequestError(401, message, headers={"WWW-Authenticate": "Bearer"})

    def _shows_token(self, scope: Scope) -> bool:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        return self._token is not None and len(given) == 1 and _equal(given[0], self._token)

    def _has_session(self, scope: Scope, headers: Headers) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(scope))
        except CookieError:
            return False
        return cookie is not None and self._session is not None and _equal(cookie.value, self._session)

    def _begin_session(self, scope: Scope) -> Response:
        """Page that sets the cookie and reloads without the token: after a redirect, a browser that came from another
        site's link would not send the cookie."""
        path = scope.get("raw_path", b"/").decode("latin-1").partition("?")[0]
        place = escape(f"/{path.lstrip('/')}", quote=True)  # two slashes would begin another site's address
        page = f'<!doctype html><title>moot</title><meta http-equiv="refresh" content="0;url={place}">'
        response = Response(page, headers=_HEADERS, media_type="text/html")
        response.set_cookie(_cookie_name(scope), self._session or "", path="/", httponly=True, samesite="strict")
        return response


def _cookie_name(scope: Scope) -> str:
    """Cookie name by port, because ports of one host share their cookies."""
    return f"moot-view-{(scope.get('server') or ('', 0))[1]}"


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())


def _is_navigation(scope: Scope, headers: Headers) -> bool:
    """Whether a person opens a page, from anywhere: its content stays in its own tab, and reading changes nothing."""
    opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return opened and scope["method"] in _READ


def _with_headers(app: ASGIApp) -> ASGIApp:
    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in more if each[0] not in given)]
            await send(message)

        await app(scope, receive, sending)

    return answering
