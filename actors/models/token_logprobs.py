"""Token log-probabilities of an OpenAI-style reply: from its JSON to arrays, the position of the text among the tokens,
and whether they were taken before a schema's mask."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from moot.actors.models.interface import ModelReply, StreamPiece, TokenLogprobs
from moot.actors.models.wire_json import decode_json
from moot.protocols.messages import Decoding

FLOOR = -1000.0
"""Log-probabilities at or below this are a server's representation of minus infinity (vLLM sends -9999)."""

_SLACK = 1e-3


def logprobs_given(part: ModelReply | StreamPiece, decoding: Decoding) -> bool | None:
    """Whether a reply, or a piece of one, has the requested log-probabilities; None where it cannot show it.

    So it is where none were requested, without a text, and where the text was cut, and its log-probabilities with it.
    """
    if decoding.top_logprobs is None or not part.text or part.overlong:
        return None
    return part.tokens is not None


class WireAlternative(msgspec.Struct, gc=False):
    """Alternative token, as sent."""

    token: str
    logprob: float | None = None


class WireToken(msgspec.Struct, gc=False):
    """Token of the reply, as sent; empty where its text is unknown."""

    token: str = ""
    logprob: float | None = None
    top_logprobs: list[WireAlternative] | None = None


class WireLogprobs(msgspec.Struct):
    """`logprobs` object of a choice."""

    content: list[WireToken] | None = None


def reply_tokens(
    logprobs: WireLogprobs | None, text: str, alternatives: int | None, body: bytes
) -> TokenLogprobs | None:
    """Tokens of a reply; None without log-probabilities; an empty list with a text counts as none.

    Args:
        logprobs: of the choice, as decoded from `body`.
        text: expected concatenation of the tokens.
        alternatives: requested number; None when no log-probabilities were requested.
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
    """Log-probability arrays of T tokens by `alternatives`; surplus alternatives are cut, missing ones padded."""
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
    token: str = ""
    bytes: list[Annotated[int, msgspec.Meta(ge=0, le=255)]] | None = None


class _BytesLogprobs(msgspec.Struct):
    content: list[_Bytes] | None = None


class _BytesChoice(msgspec.Struct):
    logprobs: _BytesLogprobs | None = None


class _BytesReply(msgspec.Struct):
    choices: list[_BytesChoice]


_bytes_reply = msgspec.json.Decoder(_BytesReply)


def tokens_from_bytes(body: bytes, text: str) -> list[str] | None:
    """Decodes tokens from their `bytes`, for tokens that split a character.

    The piece that completes a character has it, the ones before it are empty, so that the joined tokens have `text`.
    None when the server sent no bytes, or `text` is not in them either.
    """
    logprobs = decode_json(_bytes_reply, body, "a list of tokens").choices[0].logprobs
    listed = (logprobs and logprobs.content) or ()
    if all(token.bytes is None for token in listed):
        return None
    decoder: Any = codecs.getincrementaldecoder("utf-8")()
    try:
        pieces = [token.token.encode() if token.bytes is None else bytes(token.bytes) for token in listed]
        tokens = [decoder.decode(piece) for piece in pieces]
    except ValueError:
        return None
    return None if text_start(tokens, text) is None else tokens


UNALIGNED = "the tokens do not join to the reply's text"
"""Reason for an unknown probability whose position among the tokens cannot be found."""


def text_start(tokens: Sequence[str], text: str) -> int | None:
    """Offset of the text in the joined tokens; the last of several matches. None when it is not in them.

    >>> text_start(["```json\\n", '{"a"', ": 1}", "\\n```"], '{"a": 1}'), text_start(["{", "}"], "[]")
    (8, None)
    """
    joined = "".join(tokens)
    if joined == text:
        return 0
    if not text:
        return None
    behind = joined[::-1].find(text[::-1])  # `rfind` may take the square of the length
    return None if behind < 0 else len(joined) - behind - len(text)


def without_reasoning(tokens: TokenLogprobs | None, text: str, reasoning: str) -> TokenLogprobs | None:
    """Removes the tokens of hidden reasoning; all remain where there is none, or the text is not found.

    Args:
        tokens: as sent.
        text: the reply; the first and the last of its tokens may contain more.
        reasoning: text that was split from it. Nothing is left of a reply that was all reasoning.
    """
    if tokens is None or not reasoning:
        return tokens
    return _covering(tokens, text) if text else None


def _covering(tokens: TokenLogprobs, text: str) -> TokenLogprobs:
    start = text_start(tokens.tokens, text)
    ends = np.cumsum([len(token) for token in tokens.tokens])
    if start is None or not len(ends) or int(ends[-1]) == len(text):
        return tokens
    first = int(np.searchsorted(ends, start, side="right"))
    last = int(np.searchsorted(ends, start + len(text), side="left")) + 1
    width = tokens.alternatives
    return replace(
        tokens,
        tokens=tokens.tokens[first:last],
        logprob=tokens.logprob[first:last],
        alt_tokens=tokens.alt_tokens[first * width : last * width],
        alt_logprob=tokens.alt_logprob[first:last],
    )


ConstrainedStage = Literal["raw", "masked", "unknown"]

_BLANKS = " \n\t\r\u0120\u010a\u2581"
"""Blanks as servers write them at the start of a token: themselves, or as `Ġ`, `Ċ` and `▁`."""

_UNREADABLE = re.compile(r"token_id:|<|\ufffd")
"""Prefixes of tokens without a text: a number in its place, a mark of the chat template, half a character."""

_NO_OTHER = 0.01
"""Most probability that a mask may leave to unlisted tokens."""

_LEAST = -80.0
"""Log-probability below which a server means zero: a mask leaves minus infinity, written by some as -100 or -9999."""


def constrained_logprob_stage(tokens: TokenLogprobs) -> ConstrainedStage:
    """Detects the stage of log-probabilities, before or after the schema's mask, from a reply's first token.

    The model was asked to say Yes and constrained to a JSON object. Where a token that begins no object has a
    probability, the probabilities are the model's own. Where those that can begin one (`{`, `{"`, a blank) have all of
    it, a mask has removed the others: without one the model would say Yes. Raises nothing.
    """
    if not tokens.tokens:
        return "unknown"
    first = dict(zip(tokens.alt_tokens[: tokens.alternatives], tokens.alt_logprob[0].tolist(), strict=True))
    first[tokens.tokens[0]] = float(tokens.logprob[0])
    likely = {token: logprob for token, logprob in first.items() if math.isfinite(logprob) and logprob > _LEAST}
    if any(_cannot_open(token) for token in likely):
        return "raw"
    opens = sum(math.exp(min(logprob, 0.0)) for token, logprob in likely.items() if _opens(token))
    return "masked" if opens > 1.0 - _NO_OTHER else "unknown"


def _opens(token: str) -> bool:
    """Whether a JSON object can begin with the token: it is blank, or its first mark is the bracket."""
    return bool(token) and token.lstrip(_BLANKS)[:1] in ("", "{")


def _cannot_open(token: str) -> bool:
    """Whether no JSON object begins with the token; False for a token of unknown text."""
    return bool(token) and not _opens(token) and not _UNREADABLE.match(token)
