"""Token count bounds of texts and calls: estimates for rates, upper bounds for budgets, lower bounds as checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from moot.actors.models.interface import ModelReply, ReplySchema
from moot.protocols.messages import Message

_PER_MESSAGE = 16
"""Tokens around a message: role, separators. Vendors' formats need 3 to 8."""

_PER_IMAGE = 3_000
"""Most tokens of a picture at the largest size that is sent (`moot.actors.models.pictures`); vendors charge up to
2,900."""


_BESIDE_SCHEMA = 600
"""Tokens that vendors add to a JSON schema: up to 350 with tools, by their own tables."""


def schema_bound(schema: ReplySchema | None) -> int:
    """Upper bound of the prompt tokens that a reply's schema adds; 0 without one."""
    return 0 if schema is None else len(schema.body) + _BESIDE_SCHEMA


def text_estimate(text: str) -> int:
    """Estimated tokens of a text: four characters of Latin script each, or one of another script."""
    return estimated_length(text) // 4


def prompt_estimate(messages: Sequence[Message]) -> int:
    """Estimated tokens of the messages, with the template around each and its images."""
    return sum(text_estimate(message.content) + 4 + 800 * len(message.images) for message in messages)


def prompt_bound(messages: Sequence[Message]) -> int:
    """Upper bound of the tokens of the messages: no tokeniser makes more than one token of a byte."""
    return sum(
        len(message.content.encode("utf-8", "replace")) + _PER_MESSAGE + _PER_IMAGE * len(message.images)
        for message in messages
    )


_OTHER = re.compile("[^\u0000-\u036f\u1e00-\u1eff\u2000-\u206f]")
"""Character of another script: neither a Latin letter with its marks nor punctuation that Latin texts also have."""

_READ = 2_000
"""Characters of each text that are examined."""

_FEW = 0.1
"""Share of other characters below which a text is Latin with quotations."""


def estimated_length(text: str) -> int:
    """Length in Latin characters of a text of about as many tokens: a character of another script counts as four.

    >>> estimated_length("So it goes."), estimated_length("今日は晴れ")
    (11, 20)
    """
    return len(text) if text.isascii() else len(text) + 3 * len(_OTHER.findall(text))


def bytes_per_character(texts: Iterable[str]) -> int:
    """Upper bound of the tokens per character in the script of these labels: its bytes, as no tokeniser makes more.

    Returns:
        1 for texts in Latin script, of which a token has several characters; else 2 to 4.

    >>> [bytes_per_character([text]) for text in ("Où est-il ?", "Где он?", "他在哪里", "😀🎉")]
    [1, 2, 3, 4]
    """
    beginnings = [text[:_READ] for text in texts]
    found = "".join(chain.from_iterable(_OTHER.findall(text) for text in beginnings if not text.isascii()))
    if len(found) < _FEW * sum(map(len, beginnings)) or not found:
        return 1
    return min(4, max(2, round(len(found.encode("utf-8", "replace")) / len(found))))


def texts_within(value: Any) -> Iterable[str]:
    """All texts in JSON-like data, except keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(texts_within, value.values()))
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(texts_within, value))


LONGEST_TOKEN = 128
"""Most characters of one token. The longest of cl100k, o200k, Qwen and DeepSeek are 128 blanks, those of Mistral's
Tekken 78 asterisks; of differing letters the longest have some fifty. Only Anthropic's first vocabulary has longer runs
of blanks."""

_COUNTED = 2**17
"""Characters of a text that are counted, so that a large reply does not block the event loop."""

_NO_LETTER = re.compile(r"[\W_]+")


def with_plausible_usage(reply: ModelReply, messages: Sequence[Message]) -> ModelReply:
    """Replaces implausible usage: an estimate for each count below the lower bound of its text, with `stated` set.

    Args:
        reply: of a server.
        messages: of the request.
    """
    usage = reply.usage
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    sent = [message.content for message in messages]
    if prompt is not None and _is_short(prompt, sent):
        prompt = max(fewest_tokens(sent), prompt_estimate(messages))
    listed = 0 if reply.tokens is None else len(reply.tokens.tokens)
    # The list may include the token that ends the reply, which not every server counts.
    if completion is not None and (completion < listed - 1 or _is_short(completion, [reply.text])):
        completion = listed or max(fewest_tokens([reply.text]), text_estimate(reply.text))
    found = msgspec.structs.replace(usage, prompt_tokens=prompt, completion_tokens=completion)
    return reply if found == usage else replace(reply, usage=found, stated=usage)


def fewest_tokens(texts: Sequence[str]) -> int:
    """Lower bound of the tokens of the texts, for any vocabulary; 0 for texts without a letter or digit.

    >>> fewest_tokens(["So it goes."]), fewest_tokens(["-" * 4_000]), fewest_tokens(["word " * 1_000])
    (1, 0, 32)
    """
    return -(-sum(map(_changes, texts)) // LONGEST_TOKEN)


def _changes(text: str) -> int:
    """Number of letters and digits, counting a run of equal ones once."""
    letters = np.frombuffer(_NO_LETTER.sub("", text[:_COUNTED]).encode("utf-32-le", "surrogatepass"), np.uint32)
    return int(np.count_nonzero(letters[1:] != letters[:-1])) + bool(letters.size)


def _is_short(stated: int, texts: Sequence[str]) -> bool:
    """Whether the token count is below the lower bound. Letters are counted only where their number may matter."""
    return stated * LONGEST_TOKEN < sum(map(len, texts)) and stated < fewest_tokens(texts)
