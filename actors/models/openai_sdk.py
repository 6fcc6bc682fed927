"""OpenAI's own service through the official SDK."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import ClassVar, cast

import aiohttp
import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, AsyncStream, DefaultAioHttpClient, OpenAIError

from moot.actors.models.api_key import ApiKey
from moot.actors.models.connection_errors import connection_failure
from moot.actors.models.families import Api, family_of_model
from moot.actors.models.interface import Capabilities, ModelError, ModelReply, RateHeaders, StreamPiece
from moot.actors.models.openai_errors import error_from_response, plain
from moot.actors.models.openai_stream import EVENT_STREAM, read_pieces
from moot.actors.models.openai_wire import REQUEST_ID_HEADER, LengthField, decode_reply, encode_request, request_id
from moot.actors.models.per_loop import PerLoop
from moot.actors.models.rate_headers import rate_headers
from moot.actors.models.reply_bound import bounded, bounded_client
from moot.actors.models.reply_schema import ReplySchema
from moot.actors.models.step_seed import step_seed
from moot.protocols.errors import MissingKey
from moot.protocols.messages import Decoding, Message

CONNECT_TIMEOUT_S = 10.0
"""Seconds to open a connection. A call has no other limit of its own: the agent cancels at its deadline."""

DEFAULT_KEY_ENV = "OPENAI_API_KEY"
"""The environment variable that holds the key unless a role names another."""

_PATH = "/chat/completions"
_LENGTH_FIELD: LengthField = "max_completion_tokens"
_BROKEN = (httpx2.HTTPError, aiohttp.ClientError, OSError)
"""What the SDK's transport raises when a response breaks off: some of it wrapped, some as aiohttp raised it."""
_FAILURES = (OpenAIError, *_BROKEN)
_UNBOUNDED = 0
"""aiohttp's "no limit"; with None the SDK's transport would fall back to 100 connections."""


class OpenAIService:
    """What the models of OpenAI's service share, whichever API they are asked over.

    The SDK's own retries are off (`call_with_retries` is the one policy) and so is its response parsing,
    which costs several milliseconds per reply with log-probabilities. One instance serves any number of calls at once,
    in any number of event loops; close it in each of them.

    Args:
        model: OpenAI's name of the model.
        api_key_env: name of the environment variable with the key.
        base_url: another endpoint of the same API; None for the SDK's default or `OPENAI_BASE_URL`.
    """

    api: ClassVar[Api]

    def __init__(self, model: str, *, api_key_env: str = DEFAULT_KEY_ENV, base_url: str | None = None) -> None:
        self.model = model
        self.name = f"openai/{model}"
        self.base_url = base_url
        family = family_of_model("openai", model)
        chat = self.api == "chat"
        self.capabilities = Capabilities(
            max_alternatives=20 if family is None or family.logprobs else 0,
            images=True,
            structured_output="yes",
            dialect="openai",
            streaming=chat,
            reasons=family is not None and family.reasons,
            settings=frozenset({"reasoning_effort", "extra", *(("seed", "stop") if chat else ())}),
            api=self.api,
            max_temperature=2.0 if family is None or family.sampling else None,
        )
        self._key = ApiKey(api_key_env)
        self._clients = PerLoop(self._new_client)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, api_key_env={self._key.env!r}, base_url={self.base_url!r})"

    async def _answered(self, path: str, body: bytes, step_key: str, key: str | None) -> httpx2.Response:
        """A whole 200 response; a failure is a `ModelError`."""
        try:
            return await self._clients.get().post(
                path,
                cast_to=httpx2.Response,
                content=body,
                options={"headers": _headers(step_key, "application/json")},
            )
        except _FAILURES as error:
            raise self._failure(error, key) from None

    def _failure(self, error: Exception, key: str | None) -> ModelError:
        if isinstance(error, APIStatusError):
            failed = error.response
            limits = rate_headers(failed.headers.raw)
            return error_from_response(failed.status_code, failed.headers, failed.content, key=key, limits=limits)
        if isinstance(error, (APIConnectionError, *_BROKEN)):
            return connection_failure(self._endpoint, error, key)
        return ModelError("request", plain(str(error), key))

    @property
    def _endpoint(self) -> str:
        return self.base_url or "OpenAI"

    def _read_key(self) -> str | None:
        try:
            return self._key.read()
        except MissingKey as error:
            raise ModelError("refused", str(error)) from None

    async def check(self) -> None:
        """Look whether the key is set; the network is not touched.

        Raises:
            MissingKey: naming the environment variable and how to set it.
        """
        self._key.read()

    async def close(self) -> None:
        """Close the connections of the running event loop; a later call opens new ones."""
        client = self._clients.take()
        if client is not None:
            await client.close()

    def _new_client(self) -> AsyncOpenAI:
        return AsyncOpenAI(
            api_key=self._key.read(),
            base_url=self.base_url,
            max_retries=0,
            http_client=bounded_client(
                DefaultAioHttpClient,
                limits=httpx2.Limits(max_connections=_UNBOUNDED),
                timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
                follow_redirects=False,
            ),
        )


class OpenAIModel(OpenAIService):
    """`openai/NAME` over chat completions: the SDK does the authentication and the transport, our decoder reads.

    The reply's bound is sent as `max_completion_tokens`.

    Args:
        model, api_key_env, base_url: see `OpenAIService`.
    """

    api = "chat"

    async def complete(
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        *,
        step_key: str,
        schema: ReplySchema | None = None,
    ) -> ModelReply:
        """One HTTP request, never repeated here; cancelling it closes its connection.

        Raises:
            ModelError: see `moot.actors.models.openai_errors` for the kinds.
        """
        body = self._request(messages, decoding, step_key, schema)
        key = self._read_key()
        response = await self._answered(_PATH, body, step_key, key)
        return decode_reply(response.content, decoding, key=key, limits=rate_headers(response.headers.raw))

    async def stream(
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        *,
        step_key: str,
        schema: ReplySchema | None = None,
    ) -> AsyncGenerator[StreamPiece, None]:
        """One HTTP request whose reply is given while it comes; closing the generator closes its connection.

        Raises:
            ModelError: while iterating; see `moot.actors.models.openai_errors` for the kinds.
        """
        body = self._request(messages, decoding, step_key, schema, stream=True)
        key = self._read_key()
        response = await self._opened(body, _headers(step_key, EVENT_STREAM), key)
        try:
            limits = rate_headers(response.headers.raw)
            kind = response.headers.get("Content-Type", "")
            async with (
                aclosing(self._chunks(response, key, limits)) as chunks,
                aclosing(read_pieces(chunks, kind, decoding, key=key, limits=limits)) as pieces,
            ):
                async for piece in pieces:
                    yield piece
        finally:
            await response.aclose()

    def _request(
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        step_key: str,
        schema: ReplySchema | None,
        *,
        stream: bool = False,
    ) -> bytes:
        seed = None if decoding.seed is None else step_seed(decoding.seed, messages, step_key, decoding)
        return encode_request(self.model, messages, decoding, _LENGTH_FIELD, schema=schema, stream=stream, seed=seed)

    async def _opened(self, body: bytes, headers: dict[str, str], key: str | None) -> httpx2.Response:
        try:
            opened = await self._clients.get().post(
                _PATH,
                cast_to=httpx2.Response,
                content=body,
                options={"headers": headers},
                stream=True,
                stream_cls=AsyncStream[object],
            )
        except _FAILURES as error:
            raise self._failure(error, key) from None
        return cast(httpx2.Response, opened)  # a raw response is what `cast_to` asks for, and what comes

    async def _chunks(
        self, response: httpx2.Response, key: str | None, limits: RateHeaders | None
    ) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(bounded(response.aiter_bytes())) as chunks:
                async for chunk in chunks:
                    yield chunk
        except _BROKEN as error:
            raise connection_failure(self._endpoint, error, key, limits) from None


def _headers(step_key: str, accept: str) -> dict[str, str]:
    return {"Content-Type": "application/json", "Accept": accept, REQUEST_ID_HEADER: request_id(step_key)}
