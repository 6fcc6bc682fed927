"""Who is shown which evidence: texts that are at odds go to different debaters, pictures to both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from moot.protocols.ceda.conflicts import Conflict
from moot.protocols.ceda.items import Item

DEBATERS = ("debater/0", "debater/1")
"""In the order in which they speak."""


def dealt(items: Sequence[Item], conflicts: Collection[Conflict], *, split: bool) -> dict[str, tuple[str, ...]]:
    """By debater the ids of the items that it is shown, in the items' order.

    Split: texts at odds go to different debaters as far as that can be, then the others by rank to whoever has fewer,
    the first one where both have equally many. With fewer than two texts there is nothing to split.
    """
    texts = [item.id for item in items if item.kind != "picture"]
    if not split or len(texts) < 2:
        return {debater: tuple(item.id for item in items) for debater in DEBATERS}
    sides = _sides(texts, _opponents(texts, conflicts))
    return {
        debater: tuple(item.id for item in items if sides.get(item.id, number) == number)
        for number, debater in enumerate(DEBATERS)
    }


def _opponents(texts: Sequence[str], conflicts: Collection[Conflict]) -> dict[str, list[str]]:
    pairs = {conflict.between for conflict in conflicts}
    at_odds = pairs | {(other, one) for one, other in pairs}
    return {one: [other for other in texts if (one, other) in at_odds] for one in texts}


def _sides(texts: Sequence[str], opponents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """By text the number of the debater who is shown it."""
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
            sides[one] = min((0, 1), key=lambda side: (facing.count(side), _held(sides, side)))
            waiting += opponents[one]
    for text in texts:
        if text not in sides:
            sides[text] = min((0, 1), key=lambda side: _held(sides, side))
    return sides


def _held(sides: Mapping[str, int], side: int) -> int:
    return sum(each == side for each in sides.values())
