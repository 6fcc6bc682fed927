"""Degenerate repetition: a model that writes the same again and again until it is stopped."""

from __future__ import annotations

_MOST_UNIT = 200
"""Characters of what is repeated; a longer passage that comes again is not looked for."""

_LEAST_TIMES, _LEAST_LENGTH = 6, 240
"""So often, and over so many characters, the same must come without a break."""

_STEP = 64
"""Characters between the places that are looked at."""

_PROBE = 12
_TRIES = 4

SEEN_AT_ONCE = _MOST_UNIT * _LEAST_TIMES + _LEAST_LENGTH + _STEP
"""Characters at a text's end that are enough to find every repetition that has just become one."""


def is_repetitive(text: str) -> bool:
    """Whether a text holds one passage of at most 200 characters at least six times in a row, over 240 characters.

    Only exact repetition counts: a list whose items differ in a number is none. The time grows with the length.

    >>> is_repetitive("The claim is true. " * 20), is_repetitive("It rained on Monday, and the match was moved. ")
    (True, False)
    """
    return any(_runs_from(text, start) for start in range(0, max(0, len(text) - _LEAST_LENGTH + 1), _STEP))


def _runs_from(text: str, start: int) -> bool:
    """Whether a long enough repetition runs from this place."""
    probe, again = text[start : start + _PROBE], start
    for _ in range(_TRIES):
        again = text.find(probe, again + 1, start + _MOST_UNIT + _PROBE)
        if again < 0:
            return False
        unit = again - start
        end = start + max(_LEAST_LENGTH, _LEAST_TIMES * unit)
        if end <= len(text) and text[start : end - unit] == text[again:end]:
            return True
    return False
