"""Token log-probabilities of an OpenAI-style reply, from its JSON to arrays."""

from __future__ import annotations

import codecs
from dataclasses import replace
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from moot.actors.models.interface import TokenLogprobs
from moot.actors.models.token_alignment import text_start

FLOOR = -1000.0
"""Log-probabilities at or below this are a server's way to write minus infinity (vLLM sends -9999)."""

_SLACK = 1e-3


class WireAlternative(msgspec.Struct, gc=False):
    """One alternative token as it is sent."""

    token: str
    logprob: float | None = None


class WireToken(msgspec.Struct, gc=False):
    """One token of the reply as it is sent."""

    token: str
    logprob: float | None = None
    top_logprobs: list[WireAlternative] | None = None


class WireLogprobs(msgspec.Struct):
    """A choice's `logprobs`."""

    content: list[WireToken] | None = None


def reply_tokens(
    logprobs: WireLogprobs | None, text: str, alternatives: int | None, body: bytes
) -> TokenLogprobs | None:
    """The tokens as sent; None unless the server gave log-probabilities; an empty list beside a text is none given.

    Args:
        logprobs: the choice's, as decoded from `body`.
        text: what they should join to.
        alternatives: how many were asked for; None when no log-probabilities were.
        body: the JSON, which is read again for the tokens' `bytes` where their texts do not join to `text`.
    """
    content = logprobs.content if logprobs is not None else None
    if alternatives is None or content is None or (text and not content):
        return None
    tokens = token_logprobs(content, alternatives)
    if "".join(tokens.tokens) != text:
        whole = tokens_from_bytes(body, text)
        return replace(tokens, tokens=whole) if whole else tokens
    return tokens


def token_logprobs(content: list[WireToken], alternatives: int) -> TokenLogprobs:
    """Arrays of T tokens by `alternatives`; a server's surplus alternatives are cut, missing ones padded."""
    rows = [token.top_logprobs or [] for token in content]
    if set(map(len, rows)) - {alternatives}:
        rows = [_padded(row, alternatives) for row in rows]
    flat = list(chain.from_iterable(rows))
    return TokenLogprobs(
        tokens=[token.token for token in content],
        logprob=_array([token.logprob for token in content]),
        alt_tokens=[alternative.token for alternative in flat],
        alt_logprob=_array([alternative.logprob for alternative in flat]).reshape(len(content), alternatives),
    )


def _padded(row: list[WireAlternative], alternatives: int) -> list[WireAlternative]:
    return row[:alternatives] + [WireAlternative("")] * (alternatives - len(row))


def _array(values: list[float | None]) -> npt.NDArray[np.float32]:
    """float32 in [-inf, 0] or NaN: null and positive values are unknown, `FLOOR` and below is -inf."""
    array = np.array(values, dtype=np.float64)
    array[array <= FLOOR] = -np.inf
    array[array > _SLACK] = np.nan
    return np.minimum(array, 0.0).astype(np.float32)


class _Bytes(msgspec.Struct, gc=False):
    bytes: list[int] | None = None


class _BytesLogprobs(msgspec.Struct):
    content: list[_Bytes] | None = None


class _BytesChoice(msgspec.Struct):
    logprobs: _BytesLogprobs | None = None


class _BytesReply(msgspec.Struct):
    choices: list[_BytesChoice]


_bytes_reply = msgspec.json.Decoder(_BytesReply)


def tokens_from_bytes(body: bytes, text: str) -> list[str] | None:
    """The reply's tokens read from their `bytes`, for tokens that split a character.

    The piece that completes a character holds it, the ones before it are empty, so that the tokens joined hold
    `text`. None when the server sent no bytes, or `text` is not in them either.
    """
    try:
        logprobs = _bytes_reply.decode(body).choices[0].logprobs
        pieces = [bytes(token.bytes or ()) for token in (logprobs and logprobs.content) or ()]
        decoder: Any = codecs.getincrementaldecoder("utf-8")()
        tokens = [decoder.decode(piece) for piece in pieces]
    except (ValueError, IndexError, RecursionError):
        return None
    return None if text_start(tokens, text) is None else tokens
