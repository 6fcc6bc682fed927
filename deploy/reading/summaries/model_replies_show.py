"""What the models did, as a table; nothing of it is shown where every reply was plainly usable."""

from __future__ import annotations

from collections.abc import Sequence

from moot.deploy.reading.report.blocks import Block, Table
from moot.deploy.reading.summaries.model_replies import ModelReplies, by_role
from moot.deploy.reading.text import count

_HEADER = {
    "asks": "asks",
    "usable": "usable",
    "repaired": "repaired",
    "reasked": "reasked",
    "by_prefix": "by prefix",
    "replies": "replies",
    "truncated": "truncated",
    "repetitive": "repetitive",
    "refused": "refused",
    "outside_labels": "outside labels",
    "unaligned": "unaligned",
    "reasoning_tokens": "reasoning tokens",
}
_ALWAYS = ("asks", "usable", "replies")

REPLIES_NOTE = "What the models did: by role and template. Asks first, then every text that came."


def reply_blocks(found: Sequence[ModelReplies]) -> list[Block]:
    """A row for each role of which something is noteworthy, without columns in which nothing is counted."""
    shown = [each for each in found if each.noteworthy]
    names = [name for name in _HEADER if name in _ALWAYS or any(getattr(each, name) for each in shown)]
    rows = [(each.role, each.template, *(_cell(getattr(each, name)) for name in names)) for each in shown]
    table = Table(REPLIES_NOTE, ("role", "template", *(_HEADER[name] for name in names)), rows)
    return [table] if rows else []


def replies_words(found: Sequence[ModelReplies]) -> str:
    """The same over all templates, in one line.

    >>> replies_words([ModelReplies(role="agent", template="a", asks=4, usable=3, replies=4, truncated=1)])
    'agent 3 of 4 asks usable, truncated 1'
    """
    return "; ".join(_words(each) for each in by_role(found)) or "-"


def _words(each: ModelReplies) -> str:
    more = [f", {word} {count(getattr(each, name))}" for name, word in _HEADER.items() if _said(each, name)]
    return f"{each.role} {count(each.usable)} of {count(each.asks)} asks usable{''.join(more)}"


def _said(each: ModelReplies, name: str) -> bool:
    return name not in _ALWAYS and bool(getattr(each, name))


def _cell(value: int | None) -> str:
    return "-" if value is None else count(value)
