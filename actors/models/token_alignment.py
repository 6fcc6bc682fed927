"""Where a reply's text lies among its tokens, which may hold more: a fence, a `<think>` block, trailing line breaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from moot.actors.models.interface import TokenLogprobs

UNALIGNED = "the tokens do not join to the reply's text"
"""Why a probability is unknown whose place among the tokens cannot be found."""


def text_start(tokens: Sequence[str], text: str) -> int | None:
    """Offset of the text in the joined tokens; of several places the last. None when it is not in them.

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
    """The reply's tokens without those of hidden reasoning; all as sent where there is none, or the text is not found.

    Args:
        tokens: as sent.
        text: the reply; the first and the last of its tokens may hold more.
        reasoning: what was told apart from it. None is left of a reply that was all reasoning.
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
