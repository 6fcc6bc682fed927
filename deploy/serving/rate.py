"""How soon a place falls free: from how fast debates have ended lately."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

_KEPT = 256
_LATELY_S = 60.0
_UNKNOWN_S = 5.0
_LONGEST_S = 300.0


class EndingRate:
    """Ends of debates in the order they came.

    Args:
        clock: seconds, never going back.

    >>> now = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> rate = EndingRate(lambda: next(now))
    >>> rate.ended(); rate.ended(); rate.ended()
    >>> rate.seconds_until(2)
    2.0
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ends: deque[float] = deque(maxlen=_KEPT)

    def ended(self) -> None:
        """One more has ended."""
        self._ends.append(self._clock())

    def seconds_until(self, count: int) -> float:
        """Seconds until so many more will have ended, at the rate of the last ends; at most five minutes.

        Only ends of the last minute count: a quiet time before them says nothing of how fast debates end.
        """
        now = self._clock()
        while self._ends and now - self._ends[0] > _LATELY_S:
            self._ends.popleft()
        if len(self._ends) < 2:
            return _UNKNOWN_S
        spent = now - self._ends[0]
        per_second = len(self._ends) / spent if spent > 0 else float("inf")
        return min(_LONGEST_S, count / per_second)
