"""First asks of a role: how many are paid for until one of them got a usable reply."""

from __future__ import annotations

import asyncio

import pytest

from moot.actors.debate.first_asks import AskCounts, FirstAskCounts, FirstAsks, NothingUsable, local_exchange
from moot.protocols.errors import REPLAY_DIVERGED, UNSENT
from moot.protocols.messages import AskResult

USABLE = AskResult(path="p", reply_id="r", model="m", data={})
FAILED = AskResult(path="p", reply_id="r", model="m", outcome="failed", failure="unparsable", error="prose")


async def ask(first: FirstAsks, result: AskResult, family: str = "agent") -> None:
    async with first.admitted(family) as admitted:
        admitted.result = result


async def test_no_more_are_paid_for_than_may_be_in_vain() -> None:
    first, paid = FirstAsks(3), []

    async def fail() -> None:
        async with first.admitted("agent") as admitted:
            paid.append(1)
            await asyncio.sleep(0)
            admitted.result = FAILED

    ended = await asyncio.gather(*(fail() for _ in range(9)), return_exceptions=True)
    assert len(paid) == 3
    stopped = [each for each in ended if each is not None]
    assert len(stopped) == 6
    assert all(isinstance(each, NothingUsable) and str(each).startswith("agent: ") for each in stopped)
    assert "m: unparsable: prose" in str(stopped[0])
    await ask(first, USABLE, "judge")


def processes(most: int, count: int) -> tuple[FirstAskCounts, list[FirstAsks]]:
    """Several processes of a run, which count together."""
    counts = FirstAskCounts(most)
    return counts, [FirstAsks(most, exchange=local_exchange(counts, str(number))) for number in range(count)]


async def test_all_processes_of_a_run_count_together() -> None:
    _, several = processes(5, 4)
    paid: list[int] = []

    async def fail(first: FirstAsks) -> None:
        async with first.admitted("agent/1") as admitted:
            paid.append(1)
            await asyncio.sleep(0.001)
            admitted.result = FAILED

    ended = await asyncio.gather(*(fail(first) for first in several for _ in range(6)), return_exceptions=True)
    assert len(paid) == 5
    stopped = [each for each in ended if each is not None]
    assert len(stopped) == 24 - 5
    assert all(isinstance(each, NothingUsable) and str(each).startswith("agent/1: none of the") for each in stopped)


async def test_a_usable_reply_in_one_process_lets_those_of_the_others_pass() -> None:
    _, (one, other) = processes(1, 2)
    await ask(one, USABLE)
    for _ in range(3):
        await ask(other, FAILED)


async def test_asks_of_a_lost_process_do_not_hold_those_of_others() -> None:
    counts, (one,) = processes(1, 1)
    counts.exchange("lost", "agent", AskCounts(), wants=True)
    waiting = asyncio.create_task(ask(one, USABLE))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    counts.forget("lost")
    await asyncio.wait_for(waiting, 2)


async def test_one_usable_reply_lets_all_others_pass_for_good() -> None:
    first, go = FirstAsks(2), asyncio.Event()

    async def wait() -> None:
        async with first.admitted("agent") as admitted:
            await go.wait()
            admitted.result = USABLE

    waiting = [asyncio.create_task(wait()) for _ in range(5)]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*waiting)
    for _ in range(5):
        await ask(first, FAILED)


async def test_a_cancelled_ask_and_one_without_a_reply_do_not_count() -> None:
    first = FirstAsks(1)
    for failure in (UNSENT, REPLAY_DIVERGED):
        await ask(first, AskResult(path="p", reply_id="r", model="m", outcome="failed", failure=failure))
    hanging = asyncio.create_task(_hang(first))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(ask(first, FAILED))
    await asyncio.sleep(0)
    hanging.cancel()
    await waiting
    with pytest.raises(NothingUsable):
        await ask(first, FAILED)


async def _hang(first: FirstAsks) -> None:
    async with first.admitted("agent"):
        await asyncio.Event().wait()


async def test_without_a_bound_or_after_an_earlier_usable_reply_all_are_paid_for() -> None:
    for first in (FirstAsks(0), FirstAsks(1, {"agent"})):
        for _ in range(3):
            await ask(first, FAILED)
