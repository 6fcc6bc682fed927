"""NFKC normalisation for comparing texts, in linear time for any input, that keeps superscripts apart from digits."""

from __future__ import annotations

import re
import unicodedata

_AT_ONCE = 256
"""Most characters of a run: sorting combining marks takes quadratic time, so a long run is split."""

_MARKS_OF_ONE = 32
"""Most combining marks on one letter in any script."""


_SUPERSCRIPTS = re.compile("[\u00b2\u00b3\u00b9\u2070\u2071\u2074-\u207f]+")
_SUBSCRIPTS_OF_A_DIGIT = re.compile("(?<=[0-9])[\u2080-\u2089]+")


def nfkc(text: str) -> str:
    """Text in NFKC, with `^` before superscripts, and `_` before the subscript digits of a digit.

    NFKC alone makes 102 of ten squared. Only a run of more combining marks than any script uses may be ordered
    differently.

    >>> nfkc("\\uff39\\uff25\\uff33"), nfkc("10\\u00b2"), nfkc("H\\u2082O")
    ('YES', '10^2', 'H2O')
    """
    if text.isascii():
        return text
    text = _SUPERSCRIPTS.sub(r"^\g<0>", text)
    text = _SUBSCRIPTS_OF_A_DIGIT.sub(r"_\g<0>", text)
    if len(text) <= _AT_ONCE:
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
