"""One model's server as the limiter guards it, in simulated time."""

from __future__ import annotations

from bisect import insort
from operator import itemgetter

from moot.actors.limits.concurrency import MOST, Concurrency
from moot.actors.limits.gate import HEARTBEAT_S
from moot.actors.limits.settings import PERMIT_TTL_S, WINDOW_S
from moot.actors.limits.window import Pace
from moot.deploy.planning.scenario import Scenario

_WAITING_REPORT_S = 0.1
_LEAST_WAIT_S = 1e-6

Ask = tuple[int, int]
"""A call: the place of its debate, and its number there."""


class Endpoint:
    """Admits calls, those of the oldest debate first, by the limiter's own rules.

    Args:
        scenario: the bounds.

    Attributes:
        waiting: calls that wait for leave.
        in_use: calls under way.
        wake_at: when the first one that waits is to be tried again; infinity when an end will do.
        until_woken: whether it cannot start before that, whatever ends.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._shrunk = scenario.shrunk
        refill_s = (WINDOW_S + PERMIT_TTL_S) * scenario.shrunk
        self._requests, self._tokens = (
            None if limit is None else Pace(limit, refill_s, 0.0, empty=False) for limit in (scenario.rpm, scenario.tpm)
        )
        self._most_tokens = scenario.tpm or 0
        self._adapting = Concurrency() if scenario.concurrency is None and scenario.adapts else None
        self._bound = max(1.0, (scenario.concurrency or MOST) / scenario.shrunk)
        if scenario.concurrency is None and not scenario.adapts:
            self._bound = float("inf")
        self.waiting: list[Ask] = []
        self.in_use = 0
        self.wake_at, self.until_woken = float("inf"), False
        self._ended, self._round_trips_s, self._report_at = 0, 0.0, 0.0

    def wait(self, ask: Ask) -> None:
        """Queue a call; places number debates as they are opened."""
        insort(self.waiting, ask, key=itemgetter(0))

    @property
    def bound(self) -> float:
        """Calls that may be under way."""
        if self._adapting is None:
            return self._bound
        return max(1.0, self._adapting.bound / self._shrunk)

    def admits(self, now: float, requests: int, reserved: int) -> bool:
        """Whether the first call that waits may start now; if so it is under way. If not, `wake_at` says when."""
        self.wake_at, self.until_woken = float("inf"), False
        if self.in_use + 1 > self.bound:
            if self._adapting is not None:
                self._report(now)
                self.wake_at = now + _WAITING_REPORT_S
            return False
        reserved = min(reserved, self._most_tokens)
        for pace, need in ((self._requests, requests), (self._tokens, reserved)):
            if pace is not None and pace.left(now, need) < need:
                self.wake_at = now + max(_LEAST_WAIT_S, pace.free_in(need))
                self.until_woken = pace is self._requests
                return False
        if self._requests is not None:
            self._requests.take(requests)
        if self._tokens is not None:
            self._tokens.take(reserved)
        self.in_use += 1
        return True

    def end(self, now: float, busy_s: float, reserved: int, used: int) -> None:
        """A call has ended; what it used is counted instead of what it had reserved."""
        self.in_use -= 1
        if self._tokens is not None:
            self._tokens.take(used - min(reserved, self._most_tokens))
        if self._adapting is not None:
            self._ended += 1
            self._round_trips_s += busy_s
            self._report(now)

    def _report(self, now: float) -> None:
        if self._adapting is None or now < self._report_at:
            return
        self._adapting.report(
            now,
            fine=self._ended,
            limited=0,
            round_trip_s=self._round_trips_s / self._ended if self._ended else None,
            demand=int((self.in_use + len(self.waiting)) * self._shrunk),
            drained=False,
        )
        self._ended, self._round_trips_s = 0, 0.0
        self._report_at = now + (_WAITING_REPORT_S if self.waiting else HEARTBEAT_S)
