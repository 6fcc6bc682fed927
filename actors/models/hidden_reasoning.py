"""Separates hidden reasoning from replies: separate fields, and `<think>` blocks inside the text."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

OPENED, CLOSED = "<think>", "</think>"
_NO_REASONING = ("{", "[", "```")
"""Starts of a reply whose `</think>` is part of its text: JSON, or a fence around it."""


class SplitReply(NamedTuple):
    """A reply split into text and hidden reasoning.

    Attributes:
        text: the reply.
        reasoning: the hidden reasoning before it; empty when unknown.
        from_reasoning: whether the reply was in a field for reasoning, with an empty content.
    """

    text: str
    reasoning: str
    from_reasoning: bool = False


def split_reasoning(content: str, reasoning: object = None, reasoning_content: object = None) -> SplitReply:
    """Splits a reply into text and hidden reasoning.

    A server whose model reasons, but that has no parser for it or has reasoning switched off, may put a reply
    constrained to a schema into the reasoning and leave the content empty. So reasoning that is one whole JSON object,
    with an empty content, is the reply. Other reasoning never is.

    Args:
        content: the text as sent; a `<think>` block at its start, or everything up to a lone `</think>`, is reasoning.
        reasoning, reasoning_content: the fields as sent, of any type; vendors differ in which they use.

    >>> split_reasoning("<think>It rained.</think>Yes")
    SplitReply(text='Yes', reasoning='It rained.', from_reasoning=False)
    >>> split_reasoning("", None, '{"answer": "Yes"}')
    SplitReply(text='{"answer": "Yes"}', reasoning='', from_reasoning=True)
    """
    field = next((each for each in (reasoning, reasoning_content) if isinstance(each, str) and each), "")
    thought, text = split_thinking(content)
    if field and not content.strip() and _is_object(field):
        return SplitReply(field.strip(), "", from_reasoning=True)
    return SplitReply(text, "\n".join(part for part in (field, thought) if part))


def split_thinking(text: str) -> tuple[str, str]:
    """Splits a text into (reasoning, reply); a block that is never closed is all reasoning.

    >>> split_thinking("It rained.</think>\\n\\nYes"), split_thinking("<think>It rai")
    (('It rained.', 'Yes'), ('It rai', ''))
    """
    start = text.lstrip()
    if start.startswith(OPENED):
        thought, _, reply = start.removeprefix(OPENED).partition(CLOSED)
    elif CLOSED in start and not start.startswith(_NO_REASONING):  # a chat template may have opened the block
        thought, _, reply = start.partition(CLOSED)
    else:
        return "", text
    return thought.strip(), reply.lstrip()


def is_thinking(text: str) -> bool:
    """Whether a partial reply is still inside a `<think>` block, or may be about to open one."""
    start = text.lstrip()
    return CLOSED not in start if start.startswith(OPENED) else OPENED.startswith(start)


def _is_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (ValueError, RecursionError):
        return False
