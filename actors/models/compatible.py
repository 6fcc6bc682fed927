"""Any server that speaks the OpenAI chat-completions wire, through a lean HTTP client."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import aiohttp
from pydantic import BaseModel
from yarl import URL

from moot.actors.models.api_key import ApiKey
from moot.actors.models.connection_errors import connection_failure
from moot.actors.models.interface import Capabilities, ModelError, ModelReply, RateHeaders, StreamPiece
from moot.actors.models.openai_errors import error_from_response
from moot.actors.models.openai_stream import EVENT_STREAM, read_pieces
from moot.actors.models.openai_wire import REQUEST_ID_HEADER, decode_reply, encode_request, request_id
from moot.actors.models.per_loop import PerLoop
from moot.actors.models.rate_headers import rate_headers
from moot.protocols.errors import MissingKey, ModelUnavailable
from moot.protocols.messages import Decoding, Message

CONNECT_TIMEOUT_S = 10.0
"""Seconds to open a connection. A call has no other limit of its own: the agent cancels at its deadline."""

CHECK_TIMEOUT_S = 5.0
"""Seconds that `CompatibleModel.check` waits for the server."""

MAX_ALTERNATIVES = 20
"""Largest `top_logprobs` that the wire format allows."""

_LARGE_BODY = 2**19
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "moot"}
_CONNECTION_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class CompatibleModel:
    """A model behind `http://host:port/v1#model`: vLLM, Ollama, llama.cpp, Ray Serve LLM, `moot simulate`.

    One instance serves any number of calls at once, in any number of event loops; close it in each of them.

    Args:
        base_url: the URL up to and without `/chat/completions`; holds no user, password or query.
        model: the model's name on that server.
        api_key_env: name of the environment variable with the key; None sends no key.
        connection_limit: most connections open at once; 0 for no limit.
    """

    def __init__(self, base_url: str, model: str, *, api_key_env: str | None = None, connection_limit: int = 0) -> None:
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.name = f"{self.base_url}#{model}"
        self.capabilities = Capabilities(
            max_alternatives=MAX_ALTERNATIVES, images=True, structured_output="on request", streaming=True
        )
        self._url = URL(f"{self.base_url}/chat/completions")
        self._key = ApiKey(api_key_env)
        self._connection_limit = connection_limit
        self._sessions = PerLoop(self._new_session)

    def __repr__(self) -> str:
        return f"CompatibleModel({self.name!r}, api_key_env={self._key.env!r})"

    async def complete(
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        *,
        step_key: str,
        schema: type[BaseModel] | None = None,
    ) -> ModelReply:
        """One HTTP request, never repeated here; cancelling it closes its connection.

        Raises:
            ModelError: see `moot.actors.models.openai_errors` for the kinds.
        """
        body = encode_request(self.model, messages, decoding, schema=schema)
        key = self._read_key()
        try:
            async with self._sessions.get().post(
                self._url, data=_sendable(body), headers=_headers(step_key, key), allow_redirects=False
            ) as response:
                received = await response.read()
        except _CONNECTION_ERRORS as error:
            raise connection_failure(self.base_url, error, key) from None
        limits = rate_headers(response.raw_headers)
        if response.status != 200:
            raise error_from_response(response.status, response.headers, received, key=key, limits=limits)
        return decode_reply(received, decoding, key=key, limits=limits)

    async def stream(
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        *,
        step_key: str,
        schema: type[BaseModel] | None = None,
    ) -> AsyncGenerator[StreamPiece, None]:
        """One HTTP request whose reply is given while it comes; closing the generator closes its connection.

        Raises:
            ModelError: while iterating; see `moot.actors.models.openai_errors` for the kinds.
        """
        body = encode_request(self.model, messages, decoding, schema=schema, stream=True)
        key = self._read_key()
        headers = _headers(step_key, key) | {"Accept": EVENT_STREAM}
        try:
            async with self._sessions.get().post(
                self._url, data=_sendable(body), headers=headers, allow_redirects=False
            ) as response:
                limits = rate_headers(response.raw_headers)
                if response.status != 200:
                    failed = await response.read()
                    raise error_from_response(response.status, response.headers, failed, key=key, limits=limits)
                async with (
                    aclosing(self._chunks(response, key, limits)) as chunks,
                    aclosing(read_pieces(chunks, response.content_type, decoding, key=key, limits=limits)) as pieces,
                ):
                    async for piece in pieces:
                        yield piece
        except _CONNECTION_ERRORS as error:
            raise connection_failure(self.base_url, error, key) from None

    async def _chunks(
        self, response: aiohttp.ClientResponse, key: str | None, limits: RateHeaders | None
    ) -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except _CONNECTION_ERRORS as error:
            raise connection_failure(self.base_url, error, key, limits) from None

    async def check(self) -> None:
        """Ask the server for its list of models, which costs nothing. A server without such a list passes.

        Raises:
            MissingKey: the key's environment variable is not set.
            ModelUnavailable: the server does not answer within `CHECK_TIMEOUT_S`, is failing, or refuses the
                key.
        """
        key = self._key.read()
        url = f"{self.base_url}/models"
        try:
            async with self._sessions.get().get(
                URL(url),
                headers=_bearer(key),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=CHECK_TIMEOUT_S),
            ) as response:
                received = await response.read()
        except TimeoutError:
            raise ModelUnavailable(f"{url} did not answer within {CHECK_TIMEOUT_S:g} s") from None
        except (*_CONNECTION_ERRORS, ValueError) as error:
            raise ModelUnavailable(connection_failure(url, error, key).message) from None
        if response.status in (401, 403):
            raise ModelUnavailable(f"{url} refuses {self._credential()} (HTTP {response.status})")
        if response.status >= 500 and response.status != 501:
            raise ModelUnavailable(f"{url}: {error_from_response(response.status, {}, received, key=key).message}")

    async def close(self) -> None:
        """Close the connections of the running event loop; a later call opens new ones."""
        session = self._sessions.take()
        if session is not None:
            await session.close()

    def _read_key(self) -> str | None:
        try:
            return self._key.read()
        except MissingKey as error:
            raise ModelError("refused", str(error)) from None

    def _new_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connection_limit),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        )

    def _credential(self) -> str:
        return f"the key in {self._key.env}" if self._key.env else "a call without a key: set `api_key_env`"


def _headers(step_key: str, key: str | None) -> dict[str, str]:
    return {**_HEADERS, REQUEST_ID_HEADER: request_id(step_key), **_bearer(key)}


def _sendable(body: bytes) -> bytes | io.BytesIO:
    """The body as aiohttp wants it: a large one as a file, which is sent piece by piece."""
    return body if len(body) < _LARGE_BODY else io.BytesIO(body)


def _bearer(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}
