"""Separates hidden reasoning from replies: separate fields, and blocks between tags or channels inside the text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

_WORDS = ("thought", "thoughts", "reasoning", "reflection", "scratchpad", "analysis")
_NAMES = ("think", "thinking", "seed:think", "mm:think", "longcat_think", "antthinking", *_WORDS)
_BLOCKS = {
    **{f"<{name}>": f"</{name}>" for name in _NAMES},
    "[think]": "[/think]",  # Magistral
    "\u25c1think\u25b7": "\u25c1/think\u25b7",  # Kimi
    "<|begin_of_thought|>": "<|end_of_thought|>",  # OpenThinker
    "<|start_thinking|>": "<|end_thinking|>",  # Command A
    "<|think:start|>": "<|think:end|>",  # Solar
    "<|think_start|>": "<|think_end|>",
    "<|think|>": "<|end|>",
    "<|inner_prefix|>": "<|inner_suffix|>",  # Apertus
    "<|plamo:begin_think:plamo|>": "<|plamo:end_think:plamo|>",
    "<|channel>": "<channel|>",  # Gemma
    "<unused94>": "<unused95>",  # MedGemma
    "[unused16]": "[unused17]",  # Pangu
}
"""Closing tags of hidden reasoning by their opening tags, in lower case."""

_PHRASES = {f"{here} my thought process:": f"{here} my response:" for here in ("here is", "here's")}
"""Words in place of tags (Granite), which mean nothing but at the start of a reply."""

_MARKED_REPLIES = {
    "<|begin_of_solution|>": "<|end_of_solution|>",
    "<|start_response|>": "<|end_response|>",
    "<|begin_of_box|>": "<|end_of_box|>",
    "<|begin|>assistant<|content|>": "<|end|>",
}
_NAMED_REPLIES = {f"<{name}>": f"</{name}>" for name in ("answer", "response", "output", "solution", "final")}
"""Tags around the reply itself: those of chat templates, and those that mean so only behind reasoning."""

_HARMONY = ("<|channel|>", "<|start|>assistant<|channel|>")
_UNMARKED = ("analysis", "commentary")
"""Starts of the channels of gpt-oss, as they are, and as text of a server that leaves out special tokens."""

_NO_REASONING = ("{", "[", "```")
"""Starts of a reply whose closing tags are part of its text: JSON, or a fence around it."""

_PAIRS = {**_BLOCKS, **_PHRASES}
_STARTS = (*_PAIRS, *_MARKED_REPLIES, *_HARMONY, *_UNMARKED)
_LONE = {closing: opening for opening, closing in _BLOCKS.items() if closing != "<|end|>"}
"""Opening tags by the closing tags that mean reasoning before them even alone: a chat template may open the block."""


def _any_of(tags: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(tags, key=len, reverse=True)))


_OPENING = re.compile(_any_of(_PAIRS), re.IGNORECASE)
_CLOSING = re.compile(rf"[<\[\u25c1](?i:{_any_of(tag[1:] for tag in _LONE)})")
_CLOSING_MARKS = ("</", "[/", "\u25c1/", "|>", "unused")
_REPLY_OPENING = re.compile(_any_of((*_MARKED_REPLIES, *_NAMED_REPLIES)), re.IGNORECASE)
_CHANNEL = re.compile(
    r"(?:<\|start\|>[^<]*+)?<\|channel\|>\s*+(?P<name>\w++)[^<]*+(?:<\|constrain\|>[^<]*+)?<\|message\|>"
)
_MESSAGE_ENDS = ("<|end|>", "<|return|>", "<|call|>")
_UNMARKED_FINAL = re.compile(r"assistant\n?final")
_UNMARKED_HEAD = re.compile(r"\A(?:analysis|commentary)|assistant\n?(?:analysis|commentary)")
_MAY_CLOSE = re.compile(rf"{_any_of([*_PAIRS.values(), '<|message|>'])}|{_UNMARKED_FINAL.pattern}", re.IGNORECASE)
_LONGEST_TAG = max(map(len, (*_STARTS, *_PAIRS.values())))


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
        content: the text as sent, see `split_thinking`.
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
    """Splits a text into (reasoning, reply).

    Reasoning is every block between tags at the start, everything up to a lone closing tag, and every channel of
    gpt-oss but the final one. A block that is never closed is all reasoning. Tags inside a reply are its text.

    >>> split_thinking("It rained.</think>\\n\\nYes"), split_thinking("<think>It rai")
    (('It rained.', 'Yes'), ('It rai', ''))
    >>> split_thinking("<|channel|>analysis<|message|>Rain.<|end|><|start|>assistant<|channel|>final<|message|>Yes")
    ('Rain.', 'Yes')
    """
    reply = text.lstrip()
    if reply.startswith("{"):
        return "", text
    channels = _channels(reply) or _unmarked_channels(reply)
    if channels is not None:
        return channels
    thoughts: list[str] = []
    while block := _first_block(reply, lone=not thoughts):
        thought, reply = block
        thoughts.append(thought)
    if not thoughts:
        inside = _inside(reply, _MARKED_REPLIES)
        return "", text if inside is reply else inside
    return "\n".join(filter(None, thoughts)), _inside(reply, {**_MARKED_REPLIES, **_NAMED_REPLIES})


def is_thinking(text: str) -> bool:
    """Whether a partial reply is still hidden reasoning, or may be about to begin it."""
    start = text.lstrip()
    lower = start[: _LONGEST_TAG + 1].lower()
    if any(opening.startswith(lower) for opening in _STARTS):
        return True
    if not lower.startswith(_STARTS):
        return False
    reply = split_thinking(start)[1]
    return reply is not start and is_thinking(reply)


def may_end_thinking(added: str, before: str) -> bool:
    """Whether a piece of reasoning may end it, by the tags in the piece and just before it; cheap, for streams."""
    return _MAY_CLOSE.search(before[-2 * _LONGEST_TAG :] + added) is not None


def _channels(text: str) -> tuple[str, str] | None:
    """Reasoning and final message of gpt-oss's channels; None in a text without any."""
    if "<|channel|>" not in text:
        return ("", "") if text.startswith("<|start|>") else None
    heads = list(_CHANNEL.finditer(text))
    if not heads:
        return (text.rpartition("<|channel|>")[2], "") if text.startswith(_HARMONY) else None
    ends = [head.start() for head in heads[1:]] + [len(text)]
    messages = [
        (head["name"], _without_end_marks(text[head.end() : end])) for head, end in zip(heads, ends, strict=True)
    ]
    final = next((message for name, message in reversed(messages) if name == "final"), "")
    before = _without_end_marks(text[: heads[0].start()])
    thoughts = [before, *(message for name, message in messages if name != "final")]
    return "\n".join(thought.strip() for thought in thoughts if thought.strip()), final.lstrip()


def _without_end_marks(message: str) -> str:
    while (end := message.rstrip()).endswith(_MESSAGE_ENDS):
        message = end[: end.rindex("<|")].rstrip()
    return message


def _unmarked_channels(text: str) -> tuple[str, str] | None:
    """Reasoning and final message of channels without their special tokens, as in `analysis...assistantfinal...`"""
    if text.startswith(_NO_REASONING) or ("assistant" not in text and not text.startswith(_UNMARKED)):
        return None
    finals = list(_UNMARKED_FINAL.finditer(text))
    glued = text.startswith(_UNMARKED) and text.removeprefix(_UNMARKED[0]).removeprefix(_UNMARKED[1])[:1].isupper()
    if not finals and not glued:
        return None
    start, end = finals[-1].span() if finals else (len(text), len(text))
    return _UNMARKED_HEAD.sub("\n", text[:start]).strip(), text[end:].lstrip()


def _first_block(text: str, *, lone: bool) -> tuple[str, str] | None:
    """Reasoning in a block at the start, and what follows it.

    Args:
        lone: whether a closing tag alone ends a block, too.
    """
    if opened := _OPENING.match(text):
        opening, at = opened[0].lower(), opened.end()
        closing = _PAIRS[opening]
    elif lone and (closed := _lone_closing(text)):
        closing, at = closed[0].lower(), 0
        opening = _LONE.get(closing, closing)
        inside_text = opening[1:-1] in _WORDS and opening in text[: closed.start()].lower()
        if inside_text and not text[closed.end() :].lstrip().startswith(_NO_REASONING):
            return None
    else:
        return None
    end = _end_of_block(text, opening, closing, at)
    if end is None and (reply := _REPLY_OPENING.search(text, at)):
        return text[at : reply.start()].strip(), text[reply.start() :]
    if end is None:
        return text[at:].strip(), ""
    return text[at : end.start()].strip(), text[end.end() :].lstrip()


def _lone_closing(text: str) -> re.Match[str] | None:
    if text.startswith(_NO_REASONING) or not any(mark in text for mark in _CLOSING_MARKS):
        return None
    return _CLOSING.search(text)


def _end_of_block(text: str, opening: str, closing: str, at: int) -> re.Match[str] | None:
    """Closing tag that ends a block: of the outer one, or before a JSON object that is all the rest.

    The last one where more are opened than closed, None without any.
    """
    depth, last = 1, None
    for tag in re.compile(_any_of((opening, closing)), re.IGNORECASE).finditer(text, at):
        if tag[0].lower() != closing:
            depth += 1
            continue
        depth, last = depth - 1, tag
        if not depth or _is_object(text[tag.end() :]):
            break
    return last


def _inside(reply: str, tags: dict[str, str]) -> str:
    """Reply without the tags around it; the reply itself where it has none, or more text behind them."""
    opened = _REPLY_OPENING.match(reply)
    closing = tags.get(opened[0].lower()) if opened else None
    if opened is None or closing is None:
        return reply
    inside, behind = reply[opened.end() :], ""
    at = inside.lower().rfind(closing)
    if at >= 0:
        inside, behind = inside[:at].rstrip(), inside[at + len(closing) :]
    return reply if behind.strip() else inside.lstrip()


def _is_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (ValueError, RecursionError):
        return False
