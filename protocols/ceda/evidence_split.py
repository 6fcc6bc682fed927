"""Evidence split: contradictory texts go to different debaters, pictures and everything else to both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from moot.protocols.ceda.conflicts import Conflict
from moot.protocols.ceda.items import Item

DEBATERS = ("debater/0", "debater/1")
"""Debaters in the order of speaking."""


Shown = Literal["conflicts", "split", "shared"]
"""Mode of showing texts to the debaters; see `split_evidence`."""


def split_evidence(items: Sequence[Item], conflicts: Collection[Conflict], shown: Shown) -> dict[str, tuple[str, ...]]:
    """Ids of the items shown to each debater, in the items' order.

    - `conflicts`: contradictory texts go to different debaters where possible, all others to
      both.
    - `split`: these too, by rank to the side with fewer, the first one on a tie. With fewer than two
      texts there is nothing to split.
    - `shared`: everything to both.
    """
    texts = [item.id for item in items if item.kind != "picture"]
    if shown == "shared" or len(texts) < 2:
        return {debater: tuple(item.id for item in items) for debater in DEBATERS}
    opponents = _opponents(texts, conflicts)
    sides = _facing(texts, opponents)
    if shown == "split":
        sides = _assign_remaining(texts, sides)
    return {
        debater: tuple(item.id for item in items if sides.get(item.id, number) == number)
        for number, debater in enumerate(DEBATERS)
    }


def _opponents(texts: Sequence[str], conflicts: Collection[Conflict]) -> dict[str, list[str]]:
    pairs = {tuple(conflict.between) for conflict in conflicts}
    at_odds = pairs | {(other, one) for one, other in pairs}
    return {one: [other for other in texts if (one, other) in at_odds] for one in texts}


def _facing(texts: Sequence[str], opponents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Index of the debater who sees each contradictory text."""
    sides: dict[str, int] = {}
    for text in texts:
        if not opponents[text]:
            continue
        waiting = [text]
        while waiting:  # opponents right after each other, so that only an odd circle leaves two on one side
            one = waiting.pop(0)
            if one in sides:
                continue
            facing = [sides[other] for other in opponents[one] if other in sides]
            sides[one] = min((0, 1), key=lambda side: (facing.count(side), _count_assigned(sides, side)))
            waiting += opponents[one]
    return sides


def _assign_remaining(texts: Sequence[str], sides: Mapping[str, int]) -> dict[str, int]:
    """Assigns the remaining texts, by rank, to the side with fewer."""
    dealt_out = dict(sides)
    for text in texts:
        if text not in dealt_out:
            dealt_out[text] = min((0, 1), key=lambda side: _count_assigned(dealt_out, side))
    return dealt_out


def _count_assigned(sides: Mapping[str, int], side: int) -> int:
    return sum(each == side for each in sides.values())
