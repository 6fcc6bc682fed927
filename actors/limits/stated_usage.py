"""Usage as a server states it, held against the texts: a count that is too small for them is replaced by an estimate.

A server that states 0 tokens would otherwise never use up a budget.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from moot.actors.models.interface import ModelReply
from moot.actors.models.token_bounds import prompt_estimate, text_estimate
from moot.protocols.messages import Message, Usage

_LONGEST_TOKEN = 128
"""Letters and digits that one token may hold. Vocabularies have tokens of as many blanks, dashes or equal letters,
which do not count here; of differing letters the longest known have some fifty."""

_READ = 2**17
"""Characters of a text that are looked at, so that a large reply holds nobody up."""

_NO_LETTER = re.compile(r"[\W_]+")


def believed(reply: ModelReply, messages: Sequence[Message]) -> ModelReply:
    """The reply, with an estimate for each count that is less than its text surely has, and `stated` set then.

    Args:
        reply: of a server.
        messages: what it replies to.
    """
    usage = reply.usage
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    sent = [message.content for message in messages]
    if prompt is not None and _is_short(prompt, sent):
        prompt = max(fewest_tokens(sent), prompt_estimate(messages))
    listed = 0 if reply.tokens is None else len(reply.tokens.tokens)
    # The list may hold the token that ends the reply, which not every server counts.
    if completion is not None and (completion < listed - 1 or _is_short(completion, [reply.text])):
        completion = listed or max(fewest_tokens([reply.text]), text_estimate(reply.text))
    found = Usage(prompt, completion, usage.reasoning_tokens)
    return reply if found == usage else replace(reply, usage=found, stated=usage)


def fewest_tokens(texts: Sequence[str]) -> int:
    """At least how many tokens the texts are, whatever the vocabulary; 0 for texts without a letter or digit.

    >>> fewest_tokens(["So it goes."]), fewest_tokens(["-" * 4_000]), fewest_tokens(["word " * 1_000])
    (1, 0, 32)
    """
    return -(-sum(map(_changes, texts)) // _LONGEST_TOKEN)


def _changes(text: str) -> int:
    """Letters and digits, of several equal ones in a row the first."""
    letters = np.frombuffer(_NO_LETTER.sub("", text[:_READ]).encode("utf-32-le", "surrogatepass"), np.uint32)
    return int(np.count_nonzero(letters[1:] != letters[:-1])) + bool(letters.size)


def _is_short(stated: int, texts: Sequence[str]) -> bool:
    """Whether so few tokens cannot be the texts. Letters are counted only where their number may matter."""
    return stated * _LONGEST_TOKEN < sum(map(len, texts)) and stated < fewest_tokens(texts)
