"""The reception: cases come while the run lives, and each verdict is told to whoever brought its case.

The arena holds a task that is known when it begins; here cases are handed to moderators the moment they come.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec
import structlog

from moot.actors.case_router import CaseRouter, DebateCancelled, PendingCase, RunFailed, SubmissionResult
from moot.actors.dispatcher import CompletedCases, Runtime, WriterPool
from moot.actors.event_streams import EventStream, EventStreams
from moot.actors.limits.budget_forecast import BudgetForecast
from moot.actors.moderator import Assignment, DebateOutcome
from moot.actors.record.debate_result import DebateResult
from moot.actors.remote.mailbox import Mailbox
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RunMismatch

_ASK_EACH_S = 0.02
_Question = tuple[str, asyncio.Future[DebateResult | None]]


class ResultLookup:
    """Reads recorded verdicts for whoever asks; one reading that fails is the error of those who asked for it.

    Args:
        archive: the record's writers.
    """

    def __init__(self, archive: WriterPool) -> None:
        self._archive = archive
        self._unanswered: set[_Question] = set()
        self._questions: Mailbox[_Question] = Mailbox(self._ask, spacing_s=_ASK_EACH_S)
        self._closed = False

    async def result(self, case_id: str) -> DebateResult | None:
        """How a case ended; None when the record does not say.

        Raises:
            NotHeld: this was closed before the record had answered.
        """
        if self._closed:
            raise _closed(case_id)
        question: _Question = (case_id, asyncio.get_running_loop().create_future())
        self._unanswered.add(question)
        try:
            self._questions.post(question)
            return await question[1]
        finally:
            self._unanswered.discard(question)

    async def close(self) -> None:
        """Read no more; whoever still waits for an answer gets `DebateCancelled`."""
        self._closed = True
        await self._questions.close()
        for case_id, answer in self._unanswered:
            if not answer.done():
                answer.set_exception(_closed(case_id))

    async def _ask(self, batch: list[_Question]) -> None:
        try:
            found = await self._archive.results([case_id for case_id, _ in batch])
        except Exception as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        for case_id, answer in batch:
            if not answer.done():
                answer.set_result(found.get(case_id))


def _closed(case_id: str) -> DebateCancelled:
    return DebateCancelled(f"the run was closed before its record told how case {case_id!r} ended")


_log = structlog.get_logger(__name__)
_LOOK_EACH_S = 0.1
_LAST_LOOK_S = 5.0


class QueueDispatcher:
    """Takes cases one by one. Lives in one event loop, over a runtime that is up.

    Args:
        runtime: the engine.
        past: what the record already holds.
        followed: whether anybody may want a debate's events; without them `trail` knows of none.
        in_words: says for people what has stopped the run.
        affordable: how many debates the run's budgets let be open; None for a run without.

    Attributes:
        stopped_by: what put debates aside that nobody asked to stop: a budget, an endpoint; empty otherwise.
    """

    def __init__(
        self,
        runtime: Runtime,
        past: CompletedCases,
        *,
        followed: bool = True,
        in_words: Callable[[str], str] = str,
        affordable: BudgetForecast | None = None,
    ) -> None:
        self._in_words = in_words
        self._runtime, self._past, self._followed = runtime, past, followed
        self._visits: dict[str, PendingCase] = {}
        self._seating = CaseRouter(runtime, self._visits.get, self._settle, affordable)
        self._trails = EventStreams()
        self._ending: list[str] = []
        self._recall = ResultLookup(runtime.writers)
        self._refusal: DebateCancelled | None = None
        self._draining: asyncio.Task[None] | None = None
        self.stopped_by = ""
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to take cases."""
        for each in [*self._seating.loops(), *([self._follow()] if self._followed else [])]:
            task = asyncio.create_task(each)
            task.add_done_callback(self._served)
            self._tasks.append(task)

    @property
    def waiting(self) -> int:
        """How many cases have come and have not ended."""
        return len(self._visits)

    async def run_case(self, labelled: LabelledCase) -> SubmissionResult:
        """Debate a case and wait for its end, which is durable then; one that is on record is told from there.

        A case that is being debated already is waited for together. Cancelling this leaves the debate going on.

        Raises:
            RunMismatch: the record has other content under the case's id.
            NotHeld: it was put aside.
        """
        case = labelled.case
        visit = self._visits.get(case.id)
        if visit is not None and visit.content != case.content_hash():
            raise RunMismatch(f"case {case.id!r} is being debated with other content: give it another id")
        if visit is None:
            if self._refusal is not None:
                kind = RunFailed if isinstance(self._refusal, RunFailed) else DebateCancelled
                raise kind(str(self._refusal)) from self._refusal
            assignment = self._past.assignment(labelled)
            if assignment is None:
                return await self._from_record(case.id)
            visit = self._receive(labelled, assignment)
        return await asyncio.shield(visit.result)

    def _receive(self, labelled: LabelledCase, assignment: Assignment) -> PendingCase:
        told = msgspec.structs.replace(assignment, return_result=True)
        visit = self._visits[labelled.case.id] = PendingCase(labelled, told, self._seating.least_loaded())
        self._past.mark_started(labelled.case.id, visit.content)
        if self._followed:
            self._trails.open(labelled.case.id, time.time() if assignment.replay else None)
        self._seating.submit(visit)
        return visit

    async def cancel(self, case_id: str) -> bool:
        """Put the debate of a case aside, for everybody who waits for it; False when it is not being debated."""
        visit = self._visits.pop(case_id, None)
        if visit is None:
            return False
        self._end(visit, DebateCancelled(f"case {case_id!r} was withdrawn"))
        await self._seating.cancel(visit)
        return True

    async def recorded_result(self, case_id: str) -> SubmissionResult | None:
        """How a case ended that has a verdict on record; None for any other one.

        Raises:
            NotHeld: the record does not give it back, or was closed before it did.
        """
        return await self._from_record(case_id) if self._past.is_completed(case_id) else None

    def event_stream(self, case_id: str) -> EventStream | None:
        """What happens in a debate; None when it is not open and did not end lately."""
        return self._trails.of(case_id)

    def has_started(self, case_id: str) -> bool:
        """Whether a case that is being held has had its first event, so that it no longer waits for a place."""
        trail = self._trails.of(case_id)
        return trail is not None and trail.has_events

    @property
    def error(self) -> BaseException | None:
        """What ended the talk with the engine, so that nothing can be held any more; None while it goes on, and when
        the run was closed or stopped by a budget."""
        return self._refusal if isinstance(self._refusal, RunFailed) else None

    @property
    def stop_reason(self) -> str:
        """Why nothing is held any more, a budget or worse; empty while cases are taken."""
        return "" if self._refusal is None else str(self._refusal)

    async def close(self, drain_s: float) -> int:
        """Take nothing more; debates may end for so many seconds, then they are put aside. Gives how many were."""
        self._refuse(DebateCancelled("the run is being closed"))
        open_ones = [visit.result for visit in self._visits.values()]
        if open_ones:
            await asyncio.wait(open_ones, timeout=drain_s)
        left = len(self._visits)
        if left:
            await self._seating.drain()
        self._cancel_all(DebateCancelled("the run was closed before it had a verdict"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *filter(None, [self._draining]), return_exceptions=True)
        await self._end_trails()
        await self._recall.close()
        return left

    async def _from_record(self, case_id: str) -> SubmissionResult:
        ended = await self._recall.result(case_id)
        if ended is None:
            raise DebateCancelled(f"case {case_id!r} has a verdict that the record does not give back")
        return SubmissionResult(ended, reused=True)

    def _settle(self, done: Sequence[DebateOutcome]) -> None:
        for outcome in sorted(done, key=lambda each: each.status == "stopped"):
            visit = self._visits.get(outcome.case_id)
            if visit is None or visit.key != (outcome.case_id, outcome.attempt):
                continue
            if outcome.status == "stopped":
                self._stop(outcome.why)
                return
            del self._visits[outcome.case_id]
            if outcome.result is None:
                self._end(visit, DebateCancelled(f"case {outcome.case_id!r} waits for a person"))
                continue
            self._past.mark_completed(outcome.case_id, outcome.attempt, failed=outcome.status == "failed")
            self._end(visit, SubmissionResult(outcome.result, reused=False))

    def _stop(self, why: str) -> None:
        """A budget or an endpoint ends the run: what the other debates ask for would be paid for nobody."""
        self.stopped_by = why
        stopped = DebateCancelled(f"the run has stopped: {self._in_words(why)}")
        self._refuse(stopped)
        self._cancel_all(stopped)
        if self._draining is None:
            self._draining = asyncio.create_task(self._seating.drain())

    def _end(self, visit: PendingCase, how: SubmissionResult | DebateCancelled) -> None:
        visit.resolve(how)
        if self._followed:
            self._ending.append(visit.labelled.case.id)
        self._runtime.writers.forget([visit.labelled.case.id])

    def _refuse(self, why: DebateCancelled) -> None:
        self._refusal = self._refusal or why

    def _cancel_all(self, why: DebateCancelled) -> None:
        visits = list(self._visits.values())
        self._visits.clear()
        for visit in visits:
            self._end(visit, why)
            self._trails.close(visit.labelled.case.id)
        self._seating.clear()

    async def _follow(self) -> None:
        """Put events on their debates' trails; one that has ended is closed when all of its have come."""
        while True:
            await asyncio.sleep(_LOOK_EACH_S)
            ending, self._ending = self._ending, []
            if not ending and not self._visits:
                continue
            await self._take_events()
            for case_id in ending:
                if case_id not in self._visits:
                    self._trails.close(case_id)

    async def _take_events(self) -> None:
        while found := await self._runtime.writers.events():
            self._trails.add(found)

    async def _end_trails(self) -> None:
        """Nobody is to wait for more, also where the last events cannot be had."""
        if self._followed:
            try:
                async with asyncio.timeout(_LAST_LOOK_S):
                    await self._take_events()
            except Exception as error:
                _log.warning("the last events of the run are not told", error=repr(error))
            self._trails.close_all()

    def _served(self, task: asyncio.Task[None]) -> None:
        """A talk with the engine that ended with an error ends the run: nothing can be trusted to be kept any more."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        _log.error("the run cannot go on", error=repr(error))
        broken = RunFailed(f"the run cannot go on: {error}")
        self._refuse(broken)
        self._cancel_all(broken)
