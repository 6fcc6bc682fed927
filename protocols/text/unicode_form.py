"""NFKC normalisation for comparing texts, in linear time for any input."""

from __future__ import annotations

import unicodedata

_AT_ONCE = 256
"""Most characters of a run: sorting combining marks takes quadratic time, so a long run is split."""

_MARKS_OF_ONE = 32
"""Most combining marks on one letter in any script."""


def nfkc(text: str) -> str:
    """Text in NFKC. Only a run of more combining marks than any script uses may be ordered differently.

    >>> nfkc("\\uff39\\uff25\\uff33")
    'YES'
    """
    if text.isascii() or len(text) <= _AT_ONCE:
        return unicodedata.normalize("NFKC", text)
    parts, start = [], 0
    while start < len(text):
        end = _boundary(text, start)
        parts.append(unicodedata.normalize("NFKC", text[start:end]))
        start = end
    return "".join(parts)


def _boundary(text: str, start: int) -> int:
    """End of the next part: before a character that no form joins to the previous one, if there is one near."""
    end = min(len(text), start + _AT_ONCE)
    for nearer in range(end, max(start, end - _MARKS_OF_ONE), -1):
        if nearer == len(text) or text[nearer].isspace() or text[nearer].isascii():
            return nearer
    for nearer in range(end, max(start, end - _MARKS_OF_ONE), -1):
        if unicodedata.combining(text[nearer]) == 0 and not _JAMO[0] <= text[nearer] <= _JAMO[1]:
            return nearer
    return end


_JAMO = ("\u1100", "\u11ff")
"""Korean letters that combine to syllables."""
