"""Seating: which debate is at which moderator, and how one that was at a lost moderator gets there again."""

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
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.schema import CaseKey
from moot.protocols.case import LabelledCase
from moot.protocols.errors import MootError


class DebateCancelled(MootError):
    """A debate that was put aside without a verdict: its case was withdrawn, or the run was closed or has stopped.

    What is on record of it is not paid for again when the case is brought another time.
    """


class RunFailed(DebateCancelled):
    """A debate that was put aside because the run cannot go on: nothing can be trusted to be kept any more."""


class PendingCase:
    """A case that is being debated for somebody. Made in the event loop of whoever waits.

    Attributes:
        assignment: what a moderator is handed.
        seat: the number of the moderator's seat.
        content: hash of the case's content.
        told: how it ended; `DebateCancelled` when it was put aside.
    """

    def __init__(self, labelled: LabelledCase, assignment: Assignment, moderator: int) -> None:
        self.labelled, self.assignment, self.moderator = labelled, assignment, moderator
        self.content = labelled.case.content_hash()
        self.result: asyncio.Future[DebateResult] = asyncio.get_running_loop().create_future()
        self.result.add_done_callback(_mark_retrieved)

    @property
    def key(self) -> CaseKey:
        """Which debate."""
        return (self.assignment.case.id, self.assignment.attempt)

    def resolve(self, how: DebateResult | DebateCancelled) -> None:
        """Tell whoever waits; what ended first counts."""
        if self.result.done():
            return
        if isinstance(how, DebateCancelled):
            self.result.set_exception(how)
        else:
            self.result.set_result(how)


def _mark_retrieved(told: asyncio.Future[DebateResult]) -> None:
    """Nobody may be waiting any more: an end without a verdict is no error of theirs."""
    if not told.cancelled():
        told.exception()


_log = structlog.get_logger(__name__)


class CaseRouter:
    """The visits at the moderators of a runtime that is up.

    Args:
        runtime: the engine.
        visit_of: the visit of a case that somebody waits for; None when nobody does.
        settle: takes what has ended.
        affordable: how many debates may be at moderators; None for no bound.
    """

    def __init__(
        self,
        runtime: Runtime,
        visit_of: Callable[[str], PendingCase | None],
        settle: Callable[[Sequence[AssignmentOutcome]], None],
        affordable: BudgetForecast | None = None,
    ) -> None:
        self._runtime, self._visit_of, self._settle = runtime, visit_of, settle
        self._queues: list[deque[PendingCase]] = [deque() for _ in runtime.moderators]
        self._held: list[dict[CaseKey, PendingCase]] = [{} for _ in runtime.moderators]
        self._wake = [asyncio.Event() for _ in runtime.moderators]
        self._busy = [asyncio.Event() for _ in runtime.moderators]
        self._draining = False
        self._affordable, self._coming = affordable, 0

    def loops(self) -> Iterable[Coroutine[Any, Any, None]]:
        """What talks to the moderators, to be run side by side; each ends only with an error or when cancelled."""
        for number in range(len(self._queues)):
            yield self._feed(number)
            yield self._listen(number)

    def least_loaded(self) -> int:
        """The seat that has the fewest debates."""
        return min(range(len(self._held)), key=lambda number: len(self._held[number]) + len(self._queues[number]))

    def submit(self, pending: PendingCase) -> None:
        """Hand a visit over to its seat as soon as that can be."""
        if self._draining:
            return
        self._queues[pending.moderator].append(pending)
        self._wake[pending.moderator].set()

    async def cancel(self, pending: PendingCase) -> None:
        """Put the debate of a visit aside that is waited for no more."""
        with suppress(ValueError):
            self._queues[pending.moderator].remove(pending)
        self._held[pending.moderator].pop(pending.key, None)
        self._feed_again()
        await self._runtime.moderators[pending.moderator].cancel([pending.key])

    async def drain(self) -> None:
        """Let asks under way finish, then have every debate put aside; a moderator that is lost gets none again."""
        self._draining = True
        for queue in self._queues:
            queue.clear()
        await asyncio.gather(
            *(moderator.drain(DRAIN_S) for moderator in self._runtime.moderators), return_exceptions=True
        )

    def clear(self) -> None:
        """Hand over nothing more of what is here: none of it is waited for."""
        for queue, held in zip(self._queues, self._held, strict=True):
            queue.clear()
            held.clear()

    async def _feed(self, number: int) -> None:
        """Hand over what comes to one seat."""
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
                self._held[number] |= {pending.key: pending for pending in pending_cases}
                self._busy[number].set()
                try:
                    report = await moderator.exchange([pending.assignment for pending in pending_cases], wait=False)
                except ModeratorLost:
                    self._lost(number)
                else:
                    self._ended(number, report.done)
                    left = [pending.key for pending in pending_cases if not self._is_waited_for(pending)]
                    if left:  # withdrawn while they were on their way
                        await moderator.cancel(left)

    def _room(self) -> int:
        """How many more debates may be handed over."""
        if self._affordable is None:
            return BATCH_SIZE
        return max(0, self._affordable.most_open - self._coming - sum(len(held) for held in self._held))

    def _feed_again(self) -> None:
        """There may be room now for what the budgets have kept back."""
        if self._affordable is not None:
            for queue, wake in zip(self._queues, self._wake, strict=True):
                if queue:
                    wake.set()

    async def _registered(self, pending_cases: Sequence[PendingCase]) -> list[PendingCase]:
        """Make the record know the cases of visits; those that were not withdrawn meanwhile."""
        writers = self._runtime.writers
        await writers.register([pending.labelled for pending in pending_cases])
        writers.forget([pending.key[0] for pending in pending_cases if self._visit_of(pending.key[0]) is None])
        return [pending for pending in pending_cases if self._is_waited_for(pending)]

    def _is_waited_for(self, pending: PendingCase) -> bool:
        return self._visit_of(pending.key[0]) is pending

    async def _listen(self, number: int) -> None:
        """Learn what has ended at one seat."""
        moderator = self._runtime.moderators[number]
        while True:
            if not self._held[number]:
                self._busy[number].clear()
                await self._busy[number].wait()
            try:
                report = await moderator.exchange([], wait=True)
            except ModeratorLost:
                self._lost(number)
            else:
                self._ended(number, report.done)

    def _lost(self, number: int) -> None:
        """A moderator died; it is back, and told again of every debate that it had.

        Both that talk to it learn of a death, and another one may lie between: whatever it is held to have is handed
        over each time. What it has already, it ignores.
        """
        lost, self._held[number] = self._held[number], {}
        if lost:
            _log.warning("a moderator was lost; its debates go on from the journal", debates=len(lost))
        for pending in lost.values():
            pending.assignment = msgspec.structs.replace(pending.assignment, replay=True)
            self.submit(pending)

    def _ended(self, number: int, done: Sequence[AssignmentOutcome]) -> None:
        for outcome in done:
            self._held[number].pop((outcome.case_id, outcome.attempt), None)
            if self._affordable is not None:
                self._affordable.settle(outcome.paid, whole=outcome.is_whole)
        self._settle(done)
        self._feed_again()
