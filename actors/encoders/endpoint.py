"""Embeddings from any server that speaks the OpenAI wire, OpenAI's own included."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import blake2b

from moot.actors.encoders.embeddings_wire import decode_reply, encode_request
from moot.actors.encoders.interface import Rows
from moot.actors.models.interface import ModelError
from moot.actors.models.lean_http import LeanHttp

MOST_UNDER_WAY = 4
"""Requests open at once: while they are, further texts gather for the next one."""

DEADLINE_S = 120.0
"""Seconds that a batch, and whoever waits for a text, gives the server, retries included."""


_LARGE_BODY = 2**20
"""Bytes of numbers that take some milliseconds to read; as base64 they hardly take one."""


class EmbeddingsEndpoint:
    """`POST {base_url}/embeddings`, one request per batch; see `moot.actors.encoders.batching`.

    OpenAI's own service goes this way, too, and not through its SDK: the SDK would parse and re-parse every vector,
    and one path means one place that sends the key, reads errors and closes a cancelled call.

    Args:
        name: what embeddings are stored under.
        base_url: up to and without `/embeddings`.
        model: the model's name on that server.
        api_key_env: name of the environment variable with the key; None sends no key.
    """

    most_under_way = MOST_UNDER_WAY
    deadline_s: float | None = DEADLINE_S

    def __init__(self, name: str, base_url: str, model: str, *, api_key_env: str | None = None) -> None:
        self.name = name
        self.dimension: int | None = None
        self._model = model
        self._http = LeanHttp(base_url, api_key_env=api_key_env)

    def __repr__(self) -> str:
        return f"EmbeddingsEndpoint({self.name!r}, api_key_env={self._http.key.env!r})"

    async def encode_batch(self, texts: Sequence[str]) -> Rows:
        """See `Batched.encode_batch`.

        Raises:
            ModelError: as the server failed, or `unparsable` when the vectors are not of the size of the first ones.
        """
        body = encode_request(self._model, texts)
        step_key = f"embeddings/{blake2b(body, digest_size=12).hexdigest()}"
        received = await self._http.post("/embeddings", body, step_key)
        if len(received.body) < _LARGE_BODY:
            rows = decode_reply(received.body, len(texts), key=received.key)
        else:
            rows = await asyncio.to_thread(decode_reply, received.body, len(texts), key=received.key)
        if self.dimension not in (None, rows.shape[1]):
            raise ModelError(
                "unparsable",
                f"the server gave vectors of {rows.shape[1]} numbers after vectors of {self.dimension}: "
                "it serves another model now",
            )
        self.dimension = rows.shape[1]
        return rows

    async def check(self) -> None:
        """See `Batched.check`. Raises `MissingKey`."""
        self._http.key.read()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._http.close()
