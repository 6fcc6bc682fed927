"""Agent C by rules, without a model: conflicts between two texts.

Each test first checks whether two sentences have the same subject: at least two content words in common, and at least
`SAME_THING` of the shorter one's. They see wording, not meaning, and English wording only, and are more often wrong
than right: what they find is shown to debaters and judges as a hint, and decides nothing but who is shown what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, islice
from typing import Literal

from moot.protocols.ceda.items import Item
from moot.protocols.ceda.quantities import MONTHS, YEAR, QuantityRange
from moot.protocols.ceda.wording import OPPOSITES, Wording, wording_of
from moot.protocols.events import EventData
from moot.protocols.text.sentences import split_sentences

Why = Literal["number", "negation", "antonym", "meaning"]
"""Difference found by a test, or `meaning` for one reported by a model."""

SAME_THING = 0.7
"""The least share of content words that two sentences about the same thing have in common."""

_MOST_PLACES, _MOST_LOOKS, _MOST_PAIRS = 200, 2_000_000, 20_000
"""Sentences of a text that are found by one word, those that are found in all, and pairs that are compared."""


class Conflict(EventData):
    """Two contradictory items of evidence.

    Attributes:
        between: the items' ids, in the items' order.
        why: test that found it, or `meaning`: one of `Why`.
        detail: what differs, in the items' own words.
    """

    between: list[str]
    why: str
    detail: str = ""


def conflicts_of(items: Sequence[Item]) -> tuple[Conflict, ...]:
    """Contradictory pairs of items, each with the first reason found."""
    read = {item.id: sentences_of(item.text) for item in items}
    found = []
    for one, other in pairs_of(items):
        at_odds = first_difference(read[one.id], read[other.id])
        if at_odds is not None:
            found.append(Conflict(between=[one.id, other.id], why=at_odds[0], detail=at_odds[1]))
    return tuple(found)


def pairs_of(items: Sequence[Item]) -> list[tuple[Item, Item]]:
    """Pairs that can conflict; two pictures cannot, as each description refers to its own picture."""
    return [pair for pair in combinations(items, 2) if {item.kind for item in pair} != {"picture"}]


@lru_cache(maxsize=1024)  # each item is compared with the claim and with every other one
def sentences_of(text: str) -> tuple[Wording, ...]:
    """Wording of each sentence."""
    return tuple(wording_of(sentence) for sentence in split_sentences(text))


def first_difference(ones: Sequence[Wording], others: Sequence[Wording]) -> tuple[Why, str] | None:
    """Reason for the first conflict between sentences; None without one.

    Only sentences with two words in common can be. Of texts that say the same thousands of times not every pair is
    looked at.
    """
    pairs = islice(_alike(ones, others), _MOST_PAIRS)
    return next((found for one, other in pairs if (found := difference(one, other))), None)


def _alike(ones: Sequence[Wording], others: Sequence[Wording]) -> Iterator[tuple[Wording, Wording]]:
    """Pairs with two words in common, in order; of a very frequent word only the first occurrences count."""
    places: dict[str, list[int]] = {}
    for place, other in enumerate(others):
        for word in other.words:
            if len(listed := places.setdefault(word, [])) < _MOST_PLACES:
                listed.append(place)
    looked_at = 0
    for one in ones:
        common = Counter(place for word in one.words for place in places.get(word, ()))
        looked_at += common.total()
        if looked_at > _MOST_LOOKS:
            return
        for place in sorted(place for place, count in common.items() if count > 1):
            yield one, others[place]


def difference(one: Wording, other: Wording) -> tuple[Why, str] | None:
    """Reason of a conflict between two sentences, and the difference; None when the tests detect none.

    A negation and an antonym cancel each other out: "not open" and "closed" do not conflict.

    >>> difference(wording_of("The bridge opened in 1932."), wording_of("The bridge was opened to all in 1934."))
    ('number', '1932 against 1934 (year)')
    >>> difference(wording_of("The old bridge is open."), wording_of("The old bridge is not open."))
    ('negation', 'only one says `not`')
    >>> difference(wording_of("The bridge is not open."), wording_of("The bridge is closed.")) is None
    True
    """
    contrary = _contrary(one, other)
    if _other_name(one, other) or not _same_thing(one.words - {contrary[0]}, other.words - {contrary[1]}):
        return None
    if one.negated == other.negated:
        if contrary[0]:
            return "antonym", f"{one.spelled[contrary[0]]} against {other.spelled[contrary[1]]}"
        return _other_number(one, other)
    return None if contrary[0] else ("negation", f"only one says `{one.negation or other.negation}`")


def _other_name(one: Wording, other: Wording) -> bool:
    """Whether they refer to two things whose names differ only in a number: Apollo 11 and Apollo 12."""
    return any(not one.numbered[name] & other.numbered[name] for name in one.numbered.keys() & other.numbered.keys())


def _same_thing(one: frozenset[str], other: frozenset[str]) -> bool:
    common = len(one & other)
    return common >= 2 and common >= SAME_THING * min(len(one), len(other))


def _contrary(one: Wording, other: Wording) -> tuple[str, str]:
    """A word of one and its antonym in the other, where each has only one of the two; else two empty words."""
    for word in sorted(one.words - other.words):
        for antonym in sorted(OPPOSITES.get(word, frozenset()) & (other.words - one.words)):
            return word, antonym
    return "", ""


def _other_number(one: Wording, other: Wording) -> tuple[Why, str] | None:
    """The first unit in which no two quantities can both be true.

    Where they also measure something else, other years mean that each is about its own time.
    """
    shared = one.quantities.keys() & other.quantities.keys()
    apart = [unit for unit in sorted(shared) if not _meet(one.quantities[unit], other.quantities[unit])]
    if not apart or (YEAR in apart and shared - MONTHS != {YEAR}):
        return None
    unit = apart[0]
    name = "year" if unit == YEAR else one.spelled.get(unit, unit)
    figures = f"{_listed(one.quantities[unit])} against {_listed(other.quantities[unit])}"
    return "number", f"{figures} ({name})" if name else figures


def _meet(ones: frozenset[QuantityRange], others: frozenset[QuantityRange]) -> bool:
    return any(one.meets(other) for one in ones for other in others)


def _listed(values: frozenset[QuantityRange]) -> str:
    return ", ".join(str(value) for value in sorted(values))
