"""Limiter client: admits the calls of one process. Most start at once, with permits leased in advance."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from uuid import uuid4

from moot.actors.limits.call_queue import Admission, CallDemand, CallQueue
from moot.actors.limits.envelopes import BudgetTotals, EndpointReport, Grant, UsageReport
from moot.actors.limits.settings import EndpointLimits

HEARTBEAT_S = 0.5
"""Seconds between two reports of a process with calls in flight."""

SPACING_S = 0.01
"""Least seconds between two exchanges: concurrent calls share one."""

_LAST_WORD_S = 2.0
_SHORT_OF_S = 0.1
"""Seconds until budget that others have reserved is requested again."""

GIVE_UP_S = 300.0
"""Seconds without any reply of an endpoint after which a run stops; it can be resumed when the server works again."""

Exchange = Callable[[UsageReport], Awaitable[Grant]]


class BudgetSpent(Exception):
    """A call may never start, because the run's budget is used up; `str()` joins the arguments with blanks.

    Args:
        budget: `usd` or `tokens`.
        needed: upper bound of the call's use.
        left: what is left of it.
    """

    kind = "budget"

    def __init__(self, budget: str, needed: float, left: float) -> None:
        super().__init__(budget, needed, left)

    def __str__(self) -> str:
        budget, needed, left = self.args
        return f"{budget} {needed!r} {left!r}"


class EndpointDown(Exception):
    """A call failed because its endpoint has given no reply for `GIVE_UP_S`; `str()` is the endpoint."""

    kind = "endpoint_down"


class LimiterGone(Exception):
    """A call cannot be admitted because the limiter is unreachable; `str()` says why."""

    kind = "limiter_gone"


class Draining(Exception):
    """A call may not start because the run is stopping."""

    kind = "drain"


class LimiterClient:
    """Client of the limiter: admits the calls of one process. Runs in one event loop.

    Args:
        limits: by endpoint, as the limiter has them.
        budgets: names of the budgets that have a cap.
        exchange: sends a report to the limiter.
        clock: monotonic seconds.

    Attributes:
        budgets: as above.
        holder: this client's id at the limiter.
    """

    def __init__(
        self,
        limits: Mapping[str, EndpointLimits],
        budgets: Collection[str],
        exchange: Exchange,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits, self._exchange, self._clock = limits, exchange, clock
        self.budgets = frozenset(budgets)
        self.holder = uuid4().hex
        self._queues: dict[str, CallQueue] = {}
        self._ages = ArrivalOrder()
        self._idle = dict.fromkeys(budgets, 0.0)
        self._in_flight = dict.fromkeys(budgets, 0.0)
        self._spent = dict.fromkeys(budgets, 0.0)
        self._wake = asyncio.Event()
        self._exchanging: asyncio.Task[None] | None = None
        self._heard_at = 0.0
        self._reports = 0
        self._refusal: LimiterGone | Draining | None = None
        self._least: dict[str, float] = {}

    async def admit(self, endpoint: str, need: CallDemand) -> Admission:
        """Wait until a call may start; the caller calls `end` on the returned admission.

        Raises:
            BudgetSpent: the budget can never cover it.
            EndpointDown: the endpoint has failed for too long.
            LimiterGone: the limiter is unreachable.
            Draining: the run is stopping.
        """
        if self._refusal is not None:
            raise self._refusal
        queue = self._queue(endpoint)
        age = self._ages.of(need.debate)
        if not queue.waiting and self._affords(need) and (admission := queue.try_start(need)):
            self._reserve_for(need)
            return admission
        waiter = queue.wait(need, age)
        self._start_exchanging()
        try:
            return await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled() and waiter.exception() is None:
                waiter.result().end("unused")
            queue.drop_cancelled()
            raise

    def drain(self) -> None:
        """Start no further calls; waiting ones are refused."""
        self._refuse_all(Draining())

    async def close(self) -> None:
        """Stop exchanging with the limiter; with budgets, after a last report of usage."""
        if self._exchanging is None:
            return
        self._exchanging.cancel()
        await asyncio.gather(self._exchanging, return_exceptions=True)
        if self.budgets:
            with suppress(Exception):  # it may be gone; its ledger then decides
                async with asyncio.timeout(_LAST_WORD_S):
                    await self._exchange(self._report([]))

    def _queue(self, endpoint: str) -> CallQueue:
        known = self._queues.get(endpoint)
        if known is None:
            limits = self._limits.get(endpoint, EndpointLimits())
            known = self._queues[endpoint] = CallQueue(endpoint, limits, self._clock, self._end)
        return known

    def _affords(self, need: CallDemand) -> bool:
        return all(need.budgets.get(name, 0.0) <= idle for name, idle in self._idle.items())

    def _reserve_for(self, need: CallDemand) -> None:
        for name in self._idle:
            amount = need.budgets.get(name, 0.0)
            self._idle[name] -= amount
            self._in_flight[name] += amount

    def _end(self, need: CallDemand, spent: Mapping[str, float]) -> None:
        """End a call: the unspent part of its reservation is free for the next one."""
        for name in self._idle:
            amount = need.budgets.get(name, 0.0)
            used = spent.get(name, 0.0)
            self._in_flight[name] -= amount
            self._idle[name] += amount - used
            self._spent[name] += used
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        for queue in self._queues.values():
            while (need := queue.first()) is not None and self._affords(need):
                admission = queue.try_start(need)
                if admission is None:
                    break
                self._reserve_for(need)
                queue.admit_first(admission)

    def _start_exchanging(self) -> None:
        self._wake.set()
        if self._exchanging is None:
            self._exchanging = asyncio.create_task(self._keep_exchanging())

    async def _keep_exchanging(self) -> None:
        try:
            while True:
                await self._until_due()
                await self._exchange_once()
        except Exception as error:
            self._refuse_all(LimiterGone(f"{type(error).__name__}: {error}"))

    def _refuse_all(self, why: LimiterGone | Draining) -> None:
        self._refusal = why
        for queue in self._queues.values():
            queue.fail_all(why)

    async def _until_due(self) -> None:
        """Wait until there is something to request or to report."""
        while True:
            self._wake.clear()
            now = self._clock()
            due_at = min((q.due_at(self._heard_at) for q in self._queues.values()), default=float("inf"))
            if any(idle > 0.0 for idle in self._idle.values()):
                due_at = min(due_at, self._heard_at + HEARTBEAT_S)
            delay = max(due_at, self._heard_at + SPACING_S) - now
            if delay <= 0.0:
                return
            try:
                async with asyncio.timeout(None if delay == float("inf") else delay):
                    await self._wake.wait()
            except TimeoutError:
                return

    async def _exchange_once(self) -> None:
        now = self._clock()
        endpoints = [each for queue in self._queues.values() if (each := queue.report(now)) is not None]
        report = self._report(endpoints)
        grant = await self._exchange(report)
        self._heard_at = self._clock()
        for name, amount in grant.reserved.items():
            self._idle[name] += amount
        for given in grant.endpoints:
            queue = self._queues[given.endpoint]
            queue.take(given, asked_at=now, now=self._heard_at)
            if given.down_s > GIVE_UP_S:
                queue.fail_all(EndpointDown(given.endpoint))
        self._admit_waiting()
        if grant.exhausted:
            self._refuse(grant.exhausted, grant.left)
        elif any(each.wanted for each in report.budgets.values()) and not grant.reserved:
            for queue in self._queues.values():
                queue.ask_again_at(self._heard_at + _SHORT_OF_S)

    def _report(self, endpoints: list[EndpointReport]) -> UsageReport:
        self._reports += 1
        return UsageReport(self.holder, endpoints, self._totals(), self._reports)

    def _totals(self) -> dict[str, BudgetTotals]:
        """Totals of every budget; reservations that no call in flight needs are released."""
        wanted: defaultdict[str, float] = defaultdict(float)
        least: dict[str, float] = {}
        self._least = least
        for queue in self._queues.values():
            if not queue.has_room:
                continue  # the budget could not be used, and another endpoint's call might wait for it
            for name, amount in queue.wanted_budgets().items():
                wanted[name] += amount
            first = queue.first()
            for name, amount in (first.budgets if first is not None else {}).items():
                least[name] = min(amount, least.get(name, amount))
        totals = {}
        for name in self._idle:
            self._idle[name] = 0.0
            totals[name] = BudgetTotals(
                reserved=self._in_flight[name],
                spent=self._spent[name],
                wanted=wanted[name],
                least=least.get(name, 0.0),
            )
        return totals

    def _refuse(self, budget: str, left: float) -> None:
        """Refuse every waiting call that needs at least what the limiter could not reserve."""
        least = self._least[budget]
        for queue in self._queues.values():
            queue.refuse(budget, least, BudgetSpent(budget, least, left))


_KEPT = 100_000
"""Debates whose number is cached, evicted by least recent use; an evicted one counts as new."""


class ArrivalOrder:
    """Numbers debates in order of arrival."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._known: OrderedDict[str, int] = OrderedDict()
        self._next = 1

    def of(self, debate: str) -> int:
        """A debate's number, lower than that of every later one; 0 for a call of no debate."""
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
