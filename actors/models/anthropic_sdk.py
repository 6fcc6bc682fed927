"""Anthropic's service through the official SDK."""

from __future__ import annotations

import time
from collections.abc import Sequence

import aiohttp
import httpx2
from anthropic import AnthropicError, APIConnectionError, APIStatusError, AsyncAnthropic, DefaultAioHttpClient

from moot.actors.models.anthropic_errors import error_from_response
from moot.actors.models.anthropic_limits import rate_headers
from moot.actors.models.anthropic_sampling import MAX_TEMPERATURE, SAMPLING_VERSION, takes_sampling
from moot.actors.models.anthropic_wire import decode_reply, encode_request
from moot.actors.models.api_key import ApiKey
from moot.actors.models.connection_errors import connection_failure
from moot.actors.models.families import family_of_model
from moot.actors.models.interface import Capabilities, ModelError, ModelReply
from moot.actors.models.openai_errors import plain
from moot.actors.models.openai_wire import REQUEST_ID_HEADER, request_id
from moot.actors.models.per_loop import PerLoop
from moot.actors.models.reply_bound import bounded_client
from moot.actors.models.reply_schema import ReplySchema
from moot.protocols.errors import MissingKey
from moot.protocols.messages import Decoding, Message

CONNECT_TIMEOUT_S = 10.0
"""Seconds to open a connection. A call has no other limit of its own: the agent cancels at its deadline."""

DEFAULT_KEY_ENV = "ANTHROPIC_API_KEY"
"""The environment variable that holds the key unless a role names another."""

_UNBOUNDED = 0
"""aiohttp's "no limit"; with None the SDK's transport would fall back to a limit of its own."""


class AnthropicModel:
    """`anthropic/NAME`: the SDK does the authentication and the transport, our decoder reads the bytes.

    The SDK's own retries are off (`call_with_retries` is the one policy) and so are its response parsing and its
    tracing. It gives no log-probabilities. A temperature is sent only to the models that take one. One instance serves
    any number of calls at once, in any number of event loops; close it in each of them.

    Args:
        model: Anthropic's name of the model.
        api_key_env: name of the environment variable with the key.
        base_url: another endpoint of the same API, up to and without `/v1`; None for the SDK's default or
            `ANTHROPIC_BASE_URL`.
    """

    def __init__(self, model: str, *, api_key_env: str = DEFAULT_KEY_ENV, base_url: str | None = None) -> None:
        self.model = model
        self.name = f"anthropic/{model}"
        self.base_url = base_url
        self._sampling = takes_sampling(model)
        family = family_of_model("anthropic", model)
        efforts = family.efforts if family is not None else ()
        self.capabilities = Capabilities(
            images=True,
            structured_output="yes",
            dialect="anthropic",
            settings=frozenset({"stop", "extra", *(("reasoning_effort",) if efforts else ())}),
            efforts=efforts,
            max_temperature=MAX_TEMPERATURE if self._sampling else None,
        )
        self._key = ApiKey(api_key_env)
        self._clients = PerLoop(self._new_client)

    def __repr__(self) -> str:
        return f"AnthropicModel({self.model!r}, api_key_env={self._key.env!r}, base_url={self.base_url!r})"

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
            ModelError: see `moot.actors.models.anthropic_errors` for the kinds.
            ConfigError: `schema` cannot be written as a JSON schema.
        """
        body = encode_request(self.model, messages, decoding, schema)
        try:
            key = self._key.read()
        except MissingKey as error:
            raise ModelError("refused", str(error)) from None
        headers = {"Content-Type": "application/json", REQUEST_ID_HEADER: request_id(step_key)}
        if self._sampling:
            headers["anthropic-version"] = SAMPLING_VERSION
        try:
            response = await self._clients.get().post(
                "/v1/messages", cast_to=httpx2.Response, content=body, options={"headers": headers}
            )
        except APIStatusError as error:
            failed = error.response
            raise error_from_response(failed.status_code, failed.headers, failed.content, key=key) from None
        except (APIConnectionError, aiohttp.ClientError, OSError) as error:
            raise connection_failure(self.base_url or "Anthropic", error, key) from None
        except AnthropicError as error:
            raise ModelError("request", plain(str(error), key)) from None
        return decode_reply(response.content, limits=rate_headers(response.headers, time.time()), key=key)

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

    def _new_client(self) -> AsyncAnthropic:
        return AsyncAnthropic(
            api_key=self._key.read(),
            base_url=self.base_url,
            max_retries=0,
            open_telemetry=False,
            http_client=bounded_client(
                DefaultAioHttpClient,
                limits=httpx2.Limits(max_connections=_UNBOUNDED),
                timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
                follow_redirects=False,
            ),
        )
