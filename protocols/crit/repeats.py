"""Deterministic detection of repeated reasons by their words, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from moot.protocols.text.folding import fold

SHARED_WORDS = 0.8
"""Minimum share of common words among all words of two reasons."""

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


@dataclass(frozen=True, slots=True)
class _NormalisedText:
    """A text normalised for comparison."""

    folded: str
    words: frozenset[str]
    decisive: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _NormalisedText:
        folded = fold(text)
        words = frozenset(_WORD.findall(folded.replace("\u2019", "'"))) - _LITTLE
        return cls(folded, words, frozenset(word for word in words if _is_decisive(word)))

    def repeats(self, other: _NormalisedText) -> bool:
        if self.folded == other.folded:
            return True
        both, either = self.words & other.words, self.words | other.words
        return self.decisive == other.decisive and len(both) >= SHARED_WORDS * len(either) > 0


def _is_decisive(word: str) -> bool:
    """Numbers and negations; reasons that differ in one of them are distinct."""
    return word in _NEGATIONS or word.endswith("n't") or any(map(str.isdigit, word))


def first_alike(texts: Sequence[str]) -> list[int | None]:
    """Index of the first earlier text that each text repeats; None for a text that repeats none.

    Two texts repeat each other if they are equal except for case, white space and marks at their ends, or if at least
    `SHARED_WORDS` of their words, without stop words, are shared, and they have the same numbers and negations.

    >>> first_alike(["The tests are cheap.", "the tests are cheap", "The tests are not cheap."])
    [None, 0, None]
    """
    normalised = [_NormalisedText.of(text) for text in texts]
    found: list[int | None] = []
    for place, one in enumerate(normalised):
        earlier = (i for i in range(place) if found[i] is None)
        found.append(next((i for i in earlier if one.repeats(normalised[i])), None))
    return found
