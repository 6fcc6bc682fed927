"""Limiter: grants the rates, concurrency and budgets of a run, in fair shares, to all its processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import structlog

from moot.actors.limits.budget_account import BudgetAccount
from moot.actors.limits.concurrency import CircuitBreaker, ConcurrencyLimit
from moot.actors.limits.envelopes import (
    BudgetState,
    BudgetTotals,
    EndpointGrant,
    EndpointReport,
    EndpointState,
    Grant,
    LimiterState,
    UsageReport,
)
from moot.actors.limits.fair_share import fair_share
from moot.actors.limits.rates import RateLimit
from moot.actors.limits.settings import EndpointLimits
from moot.actors.models.openai_errors import LONG_WAIT_S

_log = structlog.get_logger(__name__)

DEAD_AFTER_S = 15.0
"""Seconds without a report after which a holder's slots are granted to others. Live holders report twice a second."""

_MEMORY_S = 1.5
"""Seconds within which every live holder has reported to a restarted limiter."""

_SOON_S = 0.1
"""Seconds after which to ask again for what others have: they release it with their next report."""


class _Holder:
    """State of one holder at one endpoint."""

    __slots__ = ("demand", "heard_at", "leased", "slots", "waiting")

    def __init__(self) -> None:
        self.slots = self.leased = self.demand = self.waiting = 0
        self.heard_at = 0.0


class _Endpoint:
    """State of one endpoint: a model of a server."""

    def __init__(self, name: str, limits: EndpointLimits, now: float, *, resumed: bool) -> None:
        self.concurrency = ConcurrencyLimit(limits.concurrency)
        self.breaker = CircuitBreaker(name)
        self.requests, self.tokens = (
            None if limit is None else RateLimit(limit, now, resumed=resumed)
            for limit in (limits.requests_per_min, limits.tokens_per_min)
        )
        self.holders: dict[str, _Holder] = {}
        self._name = name
        self._wait_until = self._told_until = -math.inf
        self.long_waits, self.wait_error = 0, ""

    def learn_wait(self, now: float, report: EndpointReport) -> None:
        """Learn the long wait that the server requests, and log it once until it is over."""
        if report.fine:
            self._wait_until = now
        if report.asked_wait_s < LONG_WAIT_S:
            return
        self._wait_until = now + report.asked_wait_s
        if now >= self._told_until:
            self._told_until = self._wait_until
            self.long_waits, self.wait_error = self.long_waits + 1, report.error
            _log.info("the server asks to wait", endpoint=self._name, error=report.error)

    def asked_wait_s(self, now: float) -> float | None:
        """Seconds left of the wait that the server requested; None without one."""
        return self._wait_until - now if now < self._wait_until else None

    def give_back(self, lease: int, requests: int, tokens: int) -> None:
        """Return permits that were granted and not used; negative for use beyond the grant."""
        for rate, amount in ((self.requests, requests), (self.tokens, tokens)):
            if rate is not None:
                rate.correct(lease, -amount)


class Limiter:
    """Limiter of a run. A plain class: every call returns at once.

    Args:
        limits: by endpoint; an endpoint without an entry has only the adaptive concurrency limit.
        accounts: by budget.
        clock: monotonic seconds.
        restarted: whether another limiter of the same session may have granted just before: the first window then
            counts as used up.
        resumed: whether the run has had another session. That session kept to the same rate, so continuing at that rate
            keeps to the limit over both.
    """

    def __init__(
        self,
        limits: Mapping[str, EndpointLimits],
        accounts: Mapping[str, BudgetAccount],
        *,
        clock: Callable[[], float],
        restarted: bool = False,
        resumed: bool = False,
    ) -> None:
        self._limits, self.accounts = dict(limits), dict(accounts)
        self._clock, self._restarted, self._began = clock, restarted, clock()
        self._resumed = resumed
        self._endpoints: dict[str, _Endpoint] = {}
        self._leases = 0
        # A holder with reservations in the ledger that never reports again died with or before the limiter that wrote
        # it.
        self._heard = {holder: self._began for account in accounts.values() for holder in account.totals()}

    def exchange(self, report: UsageReport) -> Grant:
        """Process a report and grant what can be granted."""
        now = self._clock()
        self._heard[report.holder] = now
        reserved, exhausted, left = self._reserve(report, now)
        grants = [self._grant(report.holder, each, now) for each in report.endpoints]
        return Grant(grants, reserved, exhausted, left)

    def state(self) -> LimiterState:
        """State of endpoints and budgets."""
        budgets = [
            BudgetState(name, account.cap, account.spent + account.reserved)
            for name, account in self.accounts.items()
            if account.cap is not None
        ]
        now = self._clock()
        return LimiterState([_state(name, each, now) for name, each in self._endpoints.items()], budgets)

    def _reserve(self, report: UsageReport, now: float) -> tuple[dict[str, float], str, float]:
        """New reservations by budget, the budget that is used up for the first waiting call, and what is left of it."""
        granted: dict[str, float] = {}
        exhausted, left = "", 0.0
        dead = [holder for holder, heard_at in self._heard.items() if heard_at + DEAD_AFTER_S < now]
        for name, totals in report.budgets.items():
            account = self.accounts[name]
            account.settle(report.holder, reserved=totals.reserved, spent=totals.spent)
            amount = _reserved(account, report.holder, totals)
            if amount:
                granted[name] = amount
            elif totals.least > account.left(dead):
                exhausted, left = name, account.left(dead)
        return granted, exhausted, left

    def _grant(self, holder: str, report: EndpointReport, now: float) -> EndpointGrant:
        endpoint = self._endpoint(report.endpoint)
        mine = endpoint.holders.setdefault(holder, _Holder())
        mine.heard_at, mine.leased = now, max(report.in_use, mine.slots)
        mine.demand, mine.waiting = report.in_use + report.waiting, report.waiting
        self._learn(endpoint, report, now)
        self._forget_the_dead(endpoint, now)
        slots = self._slots(endpoint, holder, report, now)
        room = max(0, slots - report.in_use)
        lease, requests, tokens, again_in_s = self._permits(endpoint, report, room, now)
        mine.slots = slots
        mine.leased = max(mine.leased, slots)
        if endpoint.breaker.is_open:
            again_in_s = max(again_in_s, _SOON_S, min(1.0, endpoint.breaker.next_try_in(now)))
        elif report.waiting > room:
            again_in_s = max(again_in_s, _SOON_S)
        return EndpointGrant(
            endpoint=report.endpoint,
            slots=slots,
            trial=endpoint.breaker.is_open,
            lease=lease,
            requests=requests,
            tokens=tokens,
            again_in_s=again_in_s,
            down_s=endpoint.breaker.down_s,
        )

    def _endpoint(self, name: str) -> _Endpoint:
        known = self._endpoints.get(name)
        if known is None:
            limits = self._limits.get(name, EndpointLimits())
            known = self._endpoints[name] = _Endpoint(name, limits, self._began, resumed=self._resumed)
            for rate in (known.requests, known.tokens):
                if self._restarted and rate is not None:
                    rate.use_up(self._began, self._next_lease())
        return known

    def _learn(self, endpoint: _Endpoint, report: EndpointReport, now: float) -> None:
        endpoint.breaker.report(now, replies=report.fine + report.limited, broken=report.broken, error=report.error)
        endpoint.learn_wait(now, report)
        endpoint.concurrency.report(
            now,
            fine=report.fine,
            limited=report.limited,
            round_trip_s=report.round_trips_s / report.fine if report.fine else None,
            demand=sum(each.demand for each in endpoint.holders.values()),
            drained=report.drained,
        )
        for lease, requests, tokens in report.unused:
            endpoint.give_back(lease, requests, tokens)
        if endpoint.tokens is not None:
            for lease, tokens in report.corrections:
                endpoint.give_back(lease, 0, -tokens)

    def _forget_the_dead(self, endpoint: _Endpoint, now: float) -> None:
        for name in [n for n, each in endpoint.holders.items() if each.heard_at + DEAD_AFTER_S < now]:
            del endpoint.holders[name]

    def _slots(self, endpoint: _Endpoint, holder: str, report: EndpointReport, now: float) -> int:
        """Requests that a holder may have in flight: its share, as far as the others have released theirs."""
        if self._restarted and now < self._began + _MEMORY_S:
            return report.in_use  # until the others have reported what they have in flight
        if endpoint.breaker.is_open and not _rates_allow(endpoint, report, now):
            return report.in_use  # the breaker's only trial call would go to a holder that cannot make it
        admitted = endpoint.breaker.admits(now, report.waiting)
        if admitted < report.waiting:
            return report.in_use + admitted
        bound = endpoint.concurrency.bound
        others = sum(each.leased for name, each in endpoint.holders.items() if name != holder)
        demands = {name: each.demand for name, each in endpoint.holders.items()}
        served_last = {name: each.slots for name, each in endpoint.holders.items()}
        share = fair_share(bound, demands, served_last)[holder]
        return max(0, min(share, bound - others))

    def _permits(
        self, endpoint: _Endpoint, report: EndpointReport, room: int, now: float
    ) -> tuple[int, int, int, float]:
        """(lease, requests, tokens, seconds until more) of the rates; unbounded rates need no permit."""
        wanted = min(report.wanted, room)
        if not wanted or (endpoint.requests is None and endpoint.tokens is None):
            return 0, 0, 0, 0.0
        requests, tokens = wanted, 0
        again_in_s = 0.0
        if endpoint.requests is not None:
            requests = min(requests, _fair_part(endpoint.requests.left(now, 1), endpoint))
            if requests < wanted:
                again_in_s = endpoint.requests.free_in(now, 1) or _SOON_S
        if endpoint.tokens is not None and requests > 0:
            first = min(report.first_tokens, endpoint.tokens.limit)
            requests, tokens = _tokens(endpoint.tokens.left(now, first), first, report, requests)
            if not requests:
                again_in_s = max(again_in_s, endpoint.tokens.free_in(now, first)) or _SOON_S
        if requests <= 0:
            return 0, 0, 0, min(1.0, max(_SOON_S, again_in_s))
        lease = self._next_lease()
        for rate, amount in ((endpoint.requests, requests), (endpoint.tokens, tokens)):
            if rate is not None:
                rate.grant(now, lease, amount)
        return lease, requests, tokens, again_in_s

    def _next_lease(self) -> int:
        self._leases += 1
        return self._leases


def _state(name: str, endpoint: _Endpoint, now: float) -> EndpointState:
    demand, waiting = (
        sum(getattr(holder, what) for holder in endpoint.holders.values()) for what in ("demand", "waiting")
    )
    down_s = endpoint.breaker.down_s if endpoint.breaker.is_open else None
    in_use = demand - waiting
    return EndpointState(
        name,
        endpoint.concurrency.bound,
        in_use,
        waiting,
        down_s,
        endpoint.asked_wait_s(now),
        endpoint.long_waits,
        endpoint.wait_error,
    )


def _reserved(account: BudgetAccount, holder: str, totals: BudgetTotals) -> float:
    """Amount that could be reserved: for all waiting calls, or all that is left, if it suffices for the first."""
    amount = min(totals.wanted, account.free)
    if not totals.least or amount < totals.least or not account.reserve(holder, amount):
        return 0.0
    return amount


def _rates_allow(endpoint: _Endpoint, report: EndpointReport, now: float) -> bool:
    """Whether the rates have room for the first waiting call."""
    for rate, least in ((endpoint.requests, 1), (endpoint.tokens, report.first_tokens)):
        if rate is not None and rate.left(now, min(least, rate.limit)) < min(least, rate.limit):
            return False
    return True


def _fair_part(left: int, endpoint: _Endpoint) -> int:
    """Part of the remainder for one holder, so that something is left for the others that wait."""
    waiting = sum(each.waiting for each in endpoint.holders.values())
    if waiting <= left:
        return max(0, left)
    return max(0, -(-left // max(1, sum(each.waiting > 0 for each in endpoint.holders.values()))))


def _tokens(left: int, first: int, report: EndpointReport, requests: int) -> tuple[int, int]:
    """(requests, tokens) that fit: all of them, or as many as the remaining tokens cover."""
    if left < first:
        return 0, 0
    each = max(1.0, report.wanted_tokens / max(1, report.wanted))
    requests = max(1, min(requests, int(left // each)))
    return requests, max(first, min(left, int(requests * each)))
