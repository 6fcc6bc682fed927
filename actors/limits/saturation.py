"""Whether a server refuses calls because it is full, and until when nobody of this process is to ask it."""

from __future__ import annotations

BEGINS, ENDS = 5, 5
"""Refusals in a row that say that a server is full, and replies in a row that say that it no longer is."""

_LONGEST_S, _UNTOLD_S = 60.0, 0.5


class Saturation:
    """Follows the calls of one process to one endpoint. A refusal now and then holds nobody back but its own call."""

    def __init__(self) -> None:
        self._refused = self._answered = 0
        self._full = False
        self.until = 0.0

    def answered(self) -> None:
        """A call was answered."""
        self._refused = 0
        self._answered += 1
        if self._answered >= ENDS:
            self._full = False

    def refused(self, now: float, wait_s: float | None) -> None:
        """A call was refused (429); `wait_s` is what the server said to wait, None or 0 when it said nothing of use."""
        self._answered = 0
        self._refused += 1
        self._full = self._full or self._refused >= BEGINS
        if self._full:
            self.until = max(self.until, now + min(wait_s or _UNTOLD_S, _LONGEST_S))
