"""Call queue of one process to one endpoint: waiting calls, calls in flight, and permits."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from moot.actors.limits.envelopes import EndpointGrant, EndpointReport
from moot.actors.limits.settings import PERMIT_TTL_S, EndpointLimits

_AHEAD_S = 0.25
"""Prefetch horizon in seconds: as many permits are requested ahead as calls started within this time."""

_REPORT_S = 0.5

CallOutcome = Literal["answered", "limited", "broken", "refused", "cancelled", "unused"]
"""Outcome of a call: a reply; 429; a failure of the endpoint; another error of the server; cancelled; never started."""


@dataclass(frozen=True, slots=True)
class CallDemand:
    """Upper bounds of a call's use.

    Attributes:
        tokens: estimate of its prompt and completion tokens, for the rate.
        budgets: upper bounds by budget, `usd` or `tokens`; empty without budgets.
        debate: id of its debate; empty for a call of none.
    """

    tokens: int = 0
    budgets: Mapping[str, float] = field(default_factory=dict)
    debate: str = ""


class Admission:
    """Admission of one call, until it has ended."""

    __slots__ = ("_lease", "_need", "_queue", "_started_at")

    def __init__(self, queue: CallQueue, need: CallDemand, lease: int, started_at: float) -> None:
        self._queue, self._need, self._lease, self._started_at = queue, need, lease, started_at

    def end(
        self,
        how: CallOutcome,
        *,
        tokens: int | None = None,
        spent: Mapping[str, float] | None = None,
        drained: bool = False,
        error: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        """End the call.

        Args:
            how: its outcome.
            tokens: tokens used as the server reports them; None when it does not.
            spent: by budget; None when unknown, so that the whole reservation counts as spent.
            drained: whether the reply's headers say that the server's own limits are used up.
            error: message of a failure.
            retry_after_s: wait requested by a server that refused; None when it requested none.
        """
        queue = self._queue
        queue.follow(how, retry_after_s)
        queue.ended(how, self._started_at, drained, error, retry_after_s or 0.0)
        if how == "unused":
            queue.give_back(self._lease, self._need)
            spent = {}
        elif tokens is not None:
            queue.correct(self._lease, self._need, tokens)
        queue.finish(self._need, self._need.budgets if spent is None else spent)


class _Lease:
    __slots__ = ("expires_at", "number", "requests", "tokens")

    def __init__(self, number: int, requests: int, tokens: int, expires_at: float) -> None:
        self.number, self.requests, self.tokens, self.expires_at = number, requests, tokens, expires_at


class WaitingCall(NamedTuple):
    """A call that waits for admission."""

    age: int
    need: CallDemand
    waiter: asyncio.Future[Admission]


def _age(waiting: WaitingCall) -> int:
    return waiting.age


class CallQueue:
    """Priority queue of calls to one endpoint, ordered by the age of the debate, then by arrival.

    A run that is stopped early, by its user or by a budget, therefore has whole debates, not a part of each.

    Args:
        endpoint: its name.
        limits: its bounds.
        clock: monotonic seconds.
        finish: called when a call has ended, with its demand and its spending by budget.
    """

    def __init__(
        self,
        endpoint: str,
        limits: EndpointLimits,
        clock: Callable[[], float],
        finish: Callable[[CallDemand, Mapping[str, float]], None],
    ) -> None:
        self.endpoint = endpoint
        self._clock, self.finish = clock, finish
        self._rated = limits.requests_per_min is not None or limits.tokens_per_min is not None
        self._most_tokens = limits.tokens_per_min
        self.waiting: list[WaitingCall] = []
        self._in_use = self._slots = self._cancelled = 0
        self._leases: deque[_Lease] = deque()
        self._starts: deque[float] = deque(maxlen=4096)
        self._asked_again_at = 0.0
        self._lowered = self._trial = False
        self._backpressure = Backpressure()
        self._reset_counters()

    def _reset_counters(self) -> None:
        self._fine = self._limited = self._broken = 0
        self._round_trips_s = 0.0
        self._drained = False
        self._asked_wait_s = 0.0
        self._error = ""
        self._unused: list[tuple[int, int, int]] = []
        self._corrections: dict[int, int] = {}
        self._has_changes = False

    def try_start(self, need: CallDemand) -> Admission | None:
        """Start a call with an available permit; None when there is none, or while the server is full."""
        now = self._clock()
        if self._in_use >= self._slots or now < self._backpressure.until:
            return None
        lease = 0
        if self._rated:
            found = self._permit(need, now)
            if found is None:
                return None
            lease = found
        self._in_use += 1
        if self._trial:
            self._slots = 0
        self._starts.append(now)
        return Admission(self, need, lease, now)

    def _permit(self, need: CallDemand, now: float) -> int | None:
        while self._leases and (self._leases[0].expires_at <= now or not self._leases[0].requests):
            old = self._leases.popleft()
            if old.requests or old.tokens:
                self._unused.append((old.number, old.requests, old.tokens))
                self._has_changes = True
        tokens = self._expected_tokens(need)
        for lease in self._leases:
            if lease.requests and lease.tokens >= tokens:
                lease.requests -= 1
                lease.tokens -= tokens
                return lease.number
        return None

    def _expected_tokens(self, need: CallDemand) -> int:
        return 0 if self._most_tokens is None else min(need.tokens, self._most_tokens)

    def wait(self, need: CallDemand, age: int = 0) -> asyncio.Future[Admission]:
        """Queue a call; `age` is the arrival number of its debate, lower for older debates."""
        waiter: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        insort(self.waiting, WaitingCall(age, need, waiter), key=_age)
        return waiter

    def drop_cancelled(self) -> None:
        """Drop a call whose caller was cancelled; entries go together, once they are the most."""
        self._cancelled += 1
        if 2 * self._cancelled > len(self.waiting):
            self.waiting = [each for each in self.waiting if not each.waiter.done()]
            self._cancelled = 0

    @property
    def has_room(self) -> bool:
        """Whether another call may be in flight."""
        return self._in_use < self._slots

    def ask_again_at(self, at: float) -> None:
        """Do not ask the limiter before then."""
        self._asked_again_at = max(self._asked_again_at, at)

    def first(self) -> CallDemand | None:
        """Demand of the first waiting call; None when none waits."""
        while self.waiting and self.waiting[0].waiter.done():
            del self.waiting[0]
        return self.waiting[0].need if self.waiting else None

    def admit_first(self, admission: Admission) -> None:
        """Start the first waiting call."""
        self.waiting.pop(0).waiter.set_result(admission)

    def refuse(self, budget: str, least: float, error: Exception) -> None:
        """Fail the calls that need at least `least` of a budget."""
        for _, need, waiter in self.waiting:
            if not waiter.done() and need.budgets.get(budget, 0.0) >= least:
                waiter.set_exception(error)

    def fail_all(self, error: Exception) -> None:
        """Fail every waiting call."""
        self.refuse("", 0.0, error)

    def ended(self, how: CallOutcome, started_at: float, drained: bool, error: str, asked_wait_s: float) -> None:
        """Record the end of a call."""
        self._in_use -= 1
        self._has_changes = True
        if how in ("answered", "refused"):
            self._fine += 1
            self._round_trips_s += self._clock() - started_at
        self._limited += how == "limited"
        self._broken += how == "broken"
        self._drained = self._drained or drained
        self._asked_wait_s = max(self._asked_wait_s, asked_wait_s)
        if how == "broken" or (how == "limited" and not self._error):
            self._error = error

    def follow(self, how: CallOutcome, retry_after_s: float | None) -> None:
        """Update backpressure by the outcome of a call."""
        if how == "limited":
            self._backpressure.refused(self._clock(), retry_after_s)
        elif how == "answered":
            self._backpressure.answered()

    def give_back(self, lease: int, need: CallDemand) -> None:
        """Return a permit that was not used."""
        if lease:
            self._unused.append((lease, 1, self._expected_tokens(need)))

    def correct(self, lease: int, need: CallDemand, tokens: int) -> None:
        """Correct the number of tokens that a call was estimated to use."""
        more = tokens - self._expected_tokens(need)
        if lease and more and self._most_tokens is not None:
            self._corrections[lease] = self._corrections.get(lease, 0) + more

    def wanted_budgets(self) -> dict[str, float]:
        """Upper bounds of what the waiting calls use, by budget."""
        wanted: dict[str, float] = {}
        for _, need, waiter in self.waiting:
            if not waiter.done():
                for name, amount in need.budgets.items():
                    wanted[name] = wanted.get(name, 0.0) + amount
        return wanted

    def due_at(self, heard_at: float) -> float:
        """Time at which the next report to the limiter is due; infinity when none is needed."""
        if self._lowered:
            return heard_at
        if self.first() is not None:
            return max(self._asked_again_at, self._backpressure.until)
        if self._in_use or self._slots or self._has_changes:
            return heard_at + _REPORT_S
        return float("inf")

    def report(self, now: float) -> EndpointReport | None:
        """The next report; None when there is nothing to report."""
        first = self.first()
        if first is None and not (self._in_use or self._slots or self._has_changes or self._lowered):
            return None
        self._lowered = False
        while self._starts and self._starts[0] + _AHEAD_S < now:
            self._starts.popleft()
        waiting = sum(not waiter.done() for *_, waiter in self.waiting)
        wanted = waiting + len(self._starts) if self._rated else waiting
        mean = sum(self._expected_tokens(need) for _, need, _ in self.waiting) / max(1, len(self.waiting))
        report = EndpointReport(
            endpoint=self.endpoint,
            in_use=self._in_use,
            waiting=waiting,
            wanted=wanted,
            first_tokens=self._expected_tokens(first) if first is not None else 0,
            wanted_tokens=int(mean * wanted),
            fine=self._fine,
            limited=self._limited,
            broken=self._broken,
            round_trips_s=self._round_trips_s,
            drained=self._drained,
            asked_wait_s=self._asked_wait_s,
            error=self._error,
            unused=self._unused,
            corrections=list(self._corrections.items()),
        )
        self._reset_counters()
        return report

    def take(self, grant: EndpointGrant, *, asked_at: float, now: float) -> None:
        """Apply a grant of the limiter. A permit's lifetime counts from before it was requested."""
        self._lowered = grant.slots < self._slots  # to be acknowledged: only then may others have them
        self._slots, self._trial = grant.slots, grant.trial
        self._asked_again_at = now + grant.again_in_s
        if grant.lease:
            self._leases.append(_Lease(grant.lease, grant.requests, grant.tokens, asked_at + PERMIT_TTL_S))


BEGINS, ENDS = 5, 5
"""Consecutive refusals after which a server counts as full, and consecutive replies after which it no longer does."""

_LONGEST_S, _UNTOLD_S = 60.0, 0.5


class Backpressure:
    """Backpressure of one endpoint on one process's calls. An occasional refusal delays only its own call."""

    def __init__(self) -> None:
        self._refused = self._answered = 0
        self._full = False
        self.until = 0.0

    def answered(self) -> None:
        """Record a reply."""
        self._refused = 0
        self._answered += 1
        if self._answered >= ENDS:
            self._full = False

    def refused(self, now: float, wait_s: float | None) -> None:
        """Record a refusal (429); `wait_s` is the wait that the server requested, None or 0 for none."""
        self._answered = 0
        self._refused += 1
        self._full = self._full or self._refused >= BEGINS
        if self._full:
            self.until = max(self.until, now + min(wait_s or _UNTOLD_S, _LONGEST_S))
