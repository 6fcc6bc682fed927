"""OpenAI's models that its service offers over the Responses API only, through the official SDK."""

from __future__ import annotations

from collections.abc import Sequence

from moot.actors.models.interface import ModelReply
from moot.actors.models.openai_sdk import OpenAIService
from moot.actors.models.rate_headers import rate_headers
from moot.actors.models.reply_schema import ReplySchema
from moot.actors.models.responses_wire import decode_response, encode_request
from moot.protocols.messages import Decoding, Message

_PATH = "/responses"


class ResponsesModel(OpenAIService):
    """`openai/NAME` over the Responses API: one reply at a time, without `seed`, `stop` and streaming.

    Otherwise as `OpenAIModel`: the same key, transport, limits and failures.

    Args:
        model, api_key_env, base_url: see `OpenAIService`.
    """

    api = "responses"

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
        body = encode_request(self.model, messages, decoding, schema=schema)
        key = self._read_key()
        response = await self._answered(_PATH, body, step_key, key)
        return decode_response(response.content, decoding, key=key, limits=rate_headers(response.headers.raw))
