"""Base class of the OpenAI and Anthropic clients, through their official SDKs."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, ClassVar

import aiohttp
import httpx2

from moot.actors.models.api_key import ApiKey
from moot.actors.models.http_client import (
    CONNECT_TIMEOUT_S,
    MOST_BYTES_OF_AN_ERROR,
    connection_failure,
    key_for_call,
)
from moot.actors.models.interface import Capabilities, ModelError, ModelReply, RateHeaders, ReplySchema
from moot.actors.models.off_loop import PerLoop
from moot.actors.models.openai_errors import hint_at_url, plain
from moot.actors.models.openai_wire import REQUEST_ID_HEADER, request_id
from moot.actors.models.proxies import environment_proxy
from moot.actors.models.reply_bounds import BoundedBody, most_bytes, read_bounded
from moot.protocols.messages import Decoding, Message

BROKEN = (httpx2.HTTPError, aiohttp.ClientError, OSError)
"""Exceptions of an SDK's transport for a broken response: some wrapped, some as raised by aiohttp."""

_UNBOUNDED = 0
"""aiohttp's "no limit"; with None the SDKs' transport would use a limit of its own."""

_DIRECT = {"http://": None, "https://": None}
"""Replaces the transports for the environment's proxies, which the SDKs choose by a rule of their own."""

_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class VendorService:
    """Model of a vendor's service: the SDK does authentication and transport, moot's codec decodes the bytes.

    The SDK's own retries are off (`call_with_retries` is the one policy) and so are its response parsing, which costs
    several milliseconds per reply with log-probabilities, and its tracing. One instance serves any number of calls at
    once, in any number of event loops; close it in each of them.

    Args:
        model: the vendor's name of the model.
        api_key_env: name of the environment variable with the key.
        base_url: another endpoint of the same API; None for the SDK's default or its environment variable.
    """

    vendor: ClassVar[str]
    path: ClassVar[str]
    default_url: ClassVar[str]
    client: ClassVar[Any]
    http_client: ClassVar[Any]
    client_options: ClassVar[dict[str, Any]] = {}
    stream_class: ClassVar[Any]
    any_error: ClassVar[type[Exception]]
    connection_error: ClassVar[type[Exception]]
    status_error: ClassVar[Any]

    def __init__(self, model: str, *, api_key_env: str, base_url: str | None, capabilities: Capabilities) -> None:
        self.model, self.base_url, self.capabilities = model, base_url, capabilities
        self.name = f"{self.vendor}/{model}"
        self._endpoint = base_url or {"openai": "OpenAI", "anthropic": "Anthropic"}[self.vendor]
        self._url_hint = self._hint_at(base_url) if base_url else ""
        self._key = ApiKey(api_key_env)
        self._clients = PerLoop(self._new_client)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, api_key_env={self._key.env!r}, base_url={self.base_url!r})"

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        """One HTTP request, without retries; cancelling it closes its connection.

        Raises:
            ModelError: see the vendor's table of errors for the kinds.
            ConfigError: `schema` cannot be written as a JSON schema.
        """
        body = self._encoded(messages, decoding, step_key, schema)
        key = key_for_call(self._key)
        with hint_at_url(self._url_hint):
            async with self._posted(body, self._headers(step_key), key) as response:
                chunks = self._chunks(response, key)
                async with aclosing(chunks):
                    decode = partial(self._decoded, response=response, decoding=decoding, key=key)
                    return await read_bounded(BoundedBody(chunks, most_bytes(decoding)), decoding.max_tokens, decode)

    @asynccontextmanager
    async def _posted(self, body: bytes, headers: dict[str, str], key: str | None) -> AsyncIterator[httpx2.Response]:
        """Posts a request; gives its 200 response with an unread body. A failure is a `ModelError`."""
        try:
            response: httpx2.Response = await self._clients.get().post(
                self.path,
                cast_to=httpx2.Response,
                content=body,
                options={"headers": headers},
                stream=True,
                stream_cls=self.stream_class,
            )
        except self.status_error as error:
            raise self._refused(error.response, key) from None
        except (self.connection_error, *BROKEN) as error:
            raise connection_failure(self._endpoint, error, key) from None
        except self.any_error as error:
            raise ModelError("request", plain(str(error), key)) from None
        try:
            yield response
        finally:
            await response.aclose()

    async def _chunks(self, response: httpx2.Response, key: str | None) -> AsyncGenerator[bytes, None]:
        """Streams the body of a response, decompressed, without a bound."""
        try:
            async with aclosing(response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except BROKEN as error:
            raise connection_failure(self._endpoint, error, key, self._rate_limits(response)) from None

    def _headers(self, step_key: str, accept: str = "application/json") -> dict[str, str]:
        return {"Content-Type": "application/json", "Accept": accept, REQUEST_ID_HEADER: request_id(step_key)}

    def _encoded(
        self, messages: Sequence[Message], decoding: Decoding, step_key: str, schema: ReplySchema | None
    ) -> bytes:
        raise NotImplementedError

    def _decoded(self, body: bytes, response: httpx2.Response, decoding: Decoding, key: str | None) -> ModelReply:
        raise NotImplementedError

    def _rate_limits(self, response: httpx2.Response) -> RateHeaders | None:
        raise NotImplementedError

    def _refused(self, response: httpx2.Response, key: str | None) -> ModelError:
        raise NotImplementedError

    async def check(self) -> None:
        """Check that the key is set; no network access.

        Raises:
            MissingKey: names the environment variable and how to set it.
        """
        self._key.read()

    async def close(self) -> None:
        """Close the connections of the running event loop; a later call opens new ones."""
        client = self._clients.take()
        if client is not None:
            await client.close()

    @staticmethod
    def _hint_at(base_url: str) -> str:
        """What may be wrong with a base URL; empty for nothing."""
        raise NotImplementedError

    def _new_client(self) -> Any:
        url = self.base_url or os.environ.get(f"{self.vendor.upper()}_BASE_URL") or self.default_url
        proxy = environment_proxy(url)
        http_client = _bounded_client(
            self.http_client,
            limits=httpx2.Limits(max_connections=_UNBOUNDED),
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            follow_redirects=False,
            proxy=proxy,
            mounts=None if proxy else _DIRECT,
        )
        return self.client(
            api_key=self._key.read(),
            base_url=self.base_url,
            max_retries=0,
            http_client=http_client,
            **self.client_options,
        )


def _bounded_client(client: type[httpx2.AsyncClient], **options: Any) -> httpx2.AsyncClient:
    """SDK client with bounded errors; the body of a reply is bounded by its reader.

    Args:
        client: the SDK's class.
        options: its arguments.
    """

    class Bounded(client):  # type: ignore[misc, valid-type]
        """Client with bounded errors."""

        async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            """Response, unread if it is a success."""
            response = await super().send(request, **options)
            if response.is_success:
                return response  # type: ignore[no-any-return]
            try:
                async with aclosing(response.aiter_bytes()) as chunks:
                    body = (await BoundedBody(chunks, MOST_BYTES_OF_AN_ERROR).read()).received
            finally:
                await response.aclose()
            headers = [
                (name, value) for name, value in response.headers.raw if name.decode().lower() not in _OF_THE_WIRE
            ]
            return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    return Bounded(**options)
