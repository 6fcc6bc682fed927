"""How many tokens a text may be by its script: vocabularies hold words of Latin letters, and less of other scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

_OTHER = re.compile("[^\u0000-\u036f\u1e00-\u1eff\u2000-\u206f]")
"""A character of another script: neither a Latin letter with its marks nor punctuation that Latin texts have, too."""

_READ = 2_000
"""Characters of each text that are looked at."""

_FEW = 0.1
"""Share of other characters below which a text is Latin and quotes something."""


def estimated_length(text: str) -> int:
    """Characters of a Latin text of about as many tokens: one of another script is about a token, which is four.

    >>> estimated_length("So it goes."), estimated_length("今日は晴れ")
    (11, 20)
    """
    return len(text) if text.isascii() else len(text) + 3 * len(_OTHER.findall(text))


def bytes_per_character(texts: Iterable[str]) -> int:
    """At most how many tokens a character is of a text in the script of these: its bytes, for no tokeniser makes more.

    Returns:
        1 for texts in Latin script, of which a token holds several characters; else 2 to 4.

    >>> [bytes_per_character([text]) for text in ("Où est-il ?", "Где он?", "他在哪里", "😀🎉")]
    [1, 2, 3, 4]
    """
    beginnings = [text[:_READ] for text in texts]
    found = "".join(chain.from_iterable(_OTHER.findall(text) for text in beginnings if not text.isascii()))
    if len(found) < _FEW * sum(map(len, beginnings)) or not found:
        return 1
    return min(4, max(2, round(len(found.encode("utf-8", "replace")) / len(found))))


def texts_within(value: Any) -> Iterable[str]:
    """Every text in JSON-like data, keys aside."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(texts_within, value.values()))
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(texts_within, value))
