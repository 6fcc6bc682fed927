"""A circuit breaker: an endpoint that fails for everyone is left alone for a while, and tried with single calls."""

from __future__ import annotations

import structlog

_log = structlog.get_logger(__name__)

TRIPS_AFTER = 12
"""Failures in a row, over all holders, without a single reply in between."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0


class Breaker:
    """Watches one endpoint, and says once when it is given up and once when it is back.

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
        """Learn what came back: replies of whatever kind from a server that works, and failures that are the endpoint's
        own (no connection, no reply in time, 5xx)."""
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
        """Whether the endpoint has been given up."""
        return self._next_try is not None

    @property
    def down_s(self) -> float:
        """Seconds from giving the endpoint up to the last call that failed there; 0 while it works."""
        return 0.0 if self._next_try is None else self._failed_at - self._down_since

    def next_try_in(self, now: float) -> float:
        """Seconds until a call may try the endpoint; 0 while it works."""
        return 0.0 if self._next_try is None else max(0.0, self._next_try - now)
