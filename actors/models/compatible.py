"""Backend for any server with the OpenAI chat-completions API, through a small HTTP client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

import msgspec

from moot.actors.models.api_key import Key
from moot.actors.models.families import family_of_model
from moot.actors.models.http_client import HttpClient
from moot.actors.models.interface import Capabilities, ModelReply, ReplySchema, StreamPiece
from moot.actors.models.listed_model import ListedModel, listed_model
from moot.actors.models.openai_errors import hint_at_url
from moot.actors.models.openai_stream import EVENT_STREAM, read_pieces, read_reply
from moot.actors.models.openai_wire import encode_request, step_seed
from moot.actors.models.reply_bounds import BoundedBody, most_bytes, read_bounded
from moot.actors.models.schema_dialects import DialectName
from moot.protocols.messages import Decoding, Message

_PATH = "/chat/completions"

MAX_ALTERNATIVES = 20
"""Largest `top_logprobs` that the wire format allows."""


class CompatibleModel:
    """OpenAI-compatible model, `http://host:port/v1#model`: vLLM, Ollama, llama.cpp, Ray Serve LLM, `moot simulate`.

    One instance serves any number of calls at once, in any number of event loops; close it in each of them.

    Args:
        base_url: the URL up to and without `/chat/completions`; contains no user, password or query.
        model: the model's name on that server.
        api_key_env: name of the environment variable with the key; None sends no key.
        key: another source of the key than an environment variable.
        seed: of the run; each request derives one of its own. None sends no seed.

    Attributes:
        listed: what the server's list of models states about it, once it was checked.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key_env: str | None = None,
        key: Key | None = None,
        seed: int | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.name = f"{self.base_url}#{model}"
        family = family_of_model("any", model)
        self.capabilities = Capabilities(
            max_alternatives=MAX_ALTERNATIVES,
            images=True,
            structured_output="on request",
            streaming=True,
            reasons=family is not None and family.reasons,
            settings=frozenset({"seed", "stop", "repetition_penalty", "reasoning_effort", "extra"}),
        )
        self._http = HttpClient(self.base_url, api_key_env=api_key_env, key=key)
        self._seed = seed
        self.listed = ListedModel()

    def __repr__(self) -> str:
        return f"CompatibleModel({self.name!r}, api_key_env={self._http.key.env!r})"

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        """One HTTP request, without retries; cancelling it closes its connection.

        Raises:
            ModelError: see `moot.actors.models.openai_errors` for the kinds.
        """
        seed = self._seed_of(messages, decoding, step_key)
        body = encode_request(self.model, messages, decoding, schema=schema, seed=seed)
        with hint_at_url(self._http.url_hint):
            async with (
                self._http.opened(_PATH, body, step_key) as response,
                aclosing(response.chunks()) as chunks,
            ):
                decode = partial(read_reply, decoding=decoding, key=response.key, limits=response.limits)
                return await read_bounded(BoundedBody(chunks, most_bytes(decoding)), decoding.max_tokens, decode)

    async def stream(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> AsyncGenerator[StreamPiece, None]:
        """Streams the reply of one HTTP request; closing the generator closes its connection.

        Raises:
            ModelError: while iterating; see `moot.actors.models.openai_errors` for the kinds.
        """
        seed = self._seed_of(messages, decoding, step_key)
        body = encode_request(self.model, messages, decoding, schema=schema, stream=True, seed=seed)
        with hint_at_url(self._http.url_hint):
            async with (
                self._http.opened(_PATH, body, step_key, accept=EVENT_STREAM) as response,
                aclosing(response.chunks()) as chunks,
                aclosing(
                    read_pieces(chunks, response.content_type, decoding, key=response.key, limits=response.limits)
                ) as pieces,
            ):
                async for piece in pieces:
                    yield piece

    def _seed_of(self, messages: Sequence[Message], decoding: Decoding, step_key: str) -> int | None:
        return step_seed(self._seed if decoding.seed is None else decoding.seed, messages, step_key, decoding)

    async def check(self) -> None:
        """Request the server's list of models, which identifies the kind of server; see `HttpClient.check`."""
        listed = await self._http.check()
        self.listed = listed_model(listed, self.model)
        self.capabilities = replace(self.capabilities, dialect=dialect_of_server(self.base_url, listed))

    async def close(self) -> None:
        """Close the connections of the running event loop; a later call opens new ones."""
        await self._http.close()


_OWNERS: Mapping[str, DialectName] = {
    "llamacpp": "llama.cpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "library": "ollama",
}
"""Values of `owned_by` by server."""

_HOSTS: Mapping[str, DialectName] = {"api.openai.com": "openai"}


class _Listed(msgspec.Struct):
    owned_by: str | None = None


class _List(msgspec.Struct):
    data: list[_Listed] = []


def dialect_of_server(base_url: str, models: bytes) -> DialectName:
    """The dialect of a server's JSON schemas.

    Args:
        base_url: of the server.
        models: its list of models as JSON; empty where it has none.

    >>> dialect_of_server("http://127.0.0.1:8000/v1", b'{"data": [{"id": "m", "owned_by": "vllm"}]}')
    'vllm'
    """
    if (host := urlsplit(base_url).hostname or "") in _HOSTS:
        return _HOSTS[host]
    try:
        listed = msgspec.json.decode(models, type=_List)
    except (ValueError, RecursionError):
        return "portable"
    found = {_OWNERS.get(model.owned_by or "", "portable") for model in listed.data}
    return found.pop() if len(found) == 1 else "portable"
