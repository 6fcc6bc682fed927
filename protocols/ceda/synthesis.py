"""Agent C as a model: its reply is verified against the evidence. A quote must occur in the named item."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from moot.protocols.ceda.conflicts import Conflict
from moot.protocols.ceda.context_reply import ConflictReply, ContextReply, Fact, OneItemReply
from moot.protocols.ceda.items import Item
from moot.protocols.events import EventData, Listed
from moot.protocols.text.unicode_form import nfkc

_NUMBER = re.compile(r"\d+")
_SHAPES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_MARKS = " .,;:!?\"'\u2026\u2018\u2019\u201c\u201d\u00ab\u00bb"


class EvidenceStatement(EventData):
    """Statement of the evidence on one point of the claim.

    Attributes:
        text: in the model's words.
        facts: ids of items, each with words that occur in it.
    """

    text: str
    facts: Listed[Listed[str]]

    @property
    def sources(self) -> tuple[str, ...]:
        """The ids of the items, each once."""
        return tuple(dict.fromkeys(fact[0] for fact in self.facts if fact))


class EvidenceSynthesis(EventData):
    """A model's statements on the evidence, without conflicts.

    Attributes:
        statements: those with a verified quote.
        unfounded: quotes that do not occur in the named item, and conflicts of an item with itself: not used.
        missing: why there is no reply; empty when there is one.
    """

    statements: Listed[EvidenceStatement] = ()
    unfounded: int = 0
    missing: str = ""


def grounded(reply: OneItemReply, items: Sequence[Item]) -> tuple[EvidenceSynthesis, tuple[Conflict, ...]]:
    """Verified part of a reply: statements, and contradictory pairs of items, each once."""
    known = {item.id: item for item in items}
    unfounded = 0
    statements = []
    for stated in reply.statements:
        facts = tuple(fact for fact in map(lambda each: _fact(each, known), stated.facts) if fact is not None)
        unfounded += len(stated.facts) - len(facts)
        if facts:
            statements.append(EvidenceStatement(text=stated.text.strip(), facts=facts))
    reported = reply.conflicts if isinstance(reply, ContextReply) else []
    conflicts = [_conflict(each, known) for each in reported]
    unfounded += conflicts.count(None)
    return EvidenceSynthesis(statements=tuple(statements), unfounded=unfounded, missing=""), _each_once(conflicts)


def _conflict(reported: ConflictReply, known: dict[str, Item]) -> Conflict | None:
    one = _fact(Fact(item=reported.item_1, quote=reported.quote_1), known)
    other = _fact(Fact(item=reported.item_2, quote=reported.quote_2), known)
    if one is None or other is None or one[0] == other[0]:
        return None
    order = list(known)
    first, second = sorted((one, other), key=lambda fact: order.index(fact[0]))
    detail = f'"{first[1]}" against "{second[1]}"'
    return Conflict(between=[first[0], second[0]], why="meaning", detail=detail)


def _each_once(conflicts: Iterable[Conflict | None]) -> tuple[Conflict, ...]:
    """First conflict by pair of items; in the order of the reply."""
    found: dict[tuple[str, ...], Conflict] = {}
    for conflict in conflicts:
        if conflict is not None:
            found.setdefault(tuple(conflict.between), conflict)
    return tuple(found.values())


def _fact(reported: Fact, known: dict[str, Item]) -> tuple[str, str] | None:
    """An item's id and the words quoted; None if there is no such item, or the words do not occur in it."""
    numbers = _NUMBER.findall(reported.item)
    item = known.get(f"E{numbers[0]}") if len(numbers) == 1 else None
    quote = " ".join(reported.quote.split()).strip(_MARKS)
    if item is None or not quote or _plain(quote) not in _plain(item.text):
        return None
    return item.id, quote


def _plain(text: str) -> str:
    """A text normalised for comparing quotes: regardless of case, white space and the shape of marks."""
    return " ".join(nfkc(text).translate(_SHAPES).casefold().split())
