"""Anthropic client through the official SDK."""

from __future__ import annotations

from collections.abc import Sequence

import httpx2
from anthropic import (
    AnthropicError,
    APIConnectionError,
    APIStatusError,
    AsyncAnthropic,
    AsyncStream,
    DefaultAioHttpClient,
)

from moot.actors.models.anthropic_wire import (
    MAX_TEMPERATURE,
    SAMPLING_VERSION,
    decode_reply,
    encode_request,
    error_from_response,
    takes_sampling,
)
from moot.actors.models.families import family_of_model
from moot.actors.models.http_client import VERSIONED
from moot.actors.models.interface import Capabilities, ModelError, ModelReply, RateHeaders, ReplySchema
from moot.actors.models.rate_headers import anthropic_rate_headers
from moot.actors.models.vendor_sdk import VendorService
from moot.protocols.messages import Decoding, Message

DEFAULT_KEY_ENV = "ANTHROPIC_API_KEY"
"""Default environment variable of the key."""


class AnthropicModel(VendorService):
    """Anthropic model, `anthropic/NAME`: no log-probabilities; a temperature only where the model supports it.

    Args:
        model, api_key_env: see `VendorService`.
        base_url: another endpoint of the same API, up to and without `/v1`; None for the SDK's default or
            `ANTHROPIC_BASE_URL`.
    """

    vendor, default_url = "anthropic", "https://api.anthropic.com"
    path = "/v1/messages"
    client, http_client = AsyncAnthropic, DefaultAioHttpClient
    client_options = {"open_telemetry": False}  # noqa: RUF012 - never changed
    stream_class = AsyncStream[object]
    any_error, connection_error, status_error = AnthropicError, APIConnectionError, APIStatusError

    def __init__(self, model: str, *, api_key_env: str = DEFAULT_KEY_ENV, base_url: str | None = None) -> None:
        self._sampling = takes_sampling(model)
        family = family_of_model("anthropic", model)
        efforts = family.efforts if family is not None else ()
        can = Capabilities(
            images=True,
            structured_output="yes",
            dialect="anthropic",
            settings=frozenset({"stop", "extra", *(("reasoning_effort",) if efforts else ())}),
            efforts=efforts,
            max_temperature=MAX_TEMPERATURE if self._sampling else None,
        )
        super().__init__(model, api_key_env=api_key_env, base_url=base_url, capabilities=can)

    @staticmethod
    def _hint_at(base_url: str) -> str:
        return "`base_url` is written without /v1" if VERSIONED.search(base_url) else ""

    def _headers(self, step_key: str, accept: str = "application/json") -> dict[str, str]:
        version = {"anthropic-version": SAMPLING_VERSION} if self._sampling else {}
        return super()._headers(step_key, accept) | version

    def _encoded(
        self, messages: Sequence[Message], decoding: Decoding, step_key: str, schema: ReplySchema | None
    ) -> bytes:
        return encode_request(self.model, messages, decoding, schema)

    def _decoded(self, body: bytes, response: httpx2.Response, decoding: Decoding, key: str | None) -> ModelReply:
        return decode_reply(body, limits=self._rate_limits(response), key=key)

    def _rate_limits(self, response: httpx2.Response) -> RateHeaders | None:
        return anthropic_rate_headers(response.headers)

    def _refused(self, response: httpx2.Response, key: str | None) -> ModelError:
        return error_from_response(response.status_code, response.headers, response.content, key=key)
