"""The gate of one process: calls wait for leave, start in order, and settle what they used."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Mapping

import pytest
from virtual_time import virtual_time

from moot.actors.limits.budget_account import BudgetAccount
from moot.actors.limits.call_queue import BEGINS, ENDS, CallDemand
from moot.actors.limits.envelopes import Grant, UsageReport
from moot.actors.limits.limiter import Limiter
from moot.actors.limits.limiter_client import BudgetSpent, Draining, EndpointDown, LimiterClient, LimiterGone
from moot.actors.limits.settings import EndpointLimits


class Clock:
    """A monotonic clock that can be pushed."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead_s


class CountingLimiter:
    """A limiter with a count of the exchanges."""

    def __init__(self, limits: EndpointLimits, caps: Mapping[str, float] | None = None) -> None:
        self.clock = Clock()
        self.limits = {"m": limits}
        self.accounts = {name: BudgetAccount(cap) for name, cap in (caps or {}).items()}
        self.limiter = Limiter(self.limits, self.accounts, clock=self.clock)
        self.exchanges = 0

    async def exchange(self, report: UsageReport) -> Grant:
        self.exchanges += 1
        await asyncio.sleep(0.002)
        return self.limiter.exchange(report)

    def gate(self) -> LimiterClient:
        return LimiterClient(self.limits, self.accounts, self.exchange, clock=self.clock)


@virtual_time
async def test_most_calls_start_without_an_exchange() -> None:
    decisions = CountingLimiter(EndpointLimits())
    gate = decisions.gate()
    for _ in range(500):
        admission = await gate.admit("m", CallDemand())
        admission.end("answered")
    await gate.close()
    assert decisions.exchanges < 20


@virtual_time
async def test_calls_of_older_debates_start_first() -> None:
    """Else a run that is stopped early has begun every debate and finished none."""
    decisions = CountingLimiter(EndpointLimits(concurrency=1))
    gate = decisions.gate()
    order: list[str] = []

    async def debate(name: str) -> None:
        for number in range(3):
            admission = await gate.admit("m", CallDemand(debate=name))
            await asyncio.sleep(0.01)
            order.append(f"{name}{number}")
            admission.end("answered")

    await asyncio.gather(*(debate(name) for name in "abcd"))
    await gate.close()
    assert [order.index(f"{name}2") for name in "abcd"] == sorted(order.index(f"{name}2") for name in "abcd")
    assert order.index("a2") < order.index("c0")
    assert order.index("b2") < order.index("d0")


@virtual_time
async def test_nothing_is_kept_of_cancelled_calls_behind_one_that_waits() -> None:
    decisions = CountingLimiter(EndpointLimits(concurrency=1))
    gate = decisions.gate()
    busy = await gate.admit("m", CallDemand())
    first = asyncio.create_task(gate.admit("m", CallDemand(debate="old")))
    await asyncio.sleep(0.05)
    calls = [asyncio.create_task(gate.admit("m", CallDemand(debate=str(number)))) for number in range(100)]
    await asyncio.sleep(0.05)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    assert len(gate._queue("m").waiting) <= 2
    busy.end("answered")
    (await asyncio.wait_for(first, 2.0)).end("answered")
    await gate.close()


@virtual_time
async def test_a_cancelled_call_gives_its_place_to_the_next() -> None:
    decisions = CountingLimiter(EndpointLimits(concurrency=1))
    gate = decisions.gate()
    first = await gate.admit("m", CallDemand())
    waiting = [asyncio.create_task(gate.admit("m", CallDemand())) for _ in range(3)]
    await asyncio.sleep(0.05)
    waiting[0].cancel()
    first.end("answered")
    admission = await asyncio.wait_for(waiting[1], 2.0)
    assert not waiting[2].done(), "there is one place"
    waiting[2].cancel()
    admission.end("answered")
    (await asyncio.wait_for(gate.admit("m", CallDemand()), 2.0)).end("answered")
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    await gate.close()
    assert [isinstance(each, asyncio.CancelledError) for each in ended] == [True, False, True]


@virtual_time
async def test_tokens_used_count_and_not_those_foreseen() -> None:
    decisions = CountingLimiter(EndpointLimits(tokens_per_min=1000))
    gate = decisions.gate()
    for number in range(7):
        waiting = asyncio.create_task(gate.admit("m", CallDemand(tokens=500)))
        await asyncio.sleep(0.3)
        assert waiting.done() is (number < 6), "600 tokens are used then: 500 more may be too many"
        if number < 6:
            (await waiting).end("answered", tokens=100)
            await asyncio.sleep(0.3)
            decisions.clock.ahead_s += 8.0
    waiting.cancel()
    await gate.close()


@virtual_time
async def test_money_is_reserved_settled_and_refused() -> None:
    decisions = CountingLimiter(EndpointLimits(), {"usd": 10.0})
    gate = decisions.gate()
    for _ in range(8):
        admission = await gate.admit("m", CallDemand(budgets={"usd": 3.0}))
        assert decisions.accounts["usd"].spent + decisions.accounts["usd"].reserved <= 10.0
        admission.end("answered", spent={"usd": 1.0})
    with pytest.raises(BudgetSpent, match=r"usd 3\.0 2\.0"):
        await asyncio.wait_for(gate.admit("m", CallDemand(budgets={"usd": 3.0})), 5.0)
    admission = await gate.admit("m", CallDemand(budgets={"usd": 2.0}))
    admission.end("broken")
    with pytest.raises(BudgetSpent):
        await asyncio.wait_for(gate.admit("m", CallDemand(budgets={"usd": 0.5})), 5.0)
    await gate.close()


def test_a_spent_budget_crosses_a_process_boundary() -> None:
    spent = BudgetSpent("usd", 3.0, 2.0)
    again = pickle.loads(pickle.dumps(spent))
    assert (str(again), again.args) == (str(spent), ("usd", 3.0, 2.0))


@virtual_time
async def test_calls_that_can_have_what_others_give_back_wait_for_it() -> None:
    decisions = CountingLimiter(EndpointLimits(), {"tokens": 100.0})
    gate, other = decisions.gate(), decisions.gate()
    held = await other.admit("m", CallDemand(budgets={"tokens": 90.0}))
    waiting = asyncio.create_task(gate.admit("m", CallDemand(budgets={"tokens": 50.0})))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    held.end("answered", spent={"tokens": 20.0})
    (await asyncio.wait_for(waiting, 5.0)).end("answered", spent={"tokens": 50.0})
    for each in (gate, other):
        await each.close()


@virtual_time
async def test_a_small_call_is_not_refused_for_a_large_one() -> None:
    decisions = CountingLimiter(EndpointLimits(), {"usd": 10.0})
    gate = decisions.gate()
    (await gate.admit("m", CallDemand(budgets={"usd": 1.0}))).end("answered", spent={"usd": 0.0})
    large = asyncio.create_task(gate.admit("m", CallDemand(budgets={"usd": 50.0})))
    await asyncio.sleep(0)
    small = asyncio.create_task(gate.admit("m", CallDemand(budgets={"usd": 0.1})))
    with pytest.raises(BudgetSpent):
        await asyncio.wait_for(large, 5.0)
    (await asyncio.wait_for(small, 5.0)).end("answered", spent={"usd": 0.1})
    await gate.close()


@virtual_time
async def test_an_endpoint_that_is_down_for_long_is_reported() -> None:
    decisions = CountingLimiter(EndpointLimits())
    gate = decisions.gate()
    for _ in range(12):
        (await gate.admit("m", CallDemand())).end("broken", error="connection refused")
    await asyncio.sleep(0.6)
    decisions.clock.ahead_s += 301.0
    trial = await asyncio.wait_for(gate.admit("m", CallDemand()), 5.0)  # nobody asked meanwhile: it may be back
    trial.end("broken", error="connection refused")
    with pytest.raises(EndpointDown, match="m"):
        await asyncio.wait_for(gate.admit("m", CallDemand()), 5.0)
    await gate.close()


@virtual_time
async def test_a_lost_limiter_ends_every_wait() -> None:
    async def gone(report: UsageReport) -> Grant:
        raise RuntimeError("no limiter")

    gate = LimiterClient({}, (), gone)
    with pytest.raises(LimiterGone, match="no limiter"):
        await asyncio.wait_for(gate.admit("m", CallDemand()), 2.0)
    with pytest.raises(LimiterGone, match="no limiter"):
        await gate.admit("m", CallDemand())


@virtual_time
async def test_a_drain_refuses_those_who_wait_and_lets_the_others_end() -> None:
    decisions = CountingLimiter(EndpointLimits(concurrency=1))
    gate = decisions.gate()
    first = await gate.admit("m", CallDemand())
    waiting = [asyncio.create_task(gate.admit("m", CallDemand())) for _ in range(3)]
    await asyncio.sleep(0.05)
    gate.drain()
    ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 1.0)
    assert [type(each) for each in ended] == [Draining] * 3
    first.end("answered")
    with pytest.raises(Draining):
        await gate.admit("m", CallDemand())
    await gate.close()


@virtual_time
async def test_a_server_that_is_full_is_left_alone_for_as_long_as_it_says() -> None:
    decisions = CountingLimiter(EndpointLimits())
    gate = decisions.gate()
    for _ in range(BEGINS):
        (await gate.admit("m", CallDemand())).end("limited", retry_after_s=30.0)
    waiting = asyncio.create_task(gate.admit("m", CallDemand()))
    await asyncio.sleep(29.0)
    assert not waiting.done()
    decisions.clock.ahead_s += 30.0
    waiting.cancel()
    admission = await asyncio.wait_for(gate.admit("m", CallDemand()), 5.0)
    admission.end("limited", retry_after_s=30.0)
    held = asyncio.create_task(gate.admit("m", CallDemand()))
    await asyncio.sleep(29.0)
    assert not held.done(), "it is still full: one refusal is enough"
    decisions.clock.ahead_s += 30.0
    held.cancel()
    for _ in range(ENDS):
        (await asyncio.wait_for(gate.admit("m", CallDemand()), 5.0)).end("answered")
    (await gate.admit("m", CallDemand())).end("limited", retry_after_s=30.0)
    (await asyncio.wait_for(gate.admit("m", CallDemand()), 5.0)).end("answered")
    await gate.close()
