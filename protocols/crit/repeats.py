"""When a reason repeats another one: a rule about words, the same on every machine and without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.protocols.labels import fold

SHARED_WORDS = 0.8
"""Share of the words of two reasons, taken together, that both must have."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_LITTLE = frozenset(
    _WORD.findall(
        "a an the this that these those it its they their there he she his her we our you your i and or but so also"
        " as at by for from in into of on onto to with than then is are was were be been being am has have had do"
        " does did will would shall should can could may might must very really just which who whom whose what"
    )
)
_NEGATIONS = frozenset(
    _WORD.findall("no not none never nobody nothing neither nor without cannot lacks absence absent")
)


def first_alike(texts: Sequence[str]) -> list[int | None]:
    """For each text the place of the first one before it that it repeats; None for a text that repeats none.

    Two texts repeat each other when they are equal but for case, white space and marks at their ends; or when at least
    `SHARED_WORDS` of their words, little words left out, are shared, and they have the same numbers and negations.

    >>> first_alike(["The tests are cheap.", "the tests are cheap", "The tests are not cheap."])
    [None, 0, None]
    """
    found: list[int | None] = []
    for place, text in enumerate(texts):
        earlier = (i for i in range(place) if found[i] is None)
        found.append(next((i for i in earlier if alike(texts[i], text)), None))
    return found


def alike(one: str, other: str) -> bool:
    """Whether one text repeats the other; see `first_alike`."""
    if fold(one) == fold(other):
        return True
    left, right = _words(one), _words(other)
    if _decisive(left) != _decisive(right):
        return False
    return len(left & right) >= SHARED_WORDS * len(left | right) > 0


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(text).replace("\u2019", "'"))) - _LITTLE


def _decisive(words: frozenset[str]) -> frozenset[str]:
    """Numbers and negations: one of these more or less makes another reason."""
    return frozenset(w for w in words if w in _NEGATIONS or w.endswith("n't") or any(map(str.isdigit, w)))
