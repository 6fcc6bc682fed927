"""A rate spread evenly: servers count in seconds what they promise by the minute."""

from __future__ import annotations


class Pace:
    """A bucket that holds one second's worth of a rate, at least 1, and is refilled all the time.

    A single need above what it holds passes when the bucket is full, and is paid off afterwards.

    Args:
        limit: of a window.
        window_s: within which the limit is refilled.
        now: any clock, in seconds.
        empty: whether it starts empty, for the second before may have been used.
    """

    def __init__(self, limit: float, window_s: float, now: float, *, empty: bool) -> None:
        self._per_s = limit / window_s
        self._size = max(1.0, self._per_s)
        self._level, self._at = 0.0 if empty else self._size, now

    def left(self, now: float, least: int) -> int:
        """What may be granted now to who needs `least` at least; `least` itself when the bucket is full."""
        self._level = min(self._size, self._level + max(0.0, now - self._at) * self._per_s)
        self._at = max(self._at, now)
        left = int(self._level + 1e-9)
        return least if left < least and self._level >= self._size else left

    def take(self, amount: int) -> None:
        """Count what was granted."""
        self._level -= amount

    def free_in(self, least: int) -> float:
        """Seconds until `least` may be granted, as of the last call of `left`."""
        return max(0.0, (min(float(least), self._size) - self._level) / self._per_s)
