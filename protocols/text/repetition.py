"""Detection of degenerate repetition in a model's output."""

from __future__ import annotations

_MOST_UNIT = 200
"""Most characters of a repeated passage; longer ones are not detected."""

_LEAST_TIMES, LEAST_LENGTH = 6, 240
"""Least repetitions, and least total characters, without a break."""

_STEP = 64
"""Characters between the examined positions."""

_PROBE = 12
"""Characters that are searched first: prose rarely repeats so many soon."""

SEEN_AT_ONCE = _MOST_UNIT * _LEAST_TIMES + LEAST_LENGTH + _STEP
"""Characters at a text's end that suffice to detect every new repetition."""


def is_repetitive(text: str) -> bool:
    """Whether a text repeats one passage of at most 200 characters at least six times in a row, over 240 characters.

    Only exact repetition counts: a list whose items differ in a number is none. The time grows with the length.

    >>> is_repetitive("The claim is true. " * 20), is_repetitive("It rained on Monday, and the match was moved. ")
    (True, False)
    """
    find = text.find  # a call for each place would take twice as long: whole records are looked through
    for start in range(0, max(0, len(text) - LEAST_LENGTH + 1), _STEP):
        again = find(text[start : start + _PROBE], start + 1, start + _MOST_UNIT + _PROBE)
        if again >= 0 and _runs_from(text, start):
            return True
    return False


def _runs_from(text: str, start: int) -> bool:
    """Whether a long enough repetition starts at this index."""
    # A run is longer than its unit and the longest unit together: the first place at which as much as the longest unit
    # comes again is one period away, and the shortest one.
    again = text.find(text[start : start + _MOST_UNIT], start + 1, start + 2 * _MOST_UNIT)
    if again < 0:
        return False
    unit = again - start
    end = start + max(LEAST_LENGTH, _LEAST_TIMES * unit)
    return end <= len(text) and text[start : end - unit] == text[again:end]
