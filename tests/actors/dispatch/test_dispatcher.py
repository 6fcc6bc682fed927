"""How the dispatcher assigns cases, with a moderator handle that only counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fake_runtime import FakeModeratorHandle, FakeRecordClient, FakeRuntime, _cases
from moderated_debate import SlowPerson

from moot.actors.debate.engine import ModeratorLost
from moot.actors.debate.moderator import Assignment, AssignmentOutcome, ModeratorReport
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.dispatch.dispatcher import Dispatcher
from moot.protocols.case import LabelledCase
from moot.protocols.messages import Form


async def _run(moderator: FakeModeratorHandle, cases: int, max_open: int) -> None:
    runtime = FakeRuntime([moderator], max_open)
    await Dispatcher(runtime, iter(_cases(cases)), CompletedCases({}, {})).run()
    assert sorted(moderator.held) == sorted(f"c{i}" for i in range(cases))
    assert runtime.kept.registered == set()


async def test_every_place_is_filled_before_the_dispatcher_waits() -> None:
    """Else a thousand places would fill as slowly as debates end."""
    moderator = FakeModeratorHandle()
    await _run(moderator, cases=5000, max_open=1000)
    first_wait = moderator.waits.index(True)
    assert moderator.most_open >= 1000
    assert first_wait <= 3000 // 128 + 1


async def test_no_moderator_has_more_than_its_places_while_another_has_one_free() -> None:
    """Else a run of hardly more debates than places leaves some of them waiting beside an idle moderator."""
    moderators = [FakeModeratorHandle(), FakeModeratorHandle()]
    await Dispatcher(FakeRuntime(moderators, max_open=1000), iter(_cases(1000)), CompletedCases({}, {})).run()
    assert [moderator.most_open for moderator in moderators] == [500, 500]


async def test_what_a_lost_moderator_had_is_assigned_again() -> None:
    moderator = FakeModeratorHandle(lost_at=3)
    await _run(moderator, cases=600, max_open=300)
    assert len(moderator.waits) > 3, "it went on after the loss"


class DrainingHandle(FakeModeratorHandle):
    """Is lost while it drains."""

    def __init__(self) -> None:
        super().__init__()
        self.handed_over, self.lost = asyncio.Event(), asyncio.Event()

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        self.waits.append(wait)
        self.open += assignments
        if wait:
            self.handed_over.set()
            await self.lost.wait()
            raise ModeratorLost("moderator")
        return ModeratorReport()

    async def drain(self, seconds: float) -> None:
        self.open.clear()
        self.lost.set()
        await asyncio.sleep(0.05)


async def test_a_moderator_that_is_lost_while_it_drains_gets_no_debate_again() -> None:
    moderator = DrainingHandle()
    held = Dispatcher(FakeRuntime([moderator], max_open=4), iter(_cases(4)), CompletedCases({}, {}))
    running = asyncio.create_task(held.run())
    await moderator.handed_over.wait()
    held.stop()
    await running
    assert moderator.open == []


async def test_cases_that_the_record_learns_of_when_a_drain_begins_are_not_handed_over() -> None:
    moderator = DrainingHandle()
    runtime = FakeRuntime([moderator], max_open=4)
    learning = asyncio.Event()

    class Slow(FakeRecordClient):
        async def register(self, cases: Sequence[LabelledCase]) -> None:
            learning.set()
            await moderator.lost.wait()

    runtime.writers = Slow()
    held = Dispatcher(runtime, iter(_cases(4)), CompletedCases({}, {}))
    running = asyncio.create_task(held.run())
    await learning.wait()
    held.stop()
    await running
    assert (moderator.open, moderator.waits) == ([], [])


class AskingHandle(FakeModeratorHandle):
    """Every debate of it asks a person."""

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        form = Form("Topics", "", ("go on",))
        return ModeratorReport(
            [AssignmentOutcome(each.case.id, each.attempt, "parked", path="p", form=form) for each in assignments]
        )


class BudgetSpentHandle(FakeModeratorHandle):
    """Out of budget once the person has been asked."""

    def __init__(self, person: SlowPerson) -> None:
        super().__init__()
        self._person = person

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        self.open += assignments
        await self._person.asked.wait()
        done = [AssignmentOutcome(each.case.id, each.attempt, "stopped", "max_tokens") for each in self.open]
        self.open.clear()
        return ModeratorReport(done)


async def test_a_run_out_of_budget_waits_for_no_person() -> None:
    person = SlowPerson()
    runtime = FakeRuntime([AskingHandle(), BudgetSpentHandle(person)], 2)
    held = Dispatcher(runtime, iter(_cases(5)), CompletedCases({}, {}), person)
    async with asyncio.timeout(20):
        await held.run()
    assert (held.stopped_by, held.parked, person.dismissed) == ("max_tokens", ["c0"], 1)
    assert runtime.kept.registered == set(), "nothing is kept of any debate"
    assert {(end.case_id, end.cancelled) for end in runtime.kept.ends} == {("c0", ""), ("c1", "stopped")}
