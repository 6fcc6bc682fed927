"""Folding: the form in which texts are compared when their exact spelling does not count."""

from __future__ import annotations

import re

from moot.protocols.text.unicode_form import nfkc

_UNSEEN = "\u200b\u200e\u200f\u2060\ufeff"  # marks of no width
_QUOTES_AND_STOPS = " \t\r\n\"'`*_.,:;!?\u2018\u2019\u201c\u201d\u00ab\u00bb" + _UNSEEN
_PARTNER = {"(": ")", "[": "]", "{": "}", "<": ">"}
_BOUND = r"\s*[^\s,()\[\]]{0,24}[\d\u221e\\][^,()\[\]]{0,24}"
_INTERVAL = re.compile(rf"\s*(?:\\left)?([\[({{]){_BOUND},{_BOUND}?(?:\\right)?([\])}}])\s*\.?\s*")
_BRACKETS, _COMPARE = frozenset("()[]{}<>"), frozenset("<>")

TYPOGRAPHY = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-")
    | {"\u2014": " - "}
    | dict.fromkeys("\u2018\u2019", "'")
    | dict.fromkeys("\u201c\u201d", '"')
)
"""Dashes and quotes of typesetters, and what keyboards have for them."""


def fold(text: str) -> str:
    """Folded text for comparing labels: NFKC, no surrounding quotes, marks or brackets, lower case, single spaces.

    A bracket goes with its partner at the other end, or where it has none, except around an interval; `<` and `>` go
    only together, as either alone compares. The point of a decimal number is no surrounding mark, even in front.

    >>> fold('  "Yes." '), fold("(.5)"), fold("<5"), fold("-(5)")
    ('yes', '.5', '<5', '-(5)')
    """
    return " ".join(bare(text).casefold().split())


def label_order(label: str) -> str:
    """Sort key of a label: folded, without brackets at either end. Raises nothing."""
    return fold(label).strip("()[]{}<>")


def typed(text: str) -> str:
    """Folded text as a keyboard has it: one kind of dash, straight quotes. Raises nothing.

    >>> typed("5\\u201310"), typed("Don\\u2019t.")
    ('5-10', "don't")
    """
    return " ".join(fold(text).translate(TYPOGRAPHY).split())


def interval_brackets(text: str) -> str:
    """Brackets of an interval, a point or a pair, which tell its kind; empty for other texts. Raises nothing.

    >>> interval_brackets("[2, 5)"), interval_brackets("(0, 5]"), interval_brackets("(no, not 5)")
    ('[)', '(]', '')
    """
    found = _INTERVAL.fullmatch(text)
    return "" if found is None else found[1] + found[2]


def bare(text: str) -> str:
    """Text in NFKC without the quotes, marks and brackets around it; case is kept. Raises nothing.

    The brackets of an interval stay.

    >>> bare("(Aa),")
    'Aa'
    """
    plain = nfkc(text)
    start, end = 0, len(plain)
    partners: dict[int, int] | None = None
    while start < end:
        first, last = plain[start], plain[end - 1]
        if first in _QUOTES_AND_STOPS and not _begins_decimal(plain, start):
            start += 1
        elif last in _QUOTES_AND_STOPS:
            end -= 1
        elif first in _BRACKETS or last in _BRACKETS:
            if interval_brackets(plain[start:end]):
                break
            partners = _partners(plain) if partners is None else partners
            if partners.get(start) == end - 1:
                start, end = start + 1, end - 1
            elif first in _BRACKETS - _COMPARE and start not in partners:
                start += 1
            elif last in _BRACKETS - _COMPARE and end - 1 not in partners:
                end -= 1
            else:
                break
        else:
            break
    return plain[start:end]


def _begins_decimal(plain: str, start: int) -> bool:
    """Whether the mark at an index is the point of a decimal number: one of several points is none."""
    single = plain[start] == "." and plain[start + 1 : start + 2].isdigit()
    return single and plain[start - 1 : start] != "."


def _partners(plain: str) -> dict[int, int]:
    """Index of each bracket's partner, by index, both ways; brackets without one are omitted."""
    partners, still_open = dict[int, int](), list[int]()
    for at, character in enumerate(plain):
        if character in _PARTNER:
            still_open.append(at)
        elif character in _BRACKETS and still_open and _PARTNER[plain[still_open[-1]]] == character:
            partners[at] = opening = still_open.pop()
            partners[opening] = at
    return partners


def unquoted(text: str) -> str:
    """Text in NFKC without quotes and marks around it; brackets and case are kept. Raises nothing.

    >>> unquoted("*(1, 2).*")
    '(1, 2)'
    """
    plain, start = nfkc(text), 0
    while start < len(plain) and plain[start] in _QUOTES_AND_STOPS and not _begins_decimal(plain, start):
        start += 1
    return plain[start:].rstrip(_QUOTES_AND_STOPS)
