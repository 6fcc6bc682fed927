"""Moderator: runs its assigned debates concurrently, and reports each one when its verdict is durable."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec
import structlog

from moot.actors.debate.context import DebateContext
from moot.actors.debate.floor import CaseFloor, Parked, RunStopping
from moot.actors.models.usage_totals import UsageTotals, total_of
from moot.actors.record.debate_result import PROMPT_CUT_FLAG, DebateResult
from moot.actors.record.recovery import History
from moot.actors.record.schema import CaseKey
from moot.actors.telemetry.failpoints import failpoint
from moot.actors.telemetry.meter import DEBATES_OPEN
from moot.actors.telemetry.telemetry import Span
from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case
from moot.protocols.errors import ActorGone, MootError, PathReused, RecordError
from moot.protocols.messages import Decision, Form, Verdict

_log = structlog.get_logger(__name__)
_MAX_REPLAYS = 5
_OUTCOMES_WITHIN_S, _LINGER_S = 5.0, 0.1
_RECORDED_TRIES, _RECORDED_EACH_S = 100, 0.05


class Assignment(msgspec.Struct, frozen=True):
    """Assignment of a debate to a moderator.

    Attributes:
        replay: whether the journal may already have a part of it.
        invalid: why the case is invalid; empty for a valid one.
        decided: decisions of a person that the journal may not have yet, by path.
        return_result: whether the outcome contains the result.
    """

    case: Case
    attempt: int = 0
    replay: bool = False
    invalid: str = ""
    decided: dict[str, Decision] = {}
    return_result: bool = False


class AssignmentOutcome(msgspec.Struct, frozen=True):
    """Outcome of an assignment: its verdict is durable, the debate waits for a person, or the run must stop.

    `result` says how the debate ended; dispatchers that need only the status do not request it.

    Attributes:
        why: reason to stop the run; empty unless `stopped`.
        path, form: step and form of the pending decision; only if `parked`.
        result: of the debate, if the assignment requests it.
        paid: usage by model, of calls since the assignment.
        used_recorded: whether other replies came from the record or from a reused run.
    """

    case_id: str
    attempt: int
    status: Literal["finished", "failed", "parked", "stopped"]
    why: str = ""
    path: str = ""
    form: Form | None = None
    result: DebateResult | None = None
    paid: dict[str, UsageTotals] = {}
    used_recorded: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the debate has ended and `paid` is its full usage."""
        return self.status in ("finished", "failed") and not self.used_recorded


class _AwaitingPerson(NamedTuple):
    """Debate that waits for a person, and the replies by path that it depends on so far."""

    path: str
    form: Form
    replies: Mapping[str, str]


class ModeratorReport(msgspec.Struct):
    """Outcomes since the last exchange."""

    done: list[AssignmentOutcome] = []


class Moderator:
    """Moderator: runs one protocol on its assigned cases.

    Args:
        protocol: the protocol.
        context: the shared services.
        places: most open debates; further assignments are queued.
        debate_timeout_s: seconds after which a debate fails; None for no bound.
    """

    def __init__(
        self, protocol: DebateProtocol, context: DebateContext, places: int, debate_timeout_s: float | None = None
    ) -> None:
        self._protocol = protocol
        self._context = context
        self._places = asyncio.Semaphore(places)
        self._debate_timeout_s = debate_timeout_s
        self._tasks: dict[CaseKey, asyncio.Task[None]] = {}
        self._report = ModeratorReport()
        self._news = asyncio.Event()
        self._broken: BaseException | None = None
        self._open = 0
        context.telemetry.meter.set(DEBATES_OPEN, 0.0)

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        """Accept assignments and return new outcomes.

        Args:
            wait: whether to wait for outcomes, at most `_OUTCOMES_WITHIN_S`, and then briefly for more. The dispatcher
                does not wait while it has more to assign: places would stay empty until the first debate has ended.

        Raises:
            RecordError: the record can no longer be written.
        """
        for assignment in () if self._context.drain.is_set() else assignments:
            key = (assignment.case.id, assignment.attempt)
            if key not in self._tasks:
                task = self._tasks[key] = asyncio.create_task(self._run(assignment), name=f"debate {key[0]}")
                task.add_done_callback(partial(self._task_ended, key))
        if wait:
            await self._wait_for_outcomes()
        if self._broken is not None:
            raise self._broken
        self._news.clear()
        report, self._report = self._report, ModeratorReport()
        return report

    async def _wait_for_outcomes(self) -> None:
        try:
            async with asyncio.timeout(_OUTCOMES_WITHIN_S):
                await self._news.wait()
        except TimeoutError:
            return
        if self._tasks:
            await asyncio.sleep(_LINGER_S)

    async def drain(self, seconds: float) -> None:
        """Start no new ask, let those in flight finish within `seconds`, then cancel every debate."""
        self._context.drain.set()
        try:
            async with asyncio.timeout(seconds):
                await self._context.agents.drain()
                while self._context.in_flight.count:  # noqa: ASYNC110 - a counter, at most once per run
                    await asyncio.sleep(0.02)
                await asyncio.sleep(0.05)
        except TimeoutError:
            pass
        await self.close()

    async def cancel(self, keys: Iterable[CaseKey]) -> None:
        """Cancel these debates, if open, and wait for their ends; each resumes from the journal when it is assigned
        again."""
        tasks = [task for key in keys if (task := self._tasks.pop(key, None)) is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Cancel every debate at once; each resumes from the journal with the run."""
        self._context.drain.set()
        await self.cancel(list(self._tasks))

    async def _run(self, assignment: Assignment) -> None:
        key = (assignment.case.id, assignment.attempt)
        with structlog.contextvars.bound_contextvars(debate=key[0]):
            async with self._places:
                history = await self._context.record.history(*key) if assignment.replay else None
            tracer, span = self._context.telemetry.tracer, None
            paid: dict[str, UsageTotals] = {}
            for _ in range(_MAX_REPLAYS):
                try:
                    async with self._places:
                        span = span or tracer.debate(*key)
                        with self._counted_as_open():
                            ended = await self._debate(assignment, history, paid)
                except RunStopping as stop:
                    self._done(AssignmentOutcome(*key, "stopped", str(stop), paid=paid))
                    return
                failpoint("moderator.debate_closed")
                if isinstance(ended, _AwaitingPerson):
                    await self._wait_until_recorded(assignment, ended.replies)
                    self._done(AssignmentOutcome(*key, "parked", path=ended.path, form=ended.form, paid=paid))
                    return
                if await self._context.record.commit(ended):
                    failpoint("moderator.committed")
                    _end(span, ended, self._protocol)
                    status: Literal["finished", "failed"] = "failed" if ended.failure else "finished"
                    result, more = ended if assignment.return_result else None, ended.used_more_than(paid)
                    self._done(AssignmentOutcome(*key, status, result=result, paid=paid, used_recorded=more))
                    return
                _log.warning("the journal may lack something of this debate; replaying it")
                history = await self._context.record.history(*key)
            raise RecordError(f"{key[0]}: the record refused its verdict {_MAX_REPLAYS} times")

    @contextmanager
    def _counted_as_open(self) -> Iterator[None]:
        meter = self._context.telemetry.meter
        self._open += 1
        meter.set(DEBATES_OPEN, self._open)
        try:
            yield
        finally:
            self._open -= 1
            meter.set(DEBATES_OPEN, self._open)

    async def _wait_until_recorded(self, assignment: Assignment, replies: Mapping[str, str]) -> None:
        """Wait until the journal has the replies that a parked debate depends on: a person reads them there, and the
        debate may resume at once. A reply that does not arrive in time was lost, and is paid for again."""
        for _ in range(_RECORDED_TRIES):
            history = await self._context.record.history(assignment.case.id, assignment.attempt)
            if replies.keys() <= {reply.path for reply in history.replies}:
                return
            await asyncio.sleep(_RECORDED_EACH_S)

    def _task_ended(self, key: CaseKey, task: asyncio.Task[None]) -> None:
        """End a debate, whichever way: nothing is kept of it. An error of the record fails the run, since nothing more
        could be recorded reliably."""
        if self._tasks.get(key) is task:  # else it was cancelled, and may have been assigned again
            del self._tasks[key]
        if key not in self._tasks:
            self._context.record.end(*key)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = error
        if self._report.done or self._broken is not None:
            self._news.set()

    def _done(self, outcome: AssignmentOutcome) -> None:
        self._report.done.append(outcome)

    async def _debate(
        self, assignment: Assignment, history: History | None, paid: dict[str, UsageTotals]
    ) -> DebateResult | _AwaitingPerson:
        """Run the protocol once."""
        started = time.perf_counter()
        deadline = asyncio.timeout(self._debate_timeout_s)
        floor = CaseFloor(assignment.case, assignment.attempt, self._context, history, assignment.decided, paid)
        try:
            if assignment.invalid:
                return _ended(floor, None, "invalid_case", assignment.invalid, 0.0)
            async with deadline:
                returned = await self._protocol.run(assignment.case, floor)
            verdict = _checked(returned, assignment.case)
            return _ended(floor, verdict, "", "", time.perf_counter() - started)
        except Parked as parked:
            return _AwaitingPerson(parked.path, parked.form, floor.replies)
        except (RecordError, ActorGone):
            raise  # an error of the run, not of the case
        except PathReused as reused:
            failure, error = "path_reused", str(reused)
        except MootError as known:
            failure, error = _snake(type(known).__name__), str(known)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # the debate is cancelled
            failure, error = "bug", "the protocol let a cancellation of its own escape"
        except TimeoutError as late:
            if deadline.expired():
                failure, error = "deadline", f"no verdict within {self._debate_timeout_s:g} s"
            else:
                failure, error = "bug", f"TimeoutError: {late}"
                _log.exception("the protocol raised")
        except (Exception, SystemExit, KeyboardInterrupt) as bug:  # `sys.exit` ends its case, not the process
            if isinstance(bug, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise  # the user's Ctrl-C; in any other thread only the protocol itself can have raised it
            failure, error = "bug", f"{type(bug).__name__}: {bug}"
            _log.exception("the protocol raised")
        return _ended(floor, None, failure, error, time.perf_counter() - started)


def _checked(verdict: object, case: Case) -> Verdict:
    """Validates a protocol's return value as a verdict on this case. Raises TypeError or ValueError."""
    if not isinstance(verdict, Verdict):
        raise TypeError(f"the protocol returned {type(verdict).__name__}, not a Verdict")
    if case.labels is not None and verdict.answer is not None and verdict.answer not in case.labels:
        raise ValueError(f"the verdict's answer is {verdict.answer!r}; the case's labels are {', '.join(case.labels)}")
    for share in (verdict.confidence, *(verdict.distribution or {}).values()):
        if share is not None and not 0.0 <= share <= 1.0:
            raise ValueError(f"a verdict's confidence or share is {share!r}; expected a number from 0 to 1")
    return verdict


def _ended(floor: CaseFloor, verdict: Verdict | None, failure: str, error: str, wall_s: float) -> DebateResult:
    """Builds the result. Raises `msgspec.ValidationError` or TypeError for a verdict that it cannot represent."""
    fields: Mapping[str, Any] = {}
    if verdict is not None:
        fields = {
            "answer": verdict.answer,
            "how": verdict.how,
            "confidence": verdict.confidence,
            "distribution": dict(verdict.distribution) if verdict.distribution is not None else None,
            "rounds": verdict.rounds,
            "payload": msgspec.to_builtins(dict(verdict.payload)),
        }
    flags = (*(verdict.flags if verdict is not None else ()), *((PROMPT_CUT_FLAG,) if floor.prompt_cut else ()))
    known = {
        "flags": flags,
        "case_id": floor.case.id,
        "attempt": floor.attempt,
        "replies": floor.replies,
        "usage": floor.usage,
        "failure": failure,
        "error": error[:2000],
        "wall_s": wall_s,
        **msgspec.structs.asdict(total_of(floor.usage)),
    }
    return msgspec.convert({**known, **({"how": "failed"} if verdict is None else fields)}, DebateResult)


def _end(span: Span, result: DebateResult, protocol: DebateProtocol) -> None:
    """Ends a debate's span with its verdict; a cancelled one has none until it resumes."""
    span.end(
        result.failure,
        moot__protocol=protocol.name or type(protocol).__name__,
        moot__case_id=result.case_id,
        moot__attempt=result.attempt,
        moot__outcome="failed" if result.failure else "done",
        moot__how=result.how,
        moot__rounds=result.rounds,
        gen_ai__usage__input_tokens=result.prompt_tokens,
        gen_ai__usage__output_tokens=result.completion_tokens,
    )


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
