"""Whether the cells of a column hold text, rather than names, categories, identifiers, dates or numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

_WORDS, _CLEAR_WORDS = 3, 5
"""Fewest words of a text, and of one that is no category or name even if it repeats."""

_LETTERS_PER_WORD = 3
"""Letters that count as a word in scripts whose words have no spaces between them, or that write syllables."""

_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]"
)
"""Letters of Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean."""

_PUNCTUATION = ".,;:!?()[]{}'\"\u2018\u2019\u201c\u201d\u2026-"
_NOT_IN_WORDS = frozenset("0123456789_/\\@=<>|.:#")
"""Characters of identifiers, dates, addresses and numbers."""

_MOST_TOKENS, _MOST_CHARACTERS, _MOST_ITEMS, _MOST_DEPTH = 60, 1000, 16, 3
"""What is looked at of a cell: the start of a text, the first items of a list or an object, and levels of them."""


class TextInCells:
    """Cells of one column, one after another.

    A text is clear if it has five words. One of three or four may be a category, so a column of those holds text only
    if at least half of them differ.
    """

    def __init__(self) -> None:
        self._clear = False
        self._short = 0
        self._different: set[int] = set()

    def add(self, value: object) -> None:
        """Looks at a cell."""
        if self._clear:
            return
        for text in _texts(value, _MOST_DEPTH):
            words = _words(text[:_MOST_CHARACTERS])
            if words >= _CLEAR_WORDS:
                self._clear = True
                return
            elif words >= _WORDS:
                self._short += 1
                self._different.add(hash(text))

    @property
    def hold_text(self) -> bool:
        """Whether the cells seen so far hold text."""
        return self._clear or 0 < self._short <= 2 * len(self._different)


def _texts(value: object, depth: int) -> Iterator[str]:
    """Texts of a cell: its own, or those in a list or an object."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, list | tuple | Mapping):
        for item in islice(value.values() if isinstance(value, Mapping) else value, _MOST_ITEMS):
            yield from _texts(item, depth - 1)


def _words(text: str) -> int:
    """Number of words at the start of a text; 0 of one that consists mostly of something else, such as a date."""
    if not text or (text.isascii() and " " not in text and "\n" not in text):
        return 0
    letters = 0 if text.isascii() else len(_WITHOUT_SPACES.findall(text))
    tokens = text.split(maxsplit=_MOST_TOKENS)[:_MOST_TOKENS]
    words = sum(map(_is_word, tokens))
    if words < _CLEAR_WORDS and 2 * words <= len(tokens):
        words = 0
    return max(words, letters // _LETTERS_PER_WORD)


def _is_word(token: str) -> bool:
    bare = token.strip(_PUNCTUATION)
    return len(bare) > 1 and _NOT_IN_WORDS.isdisjoint(bare) and any(map(str.isalpha, bare))
