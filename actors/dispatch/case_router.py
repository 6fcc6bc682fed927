"""Case router: assigns pending cases to moderators, and reassigns those of a lost moderator."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import structlog

from moot.actors.debate.engine import ModeratorLost, Runtime
from moot.actors.debate.moderator import Assignment, AssignmentOutcome
from moot.actors.dispatch.dispatcher import BATCH_SIZE, DRAIN_S
from moot.actors.limits.budget_forecast import BudgetForecast
from moot.actors.record.debate_result import DebateEnd, DebateResult
from moot.actors.record.schema import CaseKey
from moot.protocols.case import LabelledCase
from moot.protocols.errors import MootError


class DebateCancelled(MootError):
    """A debate was cancelled without a verdict: its case was cancelled, or the run was closed or has stopped.

    Its recorded part is not paid for again when the case is submitted again.
    """


class RunFailed(DebateCancelled):
    """A debate was cancelled because the run has failed: nothing more could be recorded reliably."""


class PendingCase:
    """Submitted case without a result. Created in the event loop of the submitter.

    Attributes:
        assignment: for the moderator.
        moderator: index of the moderator.
        content: hash of the case's content.
        result: future of the result; `DebateCancelled` when the debate was cancelled.
        is_registered: whether the record's writer knows the case, and may get rows of it.
        cancelled: see `DebateEnd`.
    """

    def __init__(self, labelled: LabelledCase, assignment: Assignment, moderator: int) -> None:
        self.labelled, self.assignment, self.moderator = labelled, assignment, moderator
        self.content = labelled.case.content_hash()
        self.result: asyncio.Future[DebateResult] = asyncio.get_running_loop().create_future()
        self.result.add_done_callback(_mark_retrieved)
        self.is_registered, self.cancelled = False, ""

    @property
    def key(self) -> CaseKey:
        """Key of the debate."""
        return (self.assignment.case.id, self.assignment.attempt)

    def resolve(self, how: DebateResult | DebateCancelled) -> None:
        """Set the result; the first one counts."""
        if self.result.done():
            return
        if isinstance(how, DebateCancelled):
            self.result.set_exception(how)
        else:
            self.result.set_result(how)


def _mark_retrieved(result: asyncio.Future[DebateResult]) -> None:
    """Mark the exception as retrieved: without waiters, asyncio would log it as an error."""
    if not result.cancelled():
        result.exception()


_log = structlog.get_logger(__name__)


class CaseRouter:
    """Routes pending cases to the moderators of a runtime that is up.

    Args:
        runtime: the engine.
        pending_of: the pending case of an id; None when nobody waits for it.
        settle: receives outcomes.
        forecast: bound on open debates over all moderators; None for no bound.
    """

    def __init__(
        self,
        runtime: Runtime,
        pending_of: Callable[[str], PendingCase | None],
        settle: Callable[[Sequence[AssignmentOutcome]], None],
        forecast: BudgetForecast | None = None,
    ) -> None:
        self._runtime, self._pending_of, self._settle = runtime, pending_of, settle
        self._queues: list[deque[PendingCase]] = [deque() for _ in runtime.moderators]
        self._assigned: list[dict[CaseKey, PendingCase]] = [{} for _ in runtime.moderators]
        self._wake = [asyncio.Event() for _ in runtime.moderators]
        self._busy = [asyncio.Event() for _ in runtime.moderators]
        self._draining = False
        self._forecast, self._coming = forecast, 0

    def loops(self) -> Iterable[Coroutine[Any, Any, None]]:
        """Loops that exchange messages with the moderators, to be run concurrently; each ends only with an error or
        when cancelled."""
        for number in range(len(self._queues)):
            yield self._feed(number)
            yield self._listen(number)

    def least_loaded(self) -> int:
        """Index of the moderator with the fewest debates."""
        return min(
            range(len(self._assigned)), key=lambda number: len(self._assigned[number]) + len(self._queues[number])
        )

    def submit(self, pending: PendingCase) -> None:
        """Queue a pending case for its moderator."""
        if self._draining:
            return
        self._queues[pending.moderator].append(pending)
        self._wake[pending.moderator].set()

    async def cancel(self, pending: PendingCase) -> None:
        """Cancel the debate of a pending case without waiters."""
        with suppress(ValueError):
            self._queues[pending.moderator].remove(pending)
        self._assigned[pending.moderator].pop(pending.key, None)
        self._feed_again()
        await self._runtime.moderators[pending.moderator].cancel([pending.key])

    def end(self, pending: PendingCase) -> None:
        """End a debate for the record, once its moderator has ended it; one that was submitted again stays open."""
        if pending.is_registered and self._pending_of(pending.key[0]) is None:
            self._runtime.writers.end([DebateEnd(*pending.key, pending.cancelled)])

    async def drain(self) -> None:
        """Let asks in flight finish, then cancel every debate; a lost moderator gets none again."""
        self._draining = True
        for queue in self._queues:
            queue.clear()
        await asyncio.gather(
            *(moderator.drain(DRAIN_S) for moderator in self._runtime.moderators), return_exceptions=True
        )

    def clear(self) -> None:
        """Drop every pending case, all without waiters."""
        for queue, assigned in zip(self._queues, self._assigned, strict=True):
            queue.clear()
            assigned.clear()

    async def _feed(self, number: int) -> None:
        """Send queued cases to one moderator."""
        moderator, queue = self._runtime.moderators[number], self._queues[number]
        while True:
            await self._wake[number].wait()
            self._wake[number].clear()
            while count := min(len(queue), BATCH_SIZE, self._room()):
                pending_cases = [queue.popleft() for _ in range(count)]
                self._coming += count
                try:
                    pending_cases = await self._registered(pending_cases)
                finally:
                    self._coming -= count
                if self._draining:
                    break
                self._assigned[number] |= {pending.key: pending for pending in pending_cases}
                self._busy[number].set()
                try:
                    report = await moderator.exchange([pending.assignment for pending in pending_cases], wait=False)
                except ModeratorLost:
                    self._lost(number)
                else:
                    self._ended(number, report.done)
                    left = [pending.key for pending in pending_cases if not self._is_waited_for(pending)]
                    if left:  # cancelled while the call was in flight
                        await moderator.cancel(left)

    def _room(self) -> int:
        """Number of further debates that may be assigned."""
        if self._forecast is None:
            return BATCH_SIZE
        return max(0, self._forecast.most_open - self._coming - sum(len(assigned) for assigned in self._assigned))

    def _feed_again(self) -> None:
        """Wake the loops with queued cases: the budgets may cover them now."""
        if self._forecast is not None:
            for queue, wake in zip(self._queues, self._wake, strict=True):
                if queue:
                    wake.set()

    async def _registered(self, pending_cases: Sequence[PendingCase]) -> list[PendingCase]:
        """Register cases with the record; returns those not cancelled meanwhile."""
        await self._runtime.writers.register([pending.labelled for pending in pending_cases])
        for pending in pending_cases:
            pending.is_registered = True
            self.end(pending)  # if it was cancelled meanwhile
        return [pending for pending in pending_cases if self._is_waited_for(pending)]

    def _is_waited_for(self, pending: PendingCase) -> bool:
        return self._pending_of(pending.key[0]) is pending

    async def _listen(self, number: int) -> None:
        """Receive the outcomes of one moderator."""
        moderator = self._runtime.moderators[number]
        while True:
            if not self._assigned[number]:
                self._busy[number].clear()
                await self._busy[number].wait()
            try:
                report = await moderator.exchange([], wait=True)
            except ModeratorLost:
                self._lost(number)
            else:
                self._ended(number, report.done)

    def _lost(self, number: int) -> None:
        """Reassign every debate of a moderator that died and was restarted.

        Both loops notice a death, and a second death may happen in between, so all its debates are sent each time. The
        moderator ignores duplicates.
        """
        lost, self._assigned[number] = self._assigned[number], {}
        if lost:
            _log.warning("a moderator was lost; its debates resume from the journal", debates=len(lost))
        for pending in lost.values():
            pending.assignment = msgspec.structs.replace(pending.assignment, replay=True)
            self.submit(pending)

    def _ended(self, number: int, done: Sequence[AssignmentOutcome]) -> None:
        for outcome in done:
            self._assigned[number].pop((outcome.case_id, outcome.attempt), None)
            if self._forecast is not None:
                self._forecast.settle(outcome.paid, whole=outcome.is_whole)
        self._settle(done)
        self._feed_again()
