"""Rate limits: a sliding window, for permits that are used some time after their grant, and a token bucket."""

from __future__ import annotations

from collections import deque

from moot.actors.limits.settings import PERMIT_TTL_S, WINDOW_S


class _Entry:
    __slots__ = ("amount", "at", "number")

    def __init__(self, at: float, number: int, amount: int) -> None:
        self.at, self.number, self.amount = at, number, amount


class SlidingWindow:
    """Sliding-window rate limit: grants at most `limit` in any window of `span_s` seconds of use.

    A permit may be used until `ttl_s` after its grant, so a grant counts for `span_s + ttl_s`: whatever is used within
    a window was granted within that time. Permits of a dead holder may have been used and are not returned.

    Args:
        limit: most that may be used in a window.
        span_s: length of the window.
        ttl_s: lifetime of an unused permit.
    """

    def __init__(self, limit: int, span_s: float, ttl_s: float) -> None:
        self.limit = limit
        self._counts_s = span_s + ttl_s
        self._entries: deque[_Entry] = deque()
        self._by_number: dict[int, _Entry] = {}
        self._granted = 0

    def left(self, now: float) -> int:
        """Amount that may be granted now; negative after more was used than estimated."""
        while self._entries and self._entries[0].at + self._counts_s <= now:
            expired = self._entries.popleft()
            self._granted -= expired.amount
            self._by_number.pop(expired.number, None)
        return self.limit - self._granted

    def grant(self, now: float, number: int, amount: int) -> None:
        """Count `amount` under the grant's `number`; the caller has checked `left`."""
        if amount <= 0:
            return
        entry = _Entry(now, number, amount)
        self._entries.append(entry)
        self._by_number[number] = entry
        self._granted += amount

    def correct(self, number: int, by: int) -> None:
        """Change a grant that still counts: negative for what its holder never used, positive for what it used
        beyond."""
        entry = self._by_number.get(number)
        if entry is not None:
            by = max(by, -entry.amount)
            entry.amount += by
            self._granted += by

    def free_in(self, now: float, amount: int) -> float:
        """Seconds until `amount`, at most the limit, may be granted; 0 when it may be now."""
        missing = min(amount, self.limit) - self.left(now)
        if missing <= 0:
            return 0.0
        for entry in self._entries:
            missing -= entry.amount
            if missing <= 0:
                return max(0.0, entry.at + self._counts_s - now)
        return self._counts_s


class TokenBucket:
    """Token bucket with a capacity of one second's worth of a rate, at least 1.

    A single need above the capacity is granted when the bucket is full, and leaves a debt.

    Args:
        limit: amount per window.
        window_s: seconds in which the limit refills.
        now: any clock, in seconds.
        empty: whether it starts empty, because the last second may have been used.
    """

    def __init__(self, limit: float, window_s: float, now: float, *, empty: bool) -> None:
        self._per_s = limit / window_s
        self._size = max(1.0, self._per_s)
        self._level, self._at = 0.0 if empty else self._size, now

    def left(self, now: float, least: int) -> int:
        """Amount that may be granted now to a caller that needs at least `least`; `least` itself when the bucket is
        full."""
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


class RateLimit:
    """Rate limit of an endpoint: bounded in any window, and spread evenly over it.

    Args:
        limit: amount per window.
        now: any clock, in seconds.
        resumed: whether the last second may have been used.
    """

    def __init__(self, limit: int, now: float, *, resumed: bool) -> None:
        self.limit = limit
        self._window = SlidingWindow(limit, WINDOW_S, PERMIT_TTL_S)
        self._pace = TokenBucket(limit, WINDOW_S + PERMIT_TTL_S, now, empty=resumed)

    def left(self, now: float, least: int) -> int:
        """Amount that may be granted now to a caller that needs at least `least`."""
        return min(self._window.left(now), self._pace.left(now, least))

    def grant(self, now: float, lease: int, amount: int) -> None:
        """Count a grant; the caller has checked `left`."""
        self._window.grant(now, lease, amount)
        self._pace.take(amount)

    def use_up(self, now: float, lease: int) -> None:
        """Count the whole window as granted."""
        self._window.grant(now, lease, self.limit)

    def correct(self, lease: int, by: int) -> None:
        """Change a grant: negative for what was never used, positive for what was used beyond."""
        self._window.correct(lease, by)
        self._pace.take(by)

    def free_in(self, now: float, least: int) -> float:
        """Seconds until `least` may be granted, as of the last call of `left`."""
        return max(self._window.free_in(now, least), self._pace.free_in(least))
