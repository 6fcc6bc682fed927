"""Detection of silently cut prompts: a server kept a part of the prompt that fits its context, and said nothing.

Such a server (Ollama, LM Studio and others) answers 200 and counts the tokens of what it kept. The count is then too
small for the text. No count of a whole prompt is: natural text has a token for each word, or nearly so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from moot.protocols.messages import Message, Usage

if TYPE_CHECKING:
    from moot.actors.models.interface import ModelReply

CONTEXT_REMEDY = "raise the server's context (Ollama: num_ctx or OLLAMA_CONTEXT_LENGTH; LM Studio: context length)"
"""Remedy for prompts that a server cuts."""

LEAST_CONTEXT = 256
"""Tokens of the smallest context: servers that count fewer leave out what they read from a cache, or do not count."""

_TOKENS_PER_WORD = 0.75
"""Fewest tokens of a word between blanks, over a whole prompt. Vocabularies split at blanks have at least 1; of those
with tokens of several words the densest have 0.9 in English."""

_IDEOGRAPHS, _LETTERS = 8, 24
"""Most ideographs or kana per token, and most letters or digits, over a whole prompt. DeepSeek's vocabulary, a dense
one, has 6 ideographs per token of set phrases, 4 letters of Thai, and 15 of one long English word again and again."""

_PLAUSIBLE = 5
"""Characters per token up to which nothing is counted."""


def is_prompt_cut(usage: Usage, messages: Sequence[Message]) -> bool:
    """Whether the server counted fewer prompt tokens than the whole prompt can have; False for an unknown count.

    Tokens read from a cache are added, as not every server counts them with the prompt. A count that is a power of two,
    as contexts are, is suspect already if it is smaller than the number of words.
    """
    if usage.prompt_tokens is None:
        return False
    counted = usage.prompt_tokens + (usage.cached_tokens or 0)
    texts = [message.content for message in messages]
    if counted < LEAST_CONTEXT or counted * _PLAUSIBLE >= sum(map(len, texts)):
        return False
    per_word = 1.0 if counted & (counted - 1) == 0 else _TOKENS_PER_WORD
    if counted < per_word * sum(len(text.split()) for text in texts):
        return True
    ideographs, letters = np.sum([_lengths(text) for text in texts], axis=0).tolist()
    return bool(counted < max(ideographs / _IDEOGRAPHS, letters / _LETTERS))


def with_prompt_mark(reply: ModelReply, messages: Sequence[Message]) -> ModelReply:
    """The reply, marked if its prompt was cut."""
    return replace(reply, prompt_cut=True) if is_prompt_cut(reply.usage, messages) else reply


def _lengths(text: str) -> tuple[int, int]:
    """Numbers of ideographs and kana, and of letters and digits, without repetitions of the one before."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    wide = ((codes >= 0x3041) & (codes <= 0x9FFF)) | ((codes >= 0x20000) & (codes <= 0x3FFFF))
    letter = ((codes | 0x20) - 0x61 < 26) | (codes - 0x30 < 10) | (codes > 0x7F)
    changes = np.diff(codes, prepend=np.uint32(0)) != 0
    return int((wide & changes).sum()), int((letter & changes).sum())
