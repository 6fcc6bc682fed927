"""Queue dispatcher, with moderator handles that only count: who gets which result, and what losses and errors do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from manual_runtime import (
    ManualModeratorHandle,
    ManualRuntime,
    case,
    finished,
    open_dispatcher,
    until,
    until_open,
)

from moot.actors.debate.engine import ModeratorLost
from moot.actors.dispatch.case_router import DebateCancelled
from moot.actors.dispatch.queue_dispatcher import QueueDispatcher
from moot.actors.record.debate_result import DebateResult
from moot.protocols.case import LabelledCase
from moot.protocols.errors import ActorGone, RecordError


class MortalHandle(ManualModeratorHandle):
    """Handle of a moderator that dies, as on Ray: each lost call waits by itself until an incarnation answers."""

    def __init__(self) -> None:
        super().__init__()
        self.listener_is_back = asyncio.Event()

    async def _lost_in(self, incarnation: int, *, wait: bool) -> None:
        if incarnation != self._incarnation:
            if wait:
                await self.listener_is_back.wait()
            raise ModeratorLost("moderator")


Holding = list[asyncio.Task[DebateResult]]


@asynccontextmanager
async def debating(
    count: int, moderators: int = 1, kind: type[ManualModeratorHandle] = ManualModeratorHandle
) -> AsyncIterator[tuple[QueueDispatcher, ManualRuntime, Holding]]:
    """A queue dispatcher with so many debates open, the engine, and who waits for each."""
    runtime = ManualRuntime(moderators, kind)
    async with open_dispatcher(runtime) as found:
        holding = [asyncio.create_task(found.run_case(case(i))) for i in range(count)]
        await until_open(runtime, count)
        yield found, runtime, holding


async def test_cases_are_spread_over_the_moderators_and_each_submitter_gets_its_result() -> None:
    async with debating(9, moderators=3) as (found, runtime, holding):
        assert [len(moderator.open) for moderator in runtime.places] == [3, 3, 3]
        assert runtime.kept.registered == {f"q{i}" for i in range(9)}
        for moderator in reversed(runtime.places):
            moderator.finish()
        told = await asyncio.gather(*holding)
        assert [each.case_id for each in told] == [f"q{i}" for i in range(9)]
        assert found.waiting == 0
        assert not runtime.kept.registered


async def test_a_lost_moderator_is_assigned_what_it_had_again_and_nothing_else() -> None:
    async with debating(4, moderators=2) as (found, runtime, holding):
        lost, other = runtime.places
        had = set(lost.open)
        lost.lose()
        late = asyncio.create_task(found.run_case(case(4)))
        await until(lambda: had <= set(lost.open))
        again = [each for each in lost.given if each.replay]
        assert had <= {each.case.id for each in again} <= had | {"q4"}  # which was on its way, or came later
        assert not any(each.replay for each in other.given)
        await until_open(runtime, 5)
        for moderator in runtime.places:
            moderator.finish()
        assert len(await asyncio.gather(*holding, late)) == 5


async def test_a_moderator_that_dies_twice_in_quick_succession_forgets_no_debate() -> None:
    async with debating(1, kind=MortalHandle) as (found, runtime, (first,)):
        (moderator,) = runtime.places
        assert isinstance(moderator, MortalHandle)
        moderator.slow = asyncio.Event()
        second = asyncio.create_task(found.run_case(case(1)))
        await until(lambda: moderator.under_way)
        moderator.lose()  # with a call of each of the two that talk to it
        moderator.slow.set()
        await until_open(runtime, 2)  # who hands over was back first, and has given the next life everything
        moderator.lose()
        moderator.listener_is_back.set()
        await until_open(runtime, 2)
        moderator.finish()
        assert len(await asyncio.gather(first, second)) == 2


async def test_a_lost_engine_ends_every_wait_and_accepts_nothing_more() -> None:
    async with debating(2) as (found, runtime, holding):
        (moderator,) = runtime.places
        moderator.gone = ActorGone("the actor is gone")
        moderator._news.set()
        for each in (*holding, found.run_case(case(2))):
            with pytest.raises(DebateCancelled, match="the actor is gone"):
                await each
        assert "the actor is gone" in str(found.error)


async def test_a_stopped_run_returns_the_results_of_debates_that_ended_before() -> None:
    async with debating(3) as (found, runtime, (first, second, third)):
        (moderator,) = runtime.places
        moderator.finish("q1", status="stopped", why="budget: usd")
        moderator.finish("q0")
        assert (await first).answer == "Yes"
        for each in (second, third):
            with pytest.raises(DebateCancelled, match="budget: usd"):
                await each
        await until(lambda: not moderator.open)  # what is asked for would be paid for nobody
        assert found.stopped_by == "budget: usd"
        await until(lambda: not runtime.kept.registered)
        ends = [(end.case_id, end.cancelled) for end in runtime.kept.ends]
        assert sorted(ends) == [("q0", ""), ("q1", "stopped"), ("q2", "stopped")]


async def test_a_debate_that_is_submitted_again_while_it_is_withdrawn_stays_open_for_the_record() -> None:
    class Slow(ManualModeratorHandle):
        may_cancel = asyncio.Event()

        async def cancel(self, keys: Sequence[tuple[str, int]]) -> None:
            await super().cancel(keys)
            await self.may_cancel.wait()

    async with debating(1, kind=Slow) as (found, runtime, (holding,)):
        cancelling = asyncio.create_task(found.cancel("q0"))
        await asyncio.wait([holding])
        again = asyncio.create_task(found.run_case(case(0)))
        await until_open(runtime, 1)
        Slow.may_cancel.set()
        assert await cancelling
        assert (runtime.kept.registered, runtime.kept.ends) == ({"q0"}, [])
        runtime.places[0].finish()
        assert (await again).case_id == "q0"
        assert [(end.case_id, end.cancelled) for end in runtime.kept.ends] == [("q0", "")]


async def test_a_cancelled_case_is_resumed_from_the_record_later() -> None:
    """Its followers are released when its case comes again."""
    async with debating(1) as (found, runtime, (holding,)):
        (moderator,) = runtime.places
        earlier = found.event_stream("q0")
        assert earlier is not None
        assert await found.cancel("q0")
        with pytest.raises(DebateCancelled, match="withdrawn"):
            await holding
        assert moderator.withdrawn == ["q0"]
        again = asyncio.create_task(found.run_case(case(0)))
        assert [event async for event in earlier.follow()] == []
        await until_open(runtime, 1)
        assert moderator.open["q0"].replay
        moderator.finish()
        assert not (await again).reused


async def test_what_is_cancelled_on_its_way_to_a_moderator_is_cancelled_there() -> None:
    async with debating(1) as (found, runtime, (holding,)):
        (moderator,) = runtime.places
        moderator.slow = asyncio.Event()
        late = asyncio.create_task(found.run_case(case(1)))
        await until(lambda: moderator.under_way)
        await found.cancel("q1")
        moderator.slow.set()
        await until(lambda: "q1" not in moderator.open and "q1" in [each.case.id for each in moderator.given])
        moderator.finish()
        assert (await holding).case_id == "q0"
        with pytest.raises(DebateCancelled):
            await late


async def test_what_is_withdrawn_while_the_record_learns_of_it_is_forgotten_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = ManualRuntime(1)
    begun, go_on, register = asyncio.Event(), asyncio.Event(), runtime.kept.register

    async def slow(cases: Sequence[LabelledCase]) -> None:
        begun.set()
        await go_on.wait()
        await register(cases)

    monkeypatch.setattr(runtime.kept, "register", slow)
    async with open_dispatcher(runtime) as found:
        holding = [asyncio.create_task(found.run_case(case(i))) for i in range(2)]
        await begun.wait()
        await found.cancel("q0")
        go_on.set()
        await until_open(runtime, 1)
        assert runtime.kept.registered == {"q1"}
        assert [(end.case_id, end.cancelled) for end in runtime.kept.ends] == [("q0", "withdrawn")]
        runtime.places[0].finish()
        await asyncio.wait(holding)
        assert isinstance(holding[0].exception(), DebateCancelled)


class LostDrainingHandle(ManualModeratorHandle):
    async def drain(self, seconds: float) -> None:
        self.lose()
        await asyncio.sleep(0.05)


async def test_a_moderator_that_is_lost_while_it_drains_gets_no_debate_again() -> None:
    async with debating(1, kind=LostDrainingHandle) as (found, runtime, (holding,)):
        assert await found.close(0.0) == 1
        assert isinstance((await asyncio.gather(holding, return_exceptions=True))[0], DebateCancelled)
    assert (runtime.places[0].open, len(runtime.places[0].given)) == ({}, 1)


async def test_a_submitter_that_is_cancelled_ends_no_debate() -> None:
    async with debating(1) as (found, runtime, (holding,)):
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        assert found.waiting == 1
        another = asyncio.create_task(found.run_case(case(0)))
        await asyncio.sleep(0)
        runtime.places[0].finish()
        assert (await another).case_id == "q0"


async def test_a_reading_that_failed_is_the_error_of_those_who_asked_for_it_alone() -> None:
    async with finished() as (found, record):
        record.fails = RecordError("the volume is away")
        ends = await asyncio.gather(found.run_case(case(0)), found.recorded_result("q1"), return_exceptions=True)
        assert [str(end) for end in ends] == ["the volume is away"] * 2
        assert (await found.run_case(case(0))).reused
        again = await found.recorded_result("q1")
        assert again is not None
        assert again.case_id == "q1"


async def test_closing_ends_every_wait_for_the_record() -> None:
    async with finished() as (found, record):
        record.slow = asyncio.Event()
        asking = [asyncio.create_task(found.run_case(case(0)))]
        await until(lambda: bool(record.asked))
        asking.append(asyncio.create_task(found.run_case(case(1))))  # waits for the slow reading to end
        gone = asyncio.create_task(found.run_case(case(2)))
        await asyncio.sleep(0)
        gone.cancel()
        await found.close(0.0)
        for each in asking:
            with pytest.raises(DebateCancelled, match="closed before"):
                await each
        with pytest.raises(DebateCancelled, match="closed"):
            await found.recorded_result("q3")
        assert record.asked == [["q0"]]
