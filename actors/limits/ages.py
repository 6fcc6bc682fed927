"""Which debate is the older one, as far as a process knows: by the first call of each that it was asked for."""

from __future__ import annotations

import re
from collections import OrderedDict

_KEPT = 100_000
"""Debates whose age is kept; one that has been quiet for longer than so many others counts as new."""

_ATTEMPT = re.compile(r"/\d+/")


class Ages:
    """Numbers debates as they come."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._known: OrderedDict[str, int] = OrderedDict()
        self._next = 1

    def of(self, debate: str) -> int:
        """A debate's number, less than that of every later one; 0 for a call of no debate."""
        if not debate:
            return 0
        age = self._known.get(debate)
        if age is None:
            age, self._next = self._next, self._next + 1
            self._known[debate] = age
            if len(self._known) > self._kept:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(debate)
        return age


def debate_of(step_key: str) -> str:
    """The debate of a step by its key, which is CASE/ATTEMPT/PATH.

    Cases whose ids go on alike after such a number count as one debate; nothing but the order of calls hangs on it.

    >>> debate_of("case-1/0/opening/agent/0"), debate_of("a probe")
    ('case-1/0', 'a probe')
    """
    found = _ATTEMPT.search(step_key)
    return step_key if found is None else step_key[: found.end() - 1]
