"""Embeddings client for any server with the OpenAI API, including OpenAI's own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from moot.actors.encoders.interface import Rows, unit_rows
from moot.actors.models.http_client import HttpClient
from moot.actors.models.interface import ModelError
from moot.actors.models.openai_errors import UnexpectedResponse, failure_in_reply, hint_at_url, plain
from moot.actors.models.reply_bounds import MOST_BYTES
from moot.actors.models.wire_json import decode_json

MOST_UNDER_WAY = 4
"""Most requests in flight; further texts meanwhile gather for the next request."""

DEADLINE_S = 120.0
"""Deadline in seconds of a batch and of the calls that wait for it, retries included."""


MOST_DIMENSIONS = 2**16
"""Most numbers of a vector. The largest models have some 10,000."""

_BYTES_OF_A_NUMBER, _BYTES_BESIDE = 32, 2**20
"""Most bytes of a number in JSON with its separators, and of all else in a response."""

_LARGE_BODY = 2**20
"""Size in bytes from which decoding numbers takes some milliseconds; base64 is much faster."""


class EmbeddingsEndpoint:
    """Embeddings endpoint, `POST {base_url}/embeddings`, one request per batch; see `moot.actors.encoders.batching`.

    OpenAI's own service is called in this way too, not through its SDK, which would parse every vector twice. One
    client means one place that sends the key, reads errors and closes a cancelled call.

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
        self._http = HttpClient(base_url, api_key_env=api_key_env)

    def __repr__(self) -> str:
        return f"EmbeddingsEndpoint({self.name!r}, api_key_env={self._http.key.env!r})"

    async def encode_batch(self, texts: Sequence[str]) -> Rows:
        """See `BatchBackend.encode_batch`.

        Raises:
            ModelError: a failure of the server, or `unparsable` when the vectors differ in size from the first ones.
        """
        body = encode_request(self._model, texts)
        step_key = f"embeddings/{blake2b(body, digest_size=12).hexdigest()}"
        with hint_at_url(self._http.url_hint):
            async with self._http.opened("/embeddings", body, step_key) as response:
                sent = await response.read(most_bytes(len(texts), self.dimension))
            if sent.is_cut:
                raise sent.too_large()
            if len(sent.received) < _LARGE_BODY:
                rows = decode_reply(sent.received, len(texts), key=response.key)
            else:
                rows = await asyncio.to_thread(decode_reply, sent.received, len(texts), key=response.key)
        if self.dimension not in (None, rows.shape[1]):
            raise ModelError(
                "unparsable",
                f"the server gave vectors of {rows.shape[1]} numbers after vectors of {self.dimension}: "
                "it serves another model now",
            )
        self.dimension = rows.shape[1]
        return rows

    async def check(self) -> None:
        """See `BatchBackend.check`. Raises `MissingKey`."""
        self._http.key.read()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._http.close()


_EMPTY_TEXT = " "
"""Substitute for an empty text, which OpenAI refuses."""


class _Request(msgspec.Struct):
    model: str
    input: list[str]
    encoding_format: str = "base64"


class _Item(msgspec.Struct):
    embedding: msgspec.Raw
    index: Any = None


class _Reply(msgspec.Struct):
    data: list[_Item] | None = None
    error: Any = None


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(_Reply)
_decode_vector = msgspec.json.Decoder(bytes | list[float]).decode


def most_bytes(count: int, dimension: int | None) -> int:
    """Upper bound of the bytes of a response.

    Args:
        count: number of texts sent.
        dimension: of the vectors; None before the first ones.
    """
    return min(MOST_BYTES, _BYTES_BESIDE + count * (dimension or MOST_DIMENSIONS) * _BYTES_OF_A_NUMBER)


def encode_request(model: str, texts: Sequence[str]) -> bytes:
    """Request body as JSON. It requests base64, a quarter of the size of digits; a server may ignore that.

    Raises:
        ModelError: `request`, when a text contains a lone surrogate.
    """
    try:
        return _encode(_Request(model, [text or _EMPTY_TEXT for text in texts]))
    except UnicodeEncodeError:
        raise ModelError("request", "a text holds a lone surrogate, which is not Unicode text") from None


def decode_reply(body: bytes, count: int, *, key: str | None = None) -> Rows:
    """Response decoder: unit vectors from the body of a 200 response, in the order of the texts.

    Vectors written as numbers take a millisecond per 10,000 numbers. They are decoded one after the other, so that a
    decoding thread lets others run in between.

    Args:
        body: as received, decompressed.
        count: number of texts sent.
        key: the API key in use, kept out of error messages.

    Raises:
        ModelError: `server` for a body that is no list of embeddings, an error object inside the body, or `unparsable`
            unless there is one finite, nonzero vector per text and all are of one size.
    """
    try:
        reply = decode_json(_decoder, body, "one")
        vectors = [_numbers(item) for item in reply.data or ()]
    except (ValueError, RecursionError, UnexpectedResponse) as error:
        raise UnexpectedResponse("server", plain(f"the reply is no list of embeddings: {error}", key)) from None
    if reply.error or reply.data is None:
        raise failure_in_reply(body, reply.error, "embeddings", key)
    try:
        return unit_rows(np.stack([_vector(vectors[place]) for place in _places(reply.data, count)]))
    except ValueError as error:
        raise ModelError("unparsable", plain(f"the reply's embeddings cannot be used: {error}", key)) from None


def _numbers(item: _Item) -> bytes | npt.NDArray[np.float64]:
    """Raw vector, as sent: bytes, or numbers. Raises ValueError for anything else."""
    raw = _decode_vector(item.embedding)
    return raw if isinstance(raw, bytes) else np.array(raw, np.float64)


def _places(items: list[_Item], count: int) -> Sequence[int]:
    """Index of each text's vector; without indices in the response they are in order."""
    if len(items) != count:
        raise ValueError(f"{len(items)} vectors for {count} texts")
    if all(item.index is None for item in items):
        return range(count)
    place_of = {item.index if type(item.index) is int else None: place for place, item in enumerate(items)}
    if place_of.keys() != set(range(count)):
        raise ValueError("their numbers are not those of the texts")
    return [place_of[index] for index in range(count)]


def _vector(raw: bytes | npt.NDArray[np.float64]) -> npt.NDArray[np.floating]:
    """Raises ValueError for bytes that are no float32 numbers, and for no numbers or too many."""
    vector = np.frombuffer(raw, "<f4") if isinstance(raw, bytes) else raw
    if not len(vector):
        raise ValueError("a vector is empty")
    if len(vector) > MOST_DIMENSIONS:
        raise ValueError(f"a vector has {len(vector):,} numbers, more than {MOST_DIMENSIONS:,}")
    return vector
