"""The limiter against simulated time: no window is ever overfull and no budget exceeded when holders die."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from random import Random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.actors.limits.budget_account import BudgetAccount
from moot.actors.limits.call_queue import CallDemand, CallQueue
from moot.actors.limits.concurrency import TRIPS_AFTER, CircuitBreaker, ConcurrencyLimit
from moot.actors.limits.envelopes import BudgetTotals, EndpointGrant, EndpointReport, UsageReport
from moot.actors.limits.fair_share import fair_share
from moot.actors.limits.limiter import DEAD_AFTER_S, Limiter
from moot.actors.limits.rates import SlidingWindow
from moot.actors.limits.settings import PERMIT_TTL_S, WINDOW_S, EndpointLimits


@given(
    bound=st.integers(0, 40),
    demands=st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 30), min_size=1),
)
def test_shares_are_fair_and_never_more_than_there_is(bound: int, demands: dict[str, int]) -> None:
    given_ = fair_share(bound, demands, {})
    assert sum(given_.values()) <= bound
    assert set(given_) == set(demands)
    short = [name for name in demands if given_[name] < demands[name]]
    if short:
        assert sum(given_.values()) == bound
        most = max(given_[name] for name in short)
        assert all(given_[name] >= min(demands[name], most - 1) for name in demands)
    else:
        assert all(given_[name] == 0 for name in demands if not demands[name])


@dataclass(order=True)
class _Event:
    at: float
    order: int
    kind: str = field(compare=False)
    who: int = field(compare=False)


class _Cluster:
    """Holders that call an endpoint with random latencies, some of which die; the limiter between them."""

    def __init__(self, rng: Random, holders: int, limits: EndpointLimits, cap: float | None) -> None:
        self.rng, self.limits = rng, limits
        self.now = 0.0
        self.account = BudgetAccount(cap)
        self.limiter = Limiter({"m": limits}, {"usd": self.account} if cap is not None else {}, clock=lambda: self.now)
        self.uses: list[float] = []
        self.true_cost = 0.0
        self.events: list[_Event] = []
        self.in_use = [0] * holders
        self.reserved = [0.0] * holders
        self.spent = [0.0] * holders
        self.dead: set[int] = set()
        self.most_in_use = 0
        for who in range(holders):
            self._at(rng.random(), "exchange", who)

    def _at(self, delay_s: float, kind: str, who: int) -> None:
        heapq.heappush(self.events, _Event(self.now + delay_s, len(self.uses) + len(self.events), kind, who))

    def run(self, until_s: float, dying: float = 0.0) -> None:
        while self.events and self.events[0].at < until_s:
            event = heapq.heappop(self.events)
            self.now = event.at
            if event.who in self.dead:
                if event.kind == "ended":
                    self.in_use[event.who] -= 1
                continue
            getattr(self, f"_{event.kind}")(event.who)
            if self.rng.random() < dying and len(self.dead) < len(self.in_use) - 1:
                self.dead.add(event.who)

    def _ended(self, who: int) -> None:
        self.in_use[who] -= 1
        cost = self.rng.random()
        self.reserved[who] -= 1.0
        self.spent[who] += cost

    def _exchange(self, who: int) -> None:
        waiting = self.rng.randrange(1, 12)
        budgets = {}
        if self.account.cap is not None:
            budgets["usd"] = BudgetTotals(self.reserved[who], self.spent[who], float(waiting), 1.0)
        asked_at = self.now
        report = EndpointReport("m", self.in_use[who], waiting, waiting, 1, waiting, fine=1, round_trips_s=1.0)
        grant = self.limiter.exchange(UsageReport(str(who), [report], budgets))
        (given_,) = grant.endpoints
        room = min(given_.slots - self.in_use[who], waiting)
        if self.limits.requests_per_min is not None:
            room = min(room, given_.requests)
        money = grant.reserved.get("usd", 0.0)
        self.reserved[who] += money
        if self.account.cap is not None:
            room = min(room, int(money))
            self.reserved[who] -= money - max(0, room)
            assert self.account.spent + self.account.reserved <= self.account.cap + 1e-9
        for _ in range(max(0, room)):
            self.uses.append(asked_at + self.rng.random() * PERMIT_TTL_S)
            self.in_use[who] += 1
            self._at(0.2 + self.rng.random() * 3.0, "ended", who)
        self.most_in_use = max(self.most_in_use, sum(self.in_use))
        self._at(max(0.02, given_.again_in_s) * (0.5 + self.rng.random()), "exchange", who)


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(5, 200), st.sampled_from([0.0, 0.01]))
def test_rates_are_kept_over_a_cluster_with_dying_holders(seed: int, holders: int, rate: int, dying: float) -> None:
    cluster = _Cluster(Random(seed), holders, EndpointLimits(requests_per_min=rate), None)
    cluster.run(130.0, dying)
    uses = sorted(cluster.uses)
    last = 0
    for first, start in enumerate(uses):
        while last < len(uses) and uses[last] < start + WINDOW_S:
            last += 1
        assert last - first <= rate


@given(seed=st.integers(0, 10_000), holders=st.integers(1, 6), bound=st.integers(1, 40))
def test_a_fixed_concurrency_is_kept_and_every_holder_has_a_turn(seed: int, holders: int, bound: int) -> None:
    cluster = _Cluster(Random(seed), holders, EndpointLimits(concurrency=bound), None)
    served = [0] * holders
    ended = cluster._ended

    def count(who: int) -> None:
        served[who] += 1
        ended(who)

    cluster._ended = count  # type: ignore[method-assign]
    cluster.run(240.0)  # with one place for six, a minute has some thirty calls: whose turn is next is partly chance
    assert cluster.most_in_use <= bound
    assert min(served) > 0


@given(seed=st.integers(0, 10_000), holders=st.integers(1, 6), cap=st.floats(0.0, 60.0))
def test_the_budget_is_never_exceeded_when_holders_die(seed: int, holders: int, cap: float) -> None:
    """What a dead holder had reserved may all be spent."""
    cluster = _Cluster(Random(seed), holders, EndpointLimits(concurrency=20), cap)
    cluster.run(60.0, dying=0.01)
    lost = sum(cluster.reserved[who] for who in cluster.dead)
    assert sum(cluster.spent) + lost <= cap + 1e-9


def test_the_slots_of_a_dead_holder_come_back() -> None:
    now = [0.0]
    limiter = Limiter({"m": EndpointLimits(concurrency=10)}, {}, clock=lambda: now[0])
    (dead,) = limiter.exchange(UsageReport("dead", [EndpointReport("m", 0, 10, 10)])).endpoints
    assert dead.slots == 10
    (poor,) = limiter.exchange(UsageReport("b", [EndpointReport("m", 0, 10, 10)])).endpoints
    assert poor.slots == 0
    now[0] = DEAD_AFTER_S + 0.1
    (rich,) = limiter.exchange(UsageReport("b", [EndpointReport("m", 0, 10, 10)])).endpoints
    assert rich.slots == 10


def test_a_permit_counts_for_a_window_from_its_latest_use() -> None:
    window = SlidingWindow(1, WINDOW_S, PERMIT_TTL_S)
    window.grant(0.0, 1, 1)
    assert window.left(WINDOW_S + PERMIT_TTL_S - 0.1) == 0, "it may have been used just before it lapsed"
    assert window.left(WINDOW_S + PERMIT_TTL_S) == 1


def test_a_restarted_limiter_takes_the_last_window_for_used_up() -> None:
    now = [100.0]
    limiter = Limiter({"m": EndpointLimits(requests_per_min=5)}, {}, clock=lambda: now[0], restarted=True)
    report = UsageReport("a", [EndpointReport("m", 0, 3, 3), EndpointReport("unbounded", 0, 3, 3)])
    bounded, unbounded = limiter.exchange(report).endpoints
    assert (bounded.requests, unbounded.slots) == (0, 0), "others may have calls under way"
    now[0] += WINDOW_S / 2
    bounded, unbounded = limiter.exchange(report).endpoints
    assert (bounded.requests, unbounded.slots > 0) == (0, True)
    now[0] += WINDOW_S / 2 + PERMIT_TTL_S
    assert limiter.exchange(report).endpoints[0].requests == 1


def test_a_rate_is_spread_over_its_minute_and_a_session_continues_at_its_rate() -> None:
    for resumed in (False, True):
        now = [100.0]
        limits = {"m": EndpointLimits(requests_per_min=610)}
        limiter = Limiter(limits, {}, clock=lambda now=now: now[0], resumed=resumed)  # type: ignore[misc]
        granted = []
        for _ in range(1200):
            report = UsageReport("a", [EndpointReport("m", 0, 500, 500)])
            granted.append((now[0], limiter.exchange(report).endpoints[0].requests))
            now[0] += 0.05
        assert granted[0][1] == (0 if resumed else 10), "one second's worth at most"
        for at, _ in granted:
            assert sum(count for then, count in granted if at <= then < at + 1.0) <= 21
        assert 0.97 * 610 <= sum(count for _, count in granted) <= 610


def test_a_call_larger_than_a_seconds_tokens_waits_until_the_pace_is_full() -> None:
    now = [0.0]
    limiter = Limiter({"m": EndpointLimits(tokens_per_min=6100)}, {}, clock=lambda: now[0])
    report = UsageReport("a", [EndpointReport("m", 0, 9, 9, 1000, 9000)])
    first = limiter.exchange(report).endpoints[0]
    assert (first.requests, first.tokens) == (1, 1000)
    starts = []
    while now[0] < 59.0:
        now[0] += 0.25
        starts += [now[0]] * limiter.exchange(report).endpoints[0].requests
    assert len(starts) == 5, "the limit of a minute, less the first call"
    assert all(later - earlier > 9.0 for earlier, later in itertools.pairwise(starts))


def test_a_budget_is_exhausted_only_when_no_reservation_can_come_back() -> None:
    limiter = Limiter({}, {"usd": BudgetAccount(10.0, spent=2.0)}, clock=lambda: 0.0)
    first = limiter.exchange(UsageReport("a", [], {"usd": BudgetTotals(wanted=7.0, least=7.0)}))
    assert first.reserved == {"usd": 7.0}
    waits = limiter.exchange(UsageReport("b", [], {"usd": BudgetTotals(wanted=5.0, least=5.0)}))
    assert (waits.reserved, waits.exhausted) == ({}, "")
    limiter.exchange(UsageReport("a", [], {"usd": BudgetTotals(reserved=0.0, spent=4.0)}))
    over = limiter.exchange(UsageReport("b", [], {"usd": BudgetTotals(wanted=5.0, least=5.0)}))
    assert over.exhausted == "usd"
    enough = limiter.exchange(UsageReport("b", [], {"usd": BudgetTotals(wanted=5.0, least=3.5)}))
    assert enough.reserved == {"usd": 4.0}, "as much as there is"


@pytest.mark.parametrize("restarted", [False, True])
def test_a_dead_holders_reservation_counts_as_spent_after_a_restart_of_the_limiter(restarted: bool) -> None:
    now, account = [0.0], BudgetAccount(100.0)
    limiter = Limiter({}, {"usd": account}, clock=lambda: now[0])
    asks = UsageReport("b", [], {"usd": BudgetTotals(wanted=50.0, least=50.0)})
    assert limiter.exchange(UsageReport("a", [], {"usd": BudgetTotals(wanted=60.0, least=60.0)})).reserved == {
        "usd": 60.0
    }
    if restarted:
        limiter = Limiter({}, {"usd": account}, clock=lambda: now[0], restarted=True)
    assert limiter.exchange(asks).exhausted == "", "the other one may live, and give it back"
    now[0] = DEAD_AFTER_S + 0.1
    assert limiter.exchange(asks).exhausted == "usd"


def test_concurrency_doubles_then_is_cut_once_per_round_trip_above_a_fifth_of_429s() -> None:
    bound = ConcurrencyLimit()
    start = bound.bound
    for second in range(4):
        bound.report(float(second), fine=50, limited=0, round_trip_s=0.5, demand=10_000, drained=False)
    assert bound.bound == start * 8
    bound.report(4.0, fine=85, limited=15, round_trip_s=0.5, demand=10_000, drained=False)
    assert bound.bound == start * 16, "a fifth of 429s or less is no reason to slow down"
    before = bound.bound
    bound.report(4.6, fine=50, limited=50, round_trip_s=0.5, demand=10_000, drained=False)
    assert bound.bound == before, "refusals come sooner than replies: a single round trip is no measure"
    bound.report(5.0, fine=50, limited=50, round_trip_s=0.5, demand=10_000, drained=False)
    bound.report(5.1, fine=0, limited=50, round_trip_s=None, demand=10_000, drained=False)
    assert before * 0.8 < bound.bound < before
    bound.report(6.0, fine=1000, limited=0, round_trip_s=0.5, demand=10_000, drained=False)
    assert before * 0.8 < bound.bound <= before, "after a cut it grows slowly"


def test_a_broken_endpoint_is_tried_with_single_calls_until_it_answers() -> None:
    breaker = CircuitBreaker("m")
    assert breaker.admits(0.0, 5) == 5
    breaker.report(0.0, replies=0, broken=TRIPS_AFTER)
    assert breaker.admits(0.1, 5) == 0
    later = breaker.next_try_in(0.1) + 0.1
    assert breaker.admits(later, 5) == 1
    assert breaker.admits(later, 5) == 0
    breaker.report(later + 1.0, replies=1, broken=0)
    assert breaker.admits(later + 1.0, 5) == 5
    assert breaker.down_s == 0.0


def test_the_single_try_of_a_broken_endpoint_waits_for_a_rate_permit() -> None:
    now = [0.0]
    limiter = Limiter({"m": EndpointLimits(requests_per_min=TRIPS_AFTER)}, {}, clock=lambda: now[0])

    def exchange(broken: int = 0) -> tuple[int, int]:
        report = EndpointReport("m", waiting=TRIPS_AFTER, wanted=TRIPS_AFTER, broken=broken)
        (given_,) = limiter.exchange(UsageReport("a", [report])).endpoints
        assert given_.slots or given_.again_in_s >= 0.1, "nobody asks a hundred times a second"
        return given_.slots, given_.requests

    assert exchange()[1] == 1
    exchange(broken=TRIPS_AFTER)
    now[0] = 3.0
    assert exchange() == (0, 0), "the pause is over, but the rate allows the next call after 5 s only"
    now[0] = 6.0
    assert exchange() == (1, 1)


@pytest.mark.parametrize("how", ["limited", "broken"])
def test_a_long_wait_that_a_server_asks_for_is_said_once_until_it_is_over(how: Literal["limited", "broken"]) -> None:
    now = [0.0]
    limiter = Limiter({}, {}, clock=lambda: now[0])
    queue = CallQueue("m", EndpointLimits(), lambda: now[0], lambda need, spent: None)
    queue.take(EndpointGrant("m", slots=9), asked_at=0.0, now=0.0)

    def refused(wait_s: float, at: float) -> tuple[int, str, float | None]:
        now[0] = at
        call = queue.try_start(CallDemand())
        assert call is not None
        call.end(how, error=f"wait {wait_s:g} s", retry_after_s=wait_s)
        report = queue.report(now[0])
        assert report is not None
        limiter.exchange(UsageReport("a", [report]))
        (state,) = limiter.state().endpoints
        return state.long_waits, state.wait_error, state.asked_wait_s

    assert refused(5.0, 0.0) == (0, "", None)
    assert refused(432.0, 1.0) == (1, "wait 432 s", 432.0)
    assert refused(400.0, 33.0) == (1, "wait 432 s", 400.0)
    limiter.exchange(UsageReport("a", [EndpointReport("m", fine=1)]))
    assert limiter.state().endpoints[0].asked_wait_s is None
    assert refused(100.0, 34.0) == (1, "wait 432 s", 100.0)
    assert refused(60.0, 500.0) == (2, "wait 60 s", 60.0)
