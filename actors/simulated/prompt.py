"""Prompt parser of the simulated model: reads only the rendered text, as a model would."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moot.actors.simulated.form import labels_named, read_form
from moot.protocols.case import Image
from moot.protocols.messages import Message
from moot.protocols.templates import unfenced

_REASK = "Your last reply could not be used"
_OPEN_TAG = re.compile(r'<([A-Za-z_]+)((?: \w+="[^"]*")*)>\n')
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_MOST_LABELS = re.compile(r"the (\d{1,3}) likeliest labels")
_SECTION = re.compile(r"^([A-Z][A-Za-z-]{2,30}): ", re.MULTILINE)
_SECTIONED = "labelled sections"
_UNSTATED = 0.75
"""Assumed confidence of a quoted reply without one."""

UNLABELLED = "one argument in plain text"
"""Phrase that requests an argument without labelled sections."""
_LEVEL = re.compile(
    r"\bcontentiousness\b"
    r"(?:\s*[(\[][^)\]]{0,40}[)\]])?"  # the range, in brackets
    r"(?:(?!\n\s*\d[.)]\s)[^.!?;()\[\]\d]){0,30}?"  # a few words of the same sentence, and no numbered list
    r"((?<!\w)-?\d*\.?\d+)"
    r"(\s*(?:[%/]|(?:to|-|out of) *\d))?",  # a share of something else, or a range
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """Reply quoted in a prompt: answer, confidence in [0, 1] (0.75 if not stated, 0.5 if unreadable), and text."""

    answer: str
    confidence: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class ParsedFence:
    """Fenced material between tags: its tag, attributes and text, and its position in the user text."""

    tag: str
    attributes: dict[str, str]
    body: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ParsedPrompt:
    """Parsed content of a prompt.

    Attributes:
        form: schema of the requested JSON object; None without one.
        sections: labels of the sections of a text without a form, in order; empty without any.
        argues: whether an argument is requested, in labelled sections or without.
        question: the question; the whole user text when the template marks none.
        passage: its evidence; may be empty.
        labels: closed set of answers; empty when the prompt names none.
        own: the agent's own last reply; None before a debate.
        others: the other agents' last replies.
        contentiousness: level in [0, 1] that the instructions state; None without one.
        most_labels: number of labels of a distribution; None when the instructions state none.
        instructions: text outside of tags.
        pictures: the attached images, in order.
        fences: texts between tags, in order.
        sent: texts of all messages, as sent.
    """

    form: Mapping[str, Any] | None
    sections: tuple[str, ...]
    argues: bool
    question: str
    passage: str
    labels: tuple[str, ...]
    own: ParsedReply | None
    others: tuple[ParsedReply, ...]
    contentiousness: float | None
    most_labels: int | None
    instructions: str
    pictures: tuple[Image, ...]
    fences: tuple[ParsedFence, ...]
    sent: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the form, in order; empty without a form."""
        return tuple(self.form["properties"]) if self.form else ()

    @property
    def names(self) -> frozenset[str]:
        """Keys of the form, including nested ones."""
        return frozenset(_names(self.form or {}))

    def tagged(self, *tags: str) -> list[ParsedFence]:
        """Fenced material with one of these tags, in order."""
        return [fence for fence in self.fences if fence.tag in tags]

    def first(self, tag: str) -> str:
        """First fenced text with this tag; may be empty."""
        return next((fence.body for fence in self.fences if fence.tag == tag), "")


def count_reasks(messages: Sequence[Message]) -> int:
    """Number of re-asks in the conversation."""
    return sum(message.role == "user" and message.content.startswith(_REASK) for message in messages)


def parse_prompt(messages: Sequence[Message]) -> ParsedPrompt:
    """Parses a conversation; re-asks are ignored. Every element is optional: a bare text is a question."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    asked = [message for message in messages if message.role == "user" and not message.content.startswith(_REASK)]
    user = "\n".join(message.content for message in asked)
    fences = list(_fences(user))
    outside = _outside(user, fences)
    instructions = f"{system}\n{outside}"
    first = {fence.tag: fence.body for fence in reversed(fences)}
    own = [_seen_reply(fence) for fence in fences if fence.tag == "own_reply"]
    form = read_form(instructions)
    sections = () if form else _sections(instructions)
    return ParsedPrompt(
        form=form,
        sections=sections,
        argues=bool(sections) or (not form and UNLABELLED in instructions),
        question=first.get("question", unfenced(user)),
        passage=first.get("passage", ""),
        labels=_labels(instructions, fences),
        own=own[-1] if own else None,
        others=tuple(_seen_reply(fence) for fence in fences if fence.tag == "reply"),
        contentiousness=_contentiousness(_outside(system, list(_fences(system))), outside),
        most_labels=int(named[1]) if (named := _MOST_LABELS.search(instructions)) else None,
        instructions=instructions,
        pictures=tuple(image for message in asked for image in message.images),
        fences=tuple(fences),
        sent=tuple(message.content for message in messages),
    )


def _names(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        yield name
        yield from _names(part)
    if "items" in schema:
        yield from _names(schema["items"])


def _fences(text: str) -> Iterator[ParsedFence]:
    at = 0
    never_closed: set[str] = set()  # searched once only, or a long text of open tags would take forever
    while opened := _OPEN_TAG.search(text, at):
        closing = f"\n</{opened[1]}>"
        close = -1 if closing in never_closed else text.find(closing, opened.end() - 1)
        if close < 0:
            never_closed.add(closing)
            at = opened.end()
            continue
        at = close + len(closing)
        attributes = {name: _plain(value) for name, value in _ATTRIBUTE.findall(opened[2])}
        yield ParsedFence(opened[1], attributes, unfenced(text[opened.end() : close]), opened.start(), at)


def _plain(attribute: str) -> str:
    return unfenced(attribute.replace("&quot;", '"'))


def _outside(text: str, fences: Sequence[ParsedFence]) -> str:
    pieces, at = [], 0
    for fence in fences:
        pieces.append(text[at : fence.start])
        at = fence.end
    return "".join([*pieces, text[at:]])


def _sections(instructions: str) -> tuple[str, ...]:
    """Section labels that the instructions ask for."""
    _, found, listed = instructions.partition(_SECTIONED)
    return tuple(dict.fromkeys(_SECTION.findall(listed))) if found else ()


def _labels(instructions: str, fences: Sequence[ParsedFence]) -> tuple[str, ...]:
    lettered = [fence.attributes.get("label", "") for fence in fences if fence.tag == "choice"]
    if lettered and all(lettered):
        return tuple(dict.fromkeys(lettered))
    return labels_named(instructions)


def _contentiousness(*instructions: str) -> float | None:
    """Level of contentiousness stated last; None unless it is a number in [0, 1]."""
    stated = [float(number) for text in instructions for number, more in _LEVEL.findall(text) if not more]
    levels = [number for number in stated if 0.0 <= number <= 1.0]
    return levels[-1] if levels else None


def _seen_reply(fence: ParsedFence) -> ParsedReply:
    try:
        confidence = float(fence.attributes.get("confidence", _UNSTATED))
    except ValueError:
        confidence = 0.5
    if not 0.0 <= confidence <= 1.0:
        confidence = 0.5
    return ParsedReply(fence.attributes.get("answer", ""), confidence, fence.body)
