"""Concurrency limit of an endpoint, fixed by the user or adapted to the server, and its circuit breaker."""

from __future__ import annotations

import math

import structlog

_log = structlog.get_logger(__name__)

START = 32
MOST = 10_000
CUT = 0.85
LIMITED_SHARE = 0.2
"""Share of 429s in a round trip's replies above which the concurrency is cut. Below it the server is nearly full, which
is the goal."""

_SURE = 2.0
"""Standard deviations by which the 429s must exceed that share: few replies may contain many of them by chance."""

GROWTH, FASTER = 0.05, 0.02
"""Growth rate of the concurrency in the first round trip after a cut, and its increment in each further one: after a
passing overload the concurrency recovers."""

_LEAST_ROUND_S, _UNKNOWN_ROUND_S = 0.05, 1.0
_ENOUGH = 10
"""Least number of replies over which the share is computed."""


def _most_by_chance(replies: int) -> float:
    """Most 429s among `heard` replies that a share of `LIMITED_SHARE` still explains."""
    return LIMITED_SHARE * replies + _SURE * math.sqrt(LIMITED_SHARE * (1.0 - LIMITED_SHARE) * replies)


class ConcurrencyLimit:
    """Adaptive concurrency limit: doubles with each round trip, grows slowly after a cut, is cut at most once in two.

    Two, because a refusal arrives at once and a reply after a round trip: over a single one, the share of refusals
    would be overestimated.

    Args:
        fixed: the user's bound, which never changes; None adapts.
    """

    def __init__(self, fixed: int | None = None) -> None:
        self._fixed = fixed
        self._bound = float(fixed or START)
        self._growth = 1.0
        self._round_trip_s = 0.0
        self._since: float | None = None
        self._fine = self._limited = 0
        self._full = False
        self._demand = 0

    @property
    def bound(self) -> int:
        """Most requests in flight."""
        return max(1, int(self._bound))

    def report(
        self, now: float, *, fine: int, limited: int, round_trip_s: float | None, demand: int, drained: bool
    ) -> None:
        """Adapt to the replies since the last report.

        Args:
            now: any clock, in seconds.
            fine: replies that were not "too many requests".
            limited: replies that were (429).
            round_trip_s: mean time of the replies; None when there were none.
            demand: requests in flight, and calls that wait.
            drained: whether a reply's headers say that nothing is left of the server's own limits.
        """
        self._fine += fine
        self._limited += limited
        self._demand = max(self._demand, demand)
        self._full = self._full or demand >= self.bound
        if round_trip_s is not None:
            known = self._round_trip_s
            self._round_trip_s = round_trip_s if not known else 0.7 * known + 0.3 * round_trip_s
        replies = self._fine + self._limited
        if self._since is None:
            self._since = now
        round_s = max(_LEAST_ROUND_S, self._round_trip_s or _UNKNOWN_ROUND_S)
        if self._fixed is not None or replies < min(_ENOUGH, self.bound) or now < self._since + round_s:
            return
        if drained or self._limited > _most_by_chance(replies):
            if now < self._since + 2 * round_s:
                return
            self._bound = max(1.0, min(self._bound, float(self._demand)) * CUT)
            self._growth = GROWTH
        elif self._full:
            self._bound = min(MOST, self._bound + max(1.0, self._bound * self._growth))
            self._growth = min(1.0, self._growth + FASTER)
        self._since, self._fine, self._limited, self._full, self._demand = now, 0, 0, False, 0


TRIPS_AFTER = 12
"""Failures in a row, over all holders, without a single reply in between."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0


class CircuitBreaker:
    """Circuit breaker of one endpoint; logs once when it opens and once when it closes.

    Args:
        endpoint: its name, for the log.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._in_a_row = 0
        self._pause_s = FIRST_PAUSE_S
        self._next_try: float | None = None
        self._down_since = self._failed_at = 0.0

    def report(self, now: float, *, replies: int, broken: int, error: str = "") -> None:
        """Note replies of any kind from a server that works, and failures of the endpoint (no connection, no reply in
        time, 5xx)."""
        if replies:
            if self._next_try is not None:
                down_s = round(now - self._down_since)
                _log.warning("the endpoint answers again", endpoint=self._endpoint, down_s=down_s)
            self._in_a_row, self._pause_s, self._next_try = 0, FIRST_PAUSE_S, None
            return
        self._in_a_row += broken
        if broken:
            self._failed_at = now
        if self._next_try is None and self._in_a_row >= TRIPS_AFTER:
            self._down_since, self._next_try = now, now + self._pause_s
            _log.warning(
                "the endpoint fails for everyone; calls wait while single ones try it",
                endpoint=self._endpoint,
                failures=self._in_a_row,
                error=error,
            )

    def admits(self, now: float, wanted: int) -> int:
        """How many of the wanted calls may start: all, none during a pause, one after each pause."""
        if self._next_try is None or not wanted:
            return wanted
        if now < self._next_try:
            return 0
        self._pause_s = min(LONGEST_PAUSE_S, self._pause_s * 2)
        self._next_try = now + self._pause_s
        return 1

    @property
    def is_open(self) -> bool:
        """Whether the breaker is open: calls wait while single ones try the endpoint."""
        return self._next_try is not None

    @property
    def down_s(self) -> float:
        """Seconds from opening to the last call that failed there; 0 while the endpoint works."""
        return 0.0 if self._next_try is None else self._failed_at - self._down_since

    def next_try_in(self, now: float) -> float:
        """Seconds until a call may try the endpoint; 0 while it works."""
        return 0.0 if self._next_try is None else max(0.0, self._next_try - now)
