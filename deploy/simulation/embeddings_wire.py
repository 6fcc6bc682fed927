"""The server's side of the OpenAI embeddings wire: requests in, vectors out."""

from __future__ import annotations

from base64 import b64encode
from typing import Literal

import msgspec

from moot.actors.encoders.interface import Rows
from moot.deploy.simulation.wire import WireError

MOST_TEXTS = 2048
"""Texts of one request at most, as at OpenAI."""

_LARGEST_DIMENSION = 4096
_CHARACTERS_PER_TOKEN = 4


class _Body(msgspec.Struct):
    model: str
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


_decode = msgspec.json.Decoder(_Body).decode
_encode = msgspec.json.Encoder().encode


class EmbeddingsRequest(msgspec.Struct, frozen=True):
    """A request that has been checked.

    Attributes:
        model: the model's name as the client wrote it; any name is served.
        texts: at least one; none is empty.
        base64: whether vectors are sent as base64 of little-endian float32, not as numbers.
        dimension: length of the vectors.
    """

    model: str
    texts: tuple[str, ...]
    base64: bool
    dimension: int


def read_embeddings_request(body: bytes) -> EmbeddingsRequest:
    """Check and translate a request; unknown fields are ignored. Like OpenAI, it takes no empty text.

    Raises:
        WireError: 400, for what is no embeddings request or is not offered here.
    """
    try:
        asked = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(400, f"the body is not an embeddings request: {error}") from None
    texts = (asked.input,) if isinstance(asked.input, str) else tuple(asked.input)
    if not texts or not all(texts):
        raise WireError(400, "`input` is empty or holds an empty text")
    if len(texts) > MOST_TEXTS:
        raise WireError(400, f"`input` holds more than {MOST_TEXTS} texts")
    dimension = 512 if asked.dimensions is None else asked.dimensions
    if not 1 <= dimension <= _LARGEST_DIMENSION:
        raise WireError(400, f"`dimensions` must be in [1, {_LARGEST_DIMENSION}]")
    return EmbeddingsRequest(asked.model, texts, asked.encoding_format == "base64", dimension)


def embeddings(request: EmbeddingsRequest, rows: Rows) -> bytes:
    """The body of a reply; `rows` has one vector per text. Prompts count as four characters a token."""
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": b64encode(row.astype("<f4").tobytes()).decode("ascii") if request.base64 else row.tolist(),
        }
        for index, row in enumerate(rows)
    ]
    tokens = sum(-(-len(text) // _CHARACTERS_PER_TOKEN) for text in request.texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return _encode({"object": "list", "data": data, "model": request.model, "usage": usage})
