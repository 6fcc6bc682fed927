"""How many requests may be under way at an endpoint: fixed by the user, or adapted to what the server takes."""

from __future__ import annotations

START = 16
MOST = 10_000
CUT = 0.85
LIMITED_SHARE = 0.2
"""Share of a round trip's replies that must be "too many requests" before the concurrency is cut: a lower one says that
the server is nearly full, which is where it should be."""

_LEAST_ROUND_S = 0.05


class Concurrency:
    """A bound that doubles while replies come (slow start), then grows slowly, and is cut at most once per round trip.

    Args:
        fixed: the user's own bound, which is never changed; None adapts.
    """

    def __init__(self, fixed: int | None = None) -> None:
        self._fixed = fixed
        self._bound = float(fixed or START)
        self._slow_start = True
        self._round_trip_s = 0.0
        self._since = 0.0
        self._fine = self._limited = 0
        self._full = False

    @property
    def bound(self) -> int:
        """Requests that may be under way."""
        return max(1, int(self._bound))

    def report(
        self, now: float, *, fine: int, limited: int, round_trip_s: float | None, demand: int, drained: bool
    ) -> None:
        """Learn what came back.

        Args:
            now: any clock, in seconds.
            fine: replies that were not "too many requests".
            limited: replies that were (429).
            round_trip_s: mean time of the replies; None when there were none.
            demand: requests under way, and calls that wait to be.
            drained: whether a reply's headers say that nothing is left of the server's own limits.
        """
        self._fine += fine
        self._limited += limited
        self._full = self._full or demand >= self.bound
        if round_trip_s is not None:
            known = self._round_trip_s
            self._round_trip_s = round_trip_s if not known else 0.7 * known + 0.3 * round_trip_s
        heard = self._fine + self._limited
        if self._fixed is not None or not heard or now < self._since + max(_LEAST_ROUND_S, self._round_trip_s):
            return
        if self._limited > LIMITED_SHARE * heard or drained:
            self._bound = max(1.0, min(self._bound, float(demand)) * CUT)
            self._slow_start = False
        elif self._full:
            self._bound = min(MOST, self._bound * 2 if self._slow_start else self._bound + max(1.0, self._bound / 20))
        self._since, self._fine, self._limited, self._full = now, 0, 0, False
