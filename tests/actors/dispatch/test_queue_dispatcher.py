"""The reception, with seats that only keep count: what is told to whom, what a lost moderator or engine does, and what
a record that cannot be read, is slow, or is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from test_dispatcher import FakeRecordClient
from test_dispatcher import FakeRuntime as SeatsAlone

from moot.actors.debate.engine import ModeratorLost
from moot.actors.debate.moderator import Assignment, AssignmentOutcome, ModeratorReport
from moot.actors.dispatch.case_router import DebateCancelled
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.dispatch.queue_dispatcher import QueueDispatcher
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.schema import CaseKey
from moot.protocols.case import Case, LabelledCase
from moot.protocols.errors import ActorGone, RecordError


class ManualModeratorHandle:
    """Holds what it is given until `finish`; `lose` fails the exchange that waits, and the next one that hands over."""

    def __init__(self) -> None:
        self.open: dict[str, Assignment] = {}
        self.given: list[Assignment] = []
        self.withdrawn: list[str] = []
        self.gone: Exception | None = None
        self._done: list[AssignmentOutcome] = []
        self._news = asyncio.Event()
        self._incarnation, self._fails_next = 0, False
        self.slow: asyncio.Event | None = None
        self.under_way = False

    def finish(self, *case_ids: str, status: str = "finished", why: str = "") -> None:
        for case_id in case_ids or list(self.open):
            at = self.open.pop(case_id).attempt
            if status == "stopped":
                self._done.append(AssignmentOutcome(case_id, at, "stopped", why))
                continue
            self._done.append(AssignmentOutcome(case_id, at, "finished", result=ended(case_id, at)))
        self._news.set()

    def lose(self) -> None:
        self.open.clear()
        self._incarnation, self._fails_next = self._incarnation + 1, True
        self._news.set()

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        incarnation = self._incarnation
        if wait and not self._done and self.gone is None:
            self._news.clear()
            await self._news.wait()
        elif not wait and self.slow is not None:
            self.under_way = True
            await self.slow.wait()
        if self.gone is not None:
            raise self.gone
        await self._lost_in(incarnation, wait=wait)
        self.given += assignments
        self.open |= {each.case.id: each for each in assignments}
        done, self._done = self._done, []
        return ModeratorReport(done)

    async def _lost_in(self, incarnation: int, *, wait: bool) -> None:
        """Raises `ModeratorLost` when the moderator has died since."""
        if incarnation != self._incarnation or (self._fails_next and not wait):
            self._fails_next = self._fails_next and wait
            raise ModeratorLost("seat")

    async def cancel(self, keys: Sequence[tuple[str, int]]) -> None:
        for case_id, _ in keys:
            self.withdrawn.append(case_id)
            self.open.pop(case_id, None)

    async def drain(self, seconds: float) -> None:
        self.open.clear()


class MortalHandle(ManualModeratorHandle):
    """A seat whose moderator dies, as a seat on Ray tells it: each lost call waits by itself until a life answers."""

    def __init__(self) -> None:
        super().__init__()
        self.listener_is_back = asyncio.Event()

    async def _lost_in(self, incarnation: int, *, wait: bool) -> None:
        if incarnation != self._incarnation:
            if wait:
                await self.listener_is_back.wait()
            raise ModeratorLost("seat")


class ManualRuntime(SeatsAlone):
    """So many seats of a kind."""

    def __init__(self, moderators: int, kind: type[ManualModeratorHandle] = ManualModeratorHandle) -> None:
        self.places = [kind() for _ in range(moderators)]
        super().__init__(self.places, max_open=10)


def ended(case_id: str, attempt: int = 0) -> DebateResult:
    return DebateResult(case_id=case_id, attempt=attempt, answer="Yes", how="told")


def case(number: int) -> LabelledCase:
    return LabelledCase(Case(id=f"q{number}", question=f"is {number} even"), number)


@asynccontextmanager
async def open_dispatcher(
    runtime: ManualRuntime, finished: Mapping[CaseKey, bool] | None = None, **changes: Any
) -> AsyncIterator[QueueDispatcher]:
    found = QueueDispatcher(runtime, CompletedCases(finished or {}, {}), **changes)
    found.start()
    try:
        async with asyncio.timeout(20):
            yield found
    finally:
        await found.close(0.0)


Holding = list[asyncio.Task[DebateResult]]


@asynccontextmanager
async def debating(
    count: int, moderators: int = 1, kind: type[ManualModeratorHandle] = ManualModeratorHandle
) -> AsyncIterator[tuple[QueueDispatcher, ManualRuntime, Holding]]:
    """A reception with so many debates open, the engine, and who waits for each."""
    runtime = ManualRuntime(moderators, kind)
    async with open_dispatcher(runtime) as found:
        holding = [asyncio.create_task(found.run_case(case(i))) for i in range(count)]
        await until_open(runtime, count)
        yield found, runtime, holding


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - a condition of a test
        await asyncio.sleep(0)


async def until_open(runtime: ManualRuntime, count: int) -> None:
    await until(lambda: sum(len(moderator.open) for moderator in runtime.places) >= count)


async def test_cases_are_spread_over_the_seats_and_each_end_is_told_to_its_bringer() -> None:
    async with debating(9, moderators=3) as (found, runtime, holding):
        assert [len(moderator.open) for moderator in runtime.places] == [3, 3, 3]
        assert runtime.kept.registered == {f"q{i}" for i in range(9)}
        for moderator in reversed(runtime.places):
            moderator.finish()
        told = await asyncio.gather(*holding)
        assert [each.case_id for each in told] == [f"q{i}" for i in range(9)]
        assert found.waiting == 0
        assert not runtime.kept.registered


async def test_a_lost_moderator_is_told_again_of_what_it_had_and_of_nothing_else() -> None:
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


async def test_an_engine_that_is_gone_ends_every_wait_and_takes_nothing_more() -> None:
    async with debating(2) as (found, runtime, holding):
        (moderator,) = runtime.places
        moderator.gone = ActorGone("the actor is gone")
        moderator._news.set()
        for each in (*holding, found.run_case(case(2))):
            with pytest.raises(DebateCancelled, match="the actor is gone"):
                await each
        assert "the actor is gone" in str(found.error)


async def test_a_run_that_stops_tells_those_that_ended_before() -> None:
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


async def test_a_withdrawn_case_is_put_aside_and_goes_on_from_the_record_later() -> None:
    """Whoever follows it is let go when its case comes again."""
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


async def test_what_is_withdrawn_on_its_way_to_a_seat_is_put_aside_there() -> None:
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


async def test_a_bringer_who_leaves_ends_no_debate() -> None:
    async with debating(1) as (found, runtime, (holding,)):
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        assert found.waiting == 1
        another = asyncio.create_task(found.run_case(case(0)))
        await asyncio.sleep(0)
        runtime.places[0].finish()
        assert (await another).case_id == "q0"


class FinishedRecordClient(FakeRecordClient):
    """Has a verdict on every case; `fails` is what the next reading ends with, and `slow` holds readings up."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.fails: Exception | None = None
        self.slow: asyncio.Event | None = None

    async def results(self, case_ids: Sequence[str]) -> dict[str, DebateResult]:
        self.asked.append(list(case_ids))
        if self.slow is not None:
            await self.slow.wait()
        if self.fails is not None:
            error, self.fails = self.fails, None
            raise error
        return {each: ended(each) for each in case_ids}


@asynccontextmanager
async def finished() -> AsyncIterator[tuple[QueueDispatcher, FinishedRecordClient]]:
    """A reception of an engine whose record has ended with every case."""
    runtime, record = ManualRuntime(1), FinishedRecordClient()
    runtime.writers = record
    async with open_dispatcher(runtime, {(f"q{number}", 0): False for number in range(9)}) as found:
        yield found, record


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
