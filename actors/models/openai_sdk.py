"""OpenAI clients through the official SDK: chat completions, and the Responses API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import ClassVar

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, AsyncStream, DefaultAioHttpClient, OpenAIError

from moot.actors.models.families import Api, family_of_model
from moot.actors.models.http_client import VERSIONED, key_for_call
from moot.actors.models.interface import Capabilities, ModelError, ModelReply, RateHeaders, ReplySchema, StreamPiece
from moot.actors.models.openai_errors import error_from_response, hint_at_url
from moot.actors.models.openai_stream import EVENT_STREAM, read_pieces, read_reply
from moot.actors.models.openai_wire import LengthField, encode_request, step_seed
from moot.actors.models.rate_headers import rate_headers
from moot.actors.models.responses_wire import decode_response
from moot.actors.models.responses_wire import encode_request as encode_response_request
from moot.actors.models.vendor_sdk import VendorService
from moot.protocols.messages import Decoding, Message

DEFAULT_KEY_ENV = "OPENAI_API_KEY"
"""Default environment variable of the key."""

_LENGTH_FIELD: LengthField = "max_completion_tokens"


class OpenAIService(VendorService):
    """Base class of OpenAI models, for both APIs.

    Args:
        model, api_key_env, base_url: see `VendorService`.
    """

    vendor, default_url = "openai", "https://api.openai.com/v1"
    client, http_client = AsyncOpenAI, DefaultAioHttpClient
    stream_class = AsyncStream[object]
    any_error, connection_error, status_error = OpenAIError, APIConnectionError, APIStatusError
    api: ClassVar[Api]

    def __init__(self, model: str, *, api_key_env: str = DEFAULT_KEY_ENV, base_url: str | None = None) -> None:
        family = family_of_model("openai", model)
        chat = self.api == "chat"
        can = Capabilities(
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
        super().__init__(model, api_key_env=api_key_env, base_url=base_url, capabilities=can)

    @staticmethod
    def _hint_at(base_url: str) -> str:
        return "" if VERSIONED.search(base_url) else "`base_url` usually ends with /v1"

    def _refused(self, response: httpx2.Response, key: str | None) -> ModelError:
        limits = self._rate_limits(response)
        return error_from_response(response.status_code, response.headers, response.content, key=key, limits=limits)

    def _rate_limits(self, response: httpx2.Response) -> RateHeaders | None:
        return rate_headers(response.headers.raw)


class OpenAIModel(OpenAIService):
    """OpenAI model over chat completions, `openai/NAME`. The reply's bound is sent as `max_completion_tokens`.

    Args:
        model, api_key_env, base_url: see `VendorService`.
    """

    api = "chat"
    path = "/chat/completions"

    async def stream(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> AsyncGenerator[StreamPiece, None]:
        """Streams the reply of one HTTP request; closing the generator closes its connection.

        Raises:
            ModelError: while iterating; see `moot.actors.models.openai_errors` for the kinds.
        """
        body = self._encoded(messages, decoding, step_key, schema, stream=True)
        key = key_for_call(self._key)
        headers = self._headers(step_key, EVENT_STREAM)
        with hint_at_url(self._url_hint):
            async with self._posted(body, headers, key) as response:
                kind, limits = response.headers.get("Content-Type", ""), self._rate_limits(response)
                async with (
                    aclosing(self._chunks(response, key)) as chunks,
                    aclosing(read_pieces(chunks, kind, decoding, key=key, limits=limits)) as pieces,
                ):
                    async for piece in pieces:
                        yield piece

    def _encoded(
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        step_key: str,
        schema: ReplySchema | None,
        *,
        stream: bool = False,
    ) -> bytes:
        seed = step_seed(decoding.seed, messages, step_key, decoding)
        return encode_request(self.model, messages, decoding, _LENGTH_FIELD, schema=schema, stream=stream, seed=seed)

    def _decoded(self, body: bytes, response: httpx2.Response, decoding: Decoding, key: str | None) -> ModelReply:
        return read_reply(body, decoding, key=key, limits=self._rate_limits(response))


class ResponsesModel(OpenAIService):
    """OpenAI model over the Responses API, `openai/NAME`: without `seed`, `stop` and streaming.

    Args:
        model, api_key_env, base_url: see `VendorService`.
    """

    api = "responses"
    path = "/responses"

    def _encoded(
        self, messages: Sequence[Message], decoding: Decoding, step_key: str, schema: ReplySchema | None
    ) -> bytes:
        return encode_response_request(self.model, messages, decoding, schema=schema)

    def _decoded(self, body: bytes, response: httpx2.Response, decoding: Decoding, key: str | None) -> ModelReply:
        return decode_response(body, decoding, key=key, limits=self._rate_limits(response))
