"""HTTP client for OpenAI-style endpoints, shared by chat completions and embeddings: single requests, and the errors
for incomplete responses."""

from __future__ import annotations

import io
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager

import aiohttp
from aiohttp.http import HttpProcessingError
from yarl import URL

from moot.actors.models.api_key import ApiKey, Key
from moot.actors.models.interface import ModelError, RateHeaders
from moot.actors.models.off_loop import PerLoop
from moot.actors.models.openai_errors import error_from_response, plain
from moot.actors.models.openai_wire import REQUEST_ID_HEADER, request_id
from moot.actors.models.proxies import environment_proxy
from moot.actors.models.rate_headers import rate_headers
from moot.actors.models.reply_bounds import BoundedBody
from moot.protocols.errors import MissingKey, ModelUnavailable

CONNECT_TIMEOUT_S = 10.0
"""Timeout in seconds for opening a connection. A call has no other timeout: its caller cancels it at the deadline."""

CHECK_TIMEOUT_S = 5.0
"""Timeout in seconds of `HttpClient.check`."""

MOST_BYTES_OF_AN_ERROR = 2**20
"""Most bytes of the body of an error, of which the rest is left out; a message has a few hundred characters."""

_MOST_BYTES_OF_A_LIST = 8 * 2**20
"""Most bytes of a list of models. The longest known has 1 MiB."""

_LARGE_BODY = 2**19
VERSIONED = re.compile(r"/v\d")
"""Path of a URL with the version of an API."""

_HINT = "the URL usually ends with /v1 before `#`"
_HEADERS = {"Content-Type": "application/json", "User-Agent": "moot"}
_CONNECTION_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class OpenResponse:
    """Open response with status 200 and an unread body.

    Attributes:
        limits: rate limits in its headers; None without any.
        key: the API key that was sent, to be redacted from error messages; None without one.
    """

    def __init__(self, url: str, response: aiohttp.ClientResponse, key: str | None) -> None:
        self._url, self._response, self.key = url, response, key
        self.limits = rate_headers(response.raw_headers)

    @property
    def content_type(self) -> str:
        """Content type of the body, as the header states it."""
        return self._response.content_type

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Streams the body, decompressed, without a bound. Raises `ModelError` when the connection breaks."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except _CONNECTION_ERRORS as error:
            raise connection_failure(self._url, error, self.key, self.limits) from None

    async def read(self, most: int) -> BoundedBody:
        """Reads the body as a whole, up to `most` bytes of it. Raises like `chunks`."""
        async with aclosing(self.chunks()) as chunks:
            return await BoundedBody(chunks, most).read()


class HttpClient:
    """HTTP client of one server, with a connection pool per event loop; close it in each of them.

    Args:
        base_url: without a trailing slash; contains no user, password or query.
        api_key_env: name of the environment variable with the key; None sends no key.
        key: another source of the key than an environment variable.

    Attributes:
        url_hint: what may be wrong with the URL, where something may be; see `hint_at_url`.
    """

    def __init__(self, base_url: str, *, api_key_env: str | None = None, key: Key | None = None) -> None:
        self.base_url = base_url
        self.key: Key = ApiKey(api_key_env) if key is None else key
        self.url_hint = "" if VERSIONED.search(base_url) else _HINT
        self._sessions = PerLoop(self._new_session)

    @asynccontextmanager
    async def opened(
        self, path: str, body: bytes, step_key: str, *, accept: str = "application/json"
    ) -> AsyncIterator[OpenResponse]:
        """One POST of JSON, without retries; leaving the context early closes the connection.

        Args:
            path: below the base URL, with its leading slash.
            step_key: identifies the step, so that a server can count.
            accept: requested content type.

        Raises:
            ModelError: see `moot.actors.models.openai_errors` for the kinds.
        """
        key = key_for_call(self.key)
        headers = {**_HEADERS, "Accept": accept, REQUEST_ID_HEADER: request_id(step_key), **_bearer(key)}
        url = URL(f"{self.base_url}{path}")
        try:
            async with self._sessions.get().post(
                url, data=_sendable(body), headers=headers, allow_redirects=False
            ) as response:
                opened = OpenResponse(self.base_url, response, key)
                if response.status != 200:
                    stated = (await opened.read(MOST_BYTES_OF_AN_ERROR)).received
                    raise error_from_response(response.status, response.headers, stated, key=key, limits=opened.limits)
                yield opened
        except _CONNECTION_ERRORS as error:
            raise connection_failure(self.base_url, error, key) from None

    async def check(self) -> bytes:
        """Lists the server's models, which is not billed; empty where the server has no list.

        Raises:
            MissingKey: the key's environment variable is not set.
            ModelUnavailable: the server does not answer within `CHECK_TIMEOUT_S`, is failing, or refuses the
                key.
        """
        key = self.key.read()
        url = f"{self.base_url}/models"
        try:
            async with self._sessions.get().get(
                URL(url),
                headers=_bearer(key),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=CHECK_TIMEOUT_S),
            ) as response:
                listed = await OpenResponse(url, response, key).read(_MOST_BYTES_OF_A_LIST)
        except ModelError as error:
            raise ModelUnavailable(f"{url}: {error.message}") from None
        except TimeoutError:
            raise ModelUnavailable(f"{url} did not answer within {CHECK_TIMEOUT_S:g} s") from None
        except (*_CONNECTION_ERRORS, ValueError) as error:
            raise ModelUnavailable(connection_failure(url, error, key).message) from None
        if response.status in (401, 403):
            raise ModelUnavailable(f"{url} refuses {self._credential()} (HTTP {response.status})")
        if response.status >= 500 and response.status != 501:
            raise ModelUnavailable(
                f"{url}: {error_from_response(response.status, {}, listed.received, key=key).message}"
            )
        if listed.is_cut:
            raise ModelUnavailable(f"{url}: {listed.too_large().message}")
        return listed.received if response.status == 200 else b""

    async def close(self) -> None:
        """Close the connections of the running event loop; a later call opens new ones."""
        session = self._sessions.take()
        if session is not None:
            await session.close()

    def _new_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=environment_proxy(self.base_url),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        )

    def _credential(self) -> str:
        return f"the key in {self.key.env}" if self.key.env else "a call without a key: set `api_key_env`"


def _sendable(body: bytes) -> bytes | io.BytesIO:
    """The body for aiohttp: a large one as a file, which is sent in chunks."""
    return body if len(body) < _LARGE_BODY else io.BytesIO(body)


def key_for_call(key: Key) -> str | None:
    """API key for a call; None when the server needs none. Raises `ModelError` where it is missing."""
    try:
        return key.read()
    except MissingKey as error:
        raise ModelError("refused", str(error)) from None


def _bearer(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


_NEVER_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)
"""Exceptions of aiohttp before any of the request has left this machine."""


def connection_failure(
    url: str, error: BaseException, key: str | None = None, limits: RateHeaders | None = None
) -> ModelError:
    """Maps an exception of aiohttp, or of a client built on it, to a `ModelError`.

    It may be billed unless the connection was never opened: a server that received the request may have worked on it.

    Args:
        url: the requested address.
        error: as caught; the message of aiohttp is searched among its causes.
        key: the API key in use, kept out of the message.
        limits: rate limits in the headers, when the response broke after them.
    """
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ModelError):
            return cause  # of `BoundedBody`, wrapped by the vendor's SDK
        if isinstance(cause, aiohttp.ClientHttpProxyError):
            kind = "refused" if cause.status in (403, 407) else "connection"
            message = f"HTTP {cause.status} of the proxy on the way to {url}: {cause.message}"
            return ModelError(kind, plain(message, key))
        if isinstance(cause, aiohttp.ClientResponseError):
            message = plain(f"not an HTTP response: {cause.message}", key)
            return ModelError("server", message, may_be_billed=True, limits=limits)
    sent = not any(isinstance(cause, _NEVER_SENT) for cause in causes)
    verb = "lost the connection to" if sent else "cannot reach"
    proxies = [cause for cause in causes if isinstance(cause, aiohttp.ClientProxyConnectionError)]
    way = f" through the proxy {proxies[0].host}:{proxies[0].port}" if proxies else ""
    message = plain(f"{verb} {url}{way}: {reason(error)}", key)
    return ModelError("connection", message, may_be_billed=sent, limits=limits)


def reason(error: BaseException) -> str:
    """Reason for an incomplete response, as text; may name the requested address.

    Args:
        error: as caught. The last in its chain of causes is specific; the vendor's SDK only states "Connection error."
    """
    causes = list(_causes(error))
    return next((text for cause in reversed(causes) if (text := _error_text(cause))), type(causes[-1]).__name__)


def _error_text(cause: BaseException) -> str:
    """Text of one exception; empty when it has none."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({cause.verify_message})"
    if isinstance(cause, ssl.SSLError):
        return f"TLS cannot be agreed upon with it ({(cause.reason or str(cause)).replace('_', ' ').lower()})"
    if isinstance(cause, aiohttp.ClientConnectorError) and isinstance(cause.os_error, ConnectionError):
        return cause.strerror or "it closed the connection while TLS was being agreed upon"
    if isinstance(cause, HttpProcessingError):
        return cause.message  # its text begins with a status that no server sent
    return str(cause)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception, then each one that it was explicitly raised from."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__
