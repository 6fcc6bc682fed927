"""Dispatcher: assigns the cases of a task to moderators, with a bound on open debates, until all have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import structlog

from moot.actors.debate.engine import ModeratorHandle, ModeratorLost, Runtime
from moot.actors.debate.moderator import Assignment, AssignmentOutcome
from moot.actors.debate.pending_decisions import PendingDecisions, Person
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.limits.budget_forecast import BudgetForecast
from moot.actors.record.debate_result import STOPPED, DebateEnd
from moot.actors.record.schema import CaseKey
from moot.actors.telemetry.failpoints import failpoint
from moot.protocols.case import LabelledCase

_log = structlog.get_logger(__name__)
BATCH_SIZE = 128
"""Most cases per assignment call."""

_PREFETCH = 3
"""Prefetched cases per place: one that is debated, one whose verdict is about to be durable, and one queued at the
moderator, so that a free place is filled at once. With a slow record, unwritten verdicts stay bounded."""

DRAIN_S = 6.0
"""Seconds for asks in flight to finish when a run is stopped."""

_POLL_S = 0.2
"""Seconds between polls of a moderator while a decision is pending, so that it does not wait for another debate."""


class Dispatcher:
    """Dispatcher of one task.

    Args:
        runtime: started before `run`.
        cases: the task's cases, read lazily.
        completed: index of the record.
        person: answers forms during the run; None leaves the debates that ask waiting.
        forecast: bound on open debates by the run's budgets; None without budgets.

    Attributes:
        stopped_by: reason why the run stopped by itself: a budget, an endpoint; empty otherwise.
    """

    def __init__(
        self,
        runtime: Runtime,
        cases: Iterator[LabelledCase],
        completed: CompletedCases,
        person: Person | None = None,
        forecast: BudgetForecast | None = None,
    ) -> None:
        self._runtime, self._cases, self._completed = runtime, cases, completed
        self._assigned = [0] * len(runtime.moderators)
        self._person, self._forecast = person, forecast
        self._exhausted = False
        self._change = asyncio.Event()
        self._reading = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._decisions: list[PendingDecisions] = []
        self.stopped_by = ""

    def stop(self) -> None:
        """Request a drain: no new debates start, asks in flight finish, open debates are cancelled."""
        self._stopping.set()

    @property
    def parked(self) -> list[str]:
        """Ids of the cases waiting for a person, for which this run does not wait."""
        return [case_id for decisions in self._decisions for case_id in decisions.undecided]

    @property
    def is_draining(self) -> bool:
        """Whether a drain was requested."""
        return self._stopping.is_set()

    async def run(self) -> None:
        """Run every debate that is not done yet; returns when all have ended, or after a drain."""
        moderators = self._runtime.moderators
        self._assigned = [0] * len(moderators)
        self._decisions = [PendingDecisions(self._person, self._leave) for _ in moderators]
        serving = asyncio.gather(*(self._serve(number, moderator) for number, moderator in enumerate(moderators)))
        stopping = asyncio.ensure_future(self._stopping.wait())
        both: list[asyncio.Future[Any]] = [serving, stopping]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            if self.is_draining:
                await asyncio.gather(*(moderator.drain(DRAIN_S) for moderator in moderators), return_exceptions=True)
        finally:
            stopping.cancel()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await asyncio.gather(*(decisions.close() for decisions in self._decisions))

    async def _serve(self, number: int, moderator: ModeratorHandle) -> None:
        waiting: dict[CaseKey, Assignment] = {}
        again: list[Assignment] = []
        decisions = self._decisions[number]
        while True:
            again += decisions.pop_decided()
            change = self._change
            batch = again or await self._next(number)
            if batch and self.is_draining:
                return
            again = []
            waiting |= {(a.case.id, a.attempt): a for a in batch}
            self._assigned[number] = len(waiting)
            if not waiting:
                if decisions.busy:
                    await decisions.wait()
                elif self._exhausted:
                    return
                else:  # the budget covers no other debate until an open one has ended
                    await change.wait()
                continue
            wait = not batch or not self._room(number)
            try:
                report = await moderator.exchange(batch, wait=wait and not decisions.busy)
            except ModeratorLost:
                if self.is_draining:
                    return
                again = [Assignment(a.case, a.attempt, True, a.invalid, a.decided) for a in waiting.values()]
                _log.warning("a moderator was lost; its debates resume from the journal", debates=len(again))
                continue
            failpoint("driver.fed")
            self._settle(report.done, waiting, decisions)
            self._assigned[number] = len(waiting)
            if report.done:
                self._change.set()
                self._change = asyncio.Event()
            if wait and decisions.busy and not report.done:
                await decisions.wait(_POLL_S)

    def _room(self, number: int) -> int:
        """Number of further cases for a moderator: beyond its places only when no other moderator has a free place, and
        over all moderators no more than the budgets cover."""
        places = max(1, self._runtime.max_open // len(self._assigned))
        others = self._assigned[:number] + self._assigned[number + 1 :]
        most = places * _PREFETCH if all(assigned >= places for assigned in others) else places
        room = most - self._assigned[number]
        if self._forecast is not None:
            room = min(room, self._forecast.most_open - sum(self._assigned))
        return max(0, room)

    def _settle(
        self, done: Sequence[AssignmentOutcome], waiting: dict[CaseKey, Assignment], decisions: PendingDecisions
    ) -> None:
        ends = []
        for outcome in done:
            assignment = waiting.pop((outcome.case_id, outcome.attempt), None)
            if self._forecast is not None:
                self._forecast.settle(outcome.paid, whole=outcome.is_whole)
            if outcome.status != "parked":
                cancelled = STOPPED if outcome.status == "stopped" else ""
                ends.append(DebateEnd(outcome.case_id, outcome.attempt, cancelled))
            elif assignment is not None:
                decisions.add(assignment, outcome)
            if outcome.status == "stopped":
                self.stopped_by, self._exhausted = outcome.why, True
                for each in self._decisions:  # no debate could resume with a decision: do not wait for one
                    each.cancel()
        self._runtime.writers.end(ends)

    def _leave(self, case_id: str, attempt: int) -> None:
        """End a debate for this run, which has no decision of a person: it waits in the record."""
        self._runtime.writers.end([DebateEnd(case_id, attempt)])

    async def _next(self, number: int) -> list[Assignment]:
        """Next pending debates of a moderator, as many as it has room for, registered with the record."""
        async with self._reading:
            count = 0 if self._exhausted else min(self._room(number), BATCH_SIZE)
            taken = await asyncio.to_thread(self._take, count) if count else []
            self._assigned[number] += len(taken)
        if taken:
            await self._runtime.writers.register([labelled for labelled, _ in taken])
        return [assignment for _, assignment in taken]

    def _take(self, count: int) -> list[tuple[LabelledCase, Assignment]]:
        """The next `count` cases that are not done; reading a pipe may block, so this runs in a thread."""
        taken: list[tuple[LabelledCase, Assignment]] = []
        while len(taken) < count:
            labelled = next(self._cases, None)
            if labelled is None:
                self._exhausted = True
                break
            assignment = self._completed.assignment(labelled)
            if assignment is not None:
                taken.append((labelled, assignment))
        return taken
