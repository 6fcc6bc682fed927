"""The reception: cases come while the run lives, and each verdict is told to whoever brought its case.

The dispatcher holds a task that is known when it begins; here cases are handed to moderators the moment they come.
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
from moot.actors.record.debate_result import DebateResult
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RunMismatch

_ASK_EACH_S = 0.02
_Question = tuple[str, asyncio.Future[DebateResult | None]]


class ResultLookup:
    """Reads recorded verdicts for whoever asks; one reading that fails is the error of those who asked for it.

    Args:
        archive: the record's writers.
    """

    def __init__(self, writers: WriterPool) -> None:
        self._writers = writers
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
            found = await self._writers.results([case_id for case_id, _ in batch])
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
        followed: whether anybody may want a debate's events; without them `event_stream` knows of none.
        in_words: says for people what has stopped the run.
        affordable: how many debates the run's budgets let be open; None for a run without.

    Attributes:
        stopped_by: what put debates aside that nobody asked to stop: a budget, an endpoint; empty otherwise.
    """

    def __init__(
        self,
        runtime: Runtime,
        completed: CompletedCases,
        *,
        followed: bool = True,
        in_words: Callable[[str], str] = str,
        affordable: BudgetForecast | None = None,
    ) -> None:
        self._in_words = in_words
        self._runtime, self._completed, self._followed = runtime, completed, followed
        self._pending_cases: dict[str, PendingCase] = {}
        self._router = CaseRouter(runtime, self._pending_cases.get, self._settle, affordable)
        self._event_streams = EventStreams()
        self._ending: list[str] = []
        self._recall = ResultLookup(runtime.writers)
        self._refusal: DebateCancelled | None = None
        self._draining: asyncio.Task[None] | None = None
        self.stopped_by = ""
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to take cases."""
        for each in [*self._router.loops(), *([self._follow()] if self._followed else [])]:
            task = asyncio.create_task(each)
            task.add_done_callback(self._served)
            self._tasks.append(task)

    @property
    def waiting(self) -> int:
        """How many cases have come and have not ended."""
        return len(self._pending_cases)

    async def run_case(self, labelled: LabelledCase) -> DebateResult:
        """Debate a case and wait for its end, which is durable then; one that is on record is told from there.

        A case that is being debated already is waited for together. Cancelling this leaves the debate going on.

        Raises:
            RunMismatch: the record has other content under the case's id.
            NotHeld: it was put aside.
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
        told = msgspec.structs.replace(assignment, return_result=True)
        pending = self._pending_cases[labelled.case.id] = PendingCase(labelled, told, self._router.least_loaded())
        self._completed.mark_started(labelled.case.id, pending.content)
        if self._followed:
            self._event_streams.open(labelled.case.id, time.time() if assignment.replay else None)
        self._router.submit(pending)
        return pending

    async def cancel(self, case_id: str) -> bool:
        """Put the debate of a case aside, for everybody who waits for it; False when it is not being debated."""
        pending = self._pending_cases.pop(case_id, None)
        if pending is None:
            return False
        self._end(pending, DebateCancelled(f"case {case_id!r} was withdrawn"))
        await self._router.cancel(pending)
        return True

    async def recorded_result(self, case_id: str) -> DebateResult | None:
        """How a case ended that has a verdict on record; None for any other one.

        Raises:
            NotHeld: the record does not give it back, or was closed before it did.
        """
        return await self._from_record(case_id) if self._completed.is_completed(case_id) else None

    def event_stream(self, case_id: str) -> EventStream | None:
        """What happens in a debate; None when it is not open and did not end lately."""
        return self._event_streams.of(case_id)

    def has_started(self, case_id: str) -> bool:
        """Whether a case that is being held has had its first event, so that it no longer waits for a place."""
        event_stream = self._event_streams.of(case_id)
        return event_stream is not None and event_stream.has_events

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
        open_ones = [pending.result for pending in self._pending_cases.values()]
        if open_ones:
            await asyncio.wait(open_ones, timeout=drain_s)
        left = len(self._pending_cases)
        if left:
            await self._router.drain()
        self._cancel_all(DebateCancelled("the run was closed before it had a verdict"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *filter(None, [self._draining]), return_exceptions=True)
        await self._end_trails()
        await self._recall.close()
        return left

    async def _from_record(self, case_id: str) -> DebateResult:
        found = await self._recall.result(case_id)
        if found is None:
            raise DebateCancelled(f"case {case_id!r} has a verdict that the record does not give back")
        return msgspec.structs.replace(found, reused=True)

    def _settle(self, done: Sequence[AssignmentOutcome]) -> None:
        for outcome in sorted(done, key=lambda each: each.status == "stopped"):
            pending = self._pending_cases.get(outcome.case_id)
            if pending is None or pending.key != (outcome.case_id, outcome.attempt):
                continue
            if outcome.status == "stopped":
                self._stop(outcome.why)
                return
            del self._pending_cases[outcome.case_id]
            if outcome.result is None:
                self._end(pending, DebateCancelled(f"case {outcome.case_id!r} waits for a person"))
                continue
            self._completed.mark_completed(outcome.case_id, outcome.attempt, failed=outcome.status == "failed")
            self._end(pending, outcome.result)

    def _stop(self, why: str) -> None:
        """A budget or an endpoint ends the run: what the other debates ask for would be paid for nobody."""
        self.stopped_by = why
        stopped = DebateCancelled(f"the run has stopped: {self._in_words(why)}")
        self._refuse(stopped)
        self._cancel_all(stopped)
        if self._draining is None:
            self._draining = asyncio.create_task(self._router.drain())

    def _end(self, pending: PendingCase, how: DebateResult | DebateCancelled) -> None:
        pending.resolve(how)
        if self._followed:
            self._ending.append(pending.labelled.case.id)
        self._runtime.writers.forget([pending.labelled.case.id])

    def _refuse(self, why: DebateCancelled) -> None:
        self._refusal = self._refusal or why

    def _cancel_all(self, why: DebateCancelled) -> None:
        pending_cases = list(self._pending_cases.values())
        self._pending_cases.clear()
        for pending in pending_cases:
            self._end(pending, why)
            self._event_streams.close(pending.labelled.case.id)
        self._router.clear()

    async def _follow(self) -> None:
        """Put events on their debates' trails; one that has ended is closed when all of its have come."""
        while True:
            await asyncio.sleep(_LOOK_EACH_S)
            ending, self._ending = self._ending, []
            if not ending and not self._pending_cases:
                continue
            await self._take_events()
            for case_id in ending:
                if case_id not in self._pending_cases:
                    self._event_streams.close(case_id)

    async def _take_events(self) -> None:
        while found := await self._runtime.writers.events():
            self._event_streams.add(found)

    async def _end_trails(self) -> None:
        """Nobody is to wait for more, also where the last events cannot be had."""
        if self._followed:
            try:
                async with asyncio.timeout(_LAST_LOOK_S):
                    await self._take_events()
            except Exception as error:
                _log.warning("the last events of the run are not told", error=repr(error))
            self._event_streams.close_all()

    def _served(self, task: asyncio.Task[None]) -> None:
        """A talk with the engine that ended with an error ends the run: nothing can be trusted to be kept any more."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        _log.error("the run cannot go on", error=repr(error))
        broken = RunFailed(f"the run cannot go on: {error}")
        self._refuse(broken)
        self._cancel_all(broken)
