"""Queue dispatcher: accepts cases during the run and returns each result to its submitter.

The other dispatcher runs a task that is known at the start; this one assigns cases to moderators as they arrive.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec
import structlog

from moot.actors.debate.engine import Runtime, WriterPool
from moot.actors.debate.moderator import Assignment, AssignmentOutcome
from moot.actors.dispatch.case_router import CaseRouter, DebateCancelled, PendingCase, RunFailed
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.dispatch.event_streams import EventStream, EventStreams
from moot.actors.dispatch.mailbox import Mailbox
from moot.actors.limits.budget_forecast import BudgetForecast
from moot.actors.record.debate_result import STOPPED, WITHDRAWN, DebateResult
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RunMismatch

_ASK_EACH_S = 0.02
_Question = tuple[str, asyncio.Future[DebateResult | None]]


class ResultLookup:
    """Batched lookup of recorded results; a failed read is an error of its own callers only.

    Args:
        writers: the record's writers.
    """

    def __init__(self, writers: WriterPool) -> None:
        self._writers = writers
        self._unanswered: set[_Question] = set()
        self._questions: Mailbox[_Question] = Mailbox(self._ask, spacing_s=_ASK_EACH_S)
        self._closed = False

    async def result(self, case_id: str) -> DebateResult | None:
        """Recorded result of a case; None when there is none.

        Raises:
            DebateCancelled: the lookup was closed before the record answered.
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
        """Stop reading; pending lookups get `DebateCancelled`."""
        self._closed = True
        await self._questions.close()
        for case_id, answer in self._unanswered:
            if not answer.done():
                answer.set_exception(_closed(case_id))

    async def _ask(self, batch: list[_Question]) -> None:
        try:
            results = await self._writers.results([case_id for case_id, _ in batch])
        except Exception as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        for case_id, answer in batch:
            if not answer.done():
                answer.set_result(results.get(case_id))


def _closed(case_id: str) -> DebateCancelled:
    return DebateCancelled(f"the run was closed before its record returned the result of case {case_id!r}")


_log = structlog.get_logger(__name__)
_POLL_S = 0.1
_LAST_EVENTS_WITHIN_S = 5.0


class QueueDispatcher:
    """Dispatcher of cases that are submitted one by one. Runs in one event loop, over a runtime that has started.

    Args:
        runtime: the engine.
        completed: index of the record.
        followed: whether debates have event streams.
        in_words: describes for users why the run stopped.
        forecast: bound on open debates by the run's budgets; None without budgets.

    Attributes:
        stopped_by: reason why the run stopped by itself: a budget, an endpoint; empty otherwise.
    """

    def __init__(
        self,
        runtime: Runtime,
        completed: CompletedCases,
        *,
        followed: bool = True,
        in_words: Callable[[str], str] = str,
        forecast: BudgetForecast | None = None,
    ) -> None:
        self._in_words = in_words
        self._runtime, self._completed, self._followed = runtime, completed, followed
        self._pending_cases: dict[str, PendingCase] = {}
        self._router = CaseRouter(runtime, self._pending_cases.get, self._settle, forecast)
        self._event_streams = EventStreams()
        self._ending: list[str] = []
        self._lookup = ResultLookup(runtime.writers)
        self._refusal: DebateCancelled | None = None
        self._draining: asyncio.Task[None] | None = None
        self.stopped_by = ""
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start accepting cases."""
        for each in [*self._router.loops(), *([self._follow()] if self._followed else [])]:
            task = asyncio.create_task(each)
            task.add_done_callback(self._served)
            self._tasks.append(task)

    @property
    def waiting(self) -> int:
        """Number of submitted cases without a result."""
        return len(self._pending_cases)

    async def run_case(self, labelled: LabelledCase) -> DebateResult:
        """Run the debate of a case and wait for its durable result; a recorded result is returned without a debate.

        Several callers may wait for one case. Cancelling this call does not cancel the debate.

        Raises:
            RunMismatch: the record has other content under the case's id.
            DebateCancelled: the debate was cancelled.
        """
        case = labelled.case
        pending = self._pending_cases.get(case.id)
        if pending is not None and pending.content != case.content_hash():
            raise RunMismatch(f"case {case.id!r} is being debated with other content: give it another id")
        if pending is None:
            if self._refusal is not None:
                kind = RunFailed if isinstance(self._refusal, RunFailed) else DebateCancelled
                raise kind(str(self._refusal)) from self._refusal
            assignment = self._completed.assignment(labelled)
            if assignment is None:
                return await self._from_record(case.id)
            pending = self._receive(labelled, assignment)
        return await asyncio.shield(pending.result)

    def _receive(self, labelled: LabelledCase, assignment: Assignment) -> PendingCase:
        assignment = msgspec.structs.replace(assignment, return_result=True)
        pending = self._pending_cases[labelled.case.id] = PendingCase(labelled, assignment, self._router.least_loaded())
        self._completed.mark_started(labelled.case.id, pending.content)
        if self._followed:
            self._event_streams.open(labelled.case.id, time.time() if assignment.replay else None)
        self._router.submit(pending)
        return pending

    async def cancel(self, case_id: str) -> bool:
        """Cancel the debate of a case, for all waiters; False when it is not being debated."""
        pending = self._pending_cases.pop(case_id, None)
        if pending is None:
            return False
        pending.cancelled = WITHDRAWN
        self._end(pending, DebateCancelled(f"case {case_id!r} was withdrawn"))
        try:
            await self._router.cancel(pending)
        finally:
            self._router.end(pending)
        return True

    async def recorded_result(self, case_id: str) -> DebateResult | None:
        """Result of a case with a verdict on record; None for any other case.

        Raises:
            DebateCancelled: the record does not return it, or was closed.
        """
        return await self._from_record(case_id) if self._completed.is_completed(case_id) else None

    def event_stream(self, case_id: str) -> EventStream | None:
        """Event stream of a debate; None unless it is open or ended recently."""
        return self._event_streams.of(case_id)

    def has_started(self, case_id: str) -> bool:
        """Whether the debate of a case has had its first event, and so no longer waits for a place."""
        event_stream = self._event_streams.of(case_id)
        return event_stream is not None and event_stream.has_events

    @property
    def error(self) -> BaseException | None:
        """Error that failed the run; None while it runs, and when it was closed or stopped by a budget."""
        return self._refusal if isinstance(self._refusal, RunFailed) else None

    @property
    def stop_reason(self) -> str:
        """Reason why no more cases are accepted: a budget, an error; empty while they are."""
        return "" if self._refusal is None else str(self._refusal)

    async def close(self, drain_s: float) -> int:
        """Stop accepting cases, wait up to `drain_s` seconds for open debates, then cancel them. Returns the number of
        cancelled debates."""
        self._refuse(DebateCancelled("the run is being closed"))
        open_ones = [pending.result for pending in self._pending_cases.values()]
        if open_ones:
            await asyncio.wait(open_ones, timeout=drain_s)
        left = len(self._pending_cases)
        if left:
            await self._router.drain()
        for pending in self._cancel_all(DebateCancelled("the run was closed before it had a verdict")):
            self._router.end(pending)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *filter(None, [self._draining]), return_exceptions=True)
        await self._close_event_streams()
        await self._lookup.close()
        return left

    async def _from_record(self, case_id: str) -> DebateResult:
        result = await self._lookup.result(case_id)
        if result is None:
            raise DebateCancelled(f"case {case_id!r} has a verdict that cannot be read from the record")
        return msgspec.structs.replace(result, reused=True)

    def _settle(self, done: Sequence[AssignmentOutcome]) -> None:
        for outcome in sorted(done, key=lambda each: each.status == "stopped"):
            pending = self._pending_cases.get(outcome.case_id)
            if pending is None or pending.key != (outcome.case_id, outcome.attempt):
                continue
            if outcome.status == "stopped":
                self._stop(outcome.why)
                return
            del self._pending_cases[outcome.case_id]
            self._router.end(pending)
            if outcome.result is None:
                self._end(pending, DebateCancelled(f"case {outcome.case_id!r} waits for a person"))
                continue
            self._completed.mark_completed(outcome.case_id, outcome.attempt, failed=outcome.status == "failed")
            self._end(pending, outcome.result)

    def _stop(self, why: str) -> None:
        """Stop the run, for a budget or an endpoint: cancel the other debates, whose asks would be paid in vain."""
        self.stopped_by = why
        stopped = DebateCancelled(f"the run has stopped: {self._in_words(why)}")
        self._refuse(stopped)
        cancelled = self._cancel_all(stopped)
        for pending in cancelled:
            pending.cancelled = STOPPED
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(cancelled))

    async def _drain(self, cancelled: Sequence[PendingCase]) -> None:
        try:
            await self._router.drain()
        finally:
            for pending in cancelled:
                self._router.end(pending)

    def _end(self, pending: PendingCase, how: DebateResult | DebateCancelled) -> None:
        """End a debate for its submitters and followers."""
        pending.resolve(how)
        if self._followed:
            self._ending.append(pending.labelled.case.id)

    def _refuse(self, why: DebateCancelled) -> None:
        self._refusal = self._refusal or why

    def _cancel_all(self, why: DebateCancelled) -> list[PendingCase]:
        """Cancel every debate for its submitters; returns the pending cases, to be ended for the record later."""
        pending_cases = list(self._pending_cases.values())
        self._pending_cases.clear()
        for pending in pending_cases:
            self._end(pending, why)
            self._event_streams.close(pending.labelled.case.id)
        self._router.clear()
        return pending_cases

    async def _follow(self) -> None:
        """Add events to their debates' streams; close the stream of an ended debate after its last event."""
        while True:
            await asyncio.sleep(_POLL_S)
            ending, self._ending = self._ending, []
            if not ending and not self._pending_cases:
                continue
            await self._take_events()
            for case_id in ending:
                if case_id not in self._pending_cases:
                    self._event_streams.close(case_id)

    async def _take_events(self) -> None:
        while events := await self._runtime.writers.events():
            self._event_streams.add(events)

    async def _close_event_streams(self) -> None:
        """Close every stream, even if the last events cannot be read."""
        if self._followed:
            try:
                async with asyncio.timeout(_LAST_EVENTS_WITHIN_S):
                    await self._take_events()
            except Exception as error:
                _log.warning("the last events of the run are not delivered", error=repr(error))
            self._event_streams.close_all()

    def _served(self, task: asyncio.Task[None]) -> None:
        """Fail the run when one of its loops has failed: nothing more could be recorded reliably."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        _log.error("the run cannot continue", error=repr(error))
        failed = RunFailed(f"the run cannot continue: {error}")
        self._refuse(failed)
        for pending in self._cancel_all(failed):
            self._router.end(pending)
