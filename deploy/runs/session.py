"""Session of a run over the cases of a task: runs debates, or resumes an interrupted run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
import structlog

from moot.actors.debate.engine import Runtime, WriterPool
from moot.actors.debate.pending_decisions import Person
from moot.actors.dispatch.dispatcher import Dispatcher
from moot.actors.limits.limiter_client import BudgetSpent
from moot.actors.record.folder import RunFolder
from moot.actors.record.signal_recovery import recover_signals
from moot.actors.record.signals import Signals
from moot.deploy.runs.checks import check_models
from moot.deploy.runs.listener import Listener
from moot.deploy.runs.outcome import Run, Status
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.record_state import RecordState, remaining_cases
from moot.deploy.runs.resume import check_resumable
from moot.deploy.runs.session_lifecycle import SessionCancelled, SessionLifecycle
from moot.deploy.runs.stop_reason import describe_stop, remaining_work
from moot.protocols.errors import RecordError

_log = structlog.get_logger(__name__)
_POLL_S = 0.2
_SIGNALS_S = 1.0
_FINAL_POLL_S = 30.0
"""Timeout in seconds of the last poll for events and signals: a lost or hanging writer does not answer."""

T = TypeVar("T")


class Session:
    """Session of a run: runs its debates until all are finished or it is stopped. Use it once.

    Args:
        prepared: the run.
        listener: callbacks of the session.
        person: decides on the forms of an attended run; None leaves its debates waiting for `moot decide`.
    """

    def __init__(self, prepared: Prepared, listener: Listener | None = None, person: Person | None = None) -> None:
        self._prepared, self._person = prepared, person
        self._listener: Listener = listener or Listener()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dispatcher: Dispatcher | None = None
        self._stopping = asyncio.Event()
        self._stop_requested = False
        self._out_of_time = False
        self._reported_signals, self._signals_at, self._limits_at = Signals(), 0.0, 0.0
        self._superseded = 0

    def stop(self) -> None:
        """Drain the session: start no call, finish calls in flight, flush the record. Thread-safe."""
        self._stop_requested = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the session has ended
                self._loop.call_soon_threadsafe(self._stop_on_loop)

    def _stop_on_loop(self) -> None:
        self._stopping.set()
        if self._dispatcher is not None:
            self._dispatcher.stop()

    @property
    def is_running(self) -> bool:
        """Whether debates have started, so that a stop waits for calls in flight."""
        return self._dispatcher is not None

    async def _cancel_on_stop(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a step of the start; a stop cancels it.

        Raises:
            SessionCancelled: the session was stopped.
        """
        doing, stopping = asyncio.ensure_future(work), asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait([doing, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            doing.cancel()
            await asyncio.wait([doing])
        if doing.cancelled() and self._stopping.is_set():
            raise SessionCancelled
        return doing.result()

    async def run(self) -> Run:
        """Run every debate without a verdict.

        Raises:
            UserError: the configuration is invalid, or a model cannot be used; nothing was written.
        """
        self._loop = asyncio.get_running_loop()
        if self._stop_requested:
            self._stopping.set()
        prepared = self._prepared
        await check_models(prepared, network=False)
        state = await asyncio.to_thread(_state_if_resumed, prepared)
        if (done := await asyncio.to_thread(_outcome_if_complete, prepared, state)) is not None:
            await self._report_recorded_signals(prepared.record)
            return done
        session = SessionLifecycle(prepared, self._listener, interruptible=self._cancel_on_stop, state=state)
        del state  # frees it: it may be large
        try:
            return await session.run(self._run_cases)
        except SessionCancelled:
            return await asyncio.to_thread(_outcome_unstarted, prepared)

    async def _run_cases(self, session: SessionLifecycle) -> Run:
        prepared = self._prepared = session.prepared
        self._superseded = session.completed.superseded
        dispatcher = self._dispatcher = Dispatcher(
            session.runtime, prepared.cases(), session.completed, self._person, session.forecast
        )
        await self._run_debates(dispatcher, session)
        await session.complete_record(compact=not dispatcher.is_draining)
        end = await asyncio.to_thread(RecordState.read, prepared.record)
        # A case that failed in this session is done; `retry_failed` applies to earlier failures.
        left = await asyncio.to_thread(remaining_cases, prepared, end.completed(retry_failed=False))
        session.status = status = _status(prepared, dispatcher, left, self._out_of_time)
        stopped_by = await asyncio.to_thread(self._stop_reason, dispatcher, left, end) if status == "stopped" else ""
        session.stopped_by(stopped_by)
        return await asyncio.to_thread(
            _outcome, prepared, status, end, left=left, parked=dispatcher.parked, stopped_by=stopped_by
        )

    async def _run_debates(self, dispatcher: Dispatcher, session: SessionLifecycle) -> None:
        writers = session.runtime.writers
        if self._stop_requested:
            dispatcher.stop()
        following = asyncio.create_task(self._follow(session.runtime))
        minutes = self._prepared.config.max_minutes
        clock = asyncio.get_running_loop().call_later(minutes * 60.0, self._stop_at_deadline) if minutes else None
        try:
            await dispatcher.run()
        finally:
            if clock is not None:
                clock.cancel()
            following.cancel()
            await asyncio.wait([following])
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_FINAL_POLL_S):
                    await self._poll(writers)
                    await self._report_signals(writers, at_the_end=True)
            await session.stop_engine(compact=not dispatcher.is_draining)

    def _stop_at_deadline(self) -> None:
        self._out_of_time = not self._stopping.is_set()
        if self._dispatcher is not None:
            self._dispatcher.stop()

    def _stop_reason(self, dispatcher: Dispatcher, left: int | None, state: RecordState) -> str:
        """Stop reason as text, with an estimate for the remaining cases if a budget is exhausted."""
        config = self._prepared.config
        if self._out_of_time:
            return f"--max-minutes {config.max_minutes:g} is over"
        rest = None
        if left is not None and dispatcher.stopped_by.startswith(BudgetSpent.kind):
            rest = remaining_work(state, left, self._prepared.prices)
        return describe_stop(dispatcher.stopped_by, config, self._prepared.bindings, rest)

    async def _follow(self, runtime: Runtime) -> None:
        while True:
            await asyncio.sleep(_POLL_S)
            try:
                await self._poll(runtime.writers)
                await self._report_limits(runtime)
            except Exception as error:
                _log.debug("the record's writers are unreachable", error=repr(error))

    async def _report_limits(self, runtime: Runtime) -> None:
        now = time.monotonic()
        if self._listener.wants_limits and now - self._limits_at >= _SIGNALS_S:
            self._limits_at = now
            if (state := await runtime.limiter_state()) is not None:
                self._listener.limits(state)

    async def _poll(self, writers: WriterPool) -> None:
        if self._listener.wants_events:
            while batch := await writers.events():
                self._listener.events(batch)
            if time.monotonic() - self._signals_at >= _SIGNALS_S:
                await self._report_signals(writers)
        counts = await writers.counts()
        failed = max(0, counts.failed - self._superseded)  # only a case that failed gets another attempt
        self._listener.counts(msgspec.structs.replace(counts, failed=failed))

    async def _report_recorded_signals(self, folder: RunFolder) -> None:
        """Report the recorded signals of a completed run to the listener."""
        if self._listener.wants_events:
            signals = await asyncio.to_thread(recover_signals, folder, lambda _: True)
            if not signals.is_empty:
                self._listener.signals(signals)

    async def _report_signals(self, writers: WriterPool, *, at_the_end: bool = False) -> None:
        if not self._listener.wants_events:
            return
        signals = await writers.signals()
        if not signals.is_empty and (at_the_end or signals is not self._reported_signals):
            self._listener.signals(signals)
            self._reported_signals = signals
        self._signals_at = time.monotonic()


def outcome_if_complete(prepared: Prepared) -> Run | None:
    """Outcome of a complete run; None if cases remain.

    Raises:
        RunMismatch: the folder contains a run with a different configuration.
    """
    return _outcome_if_complete(prepared, _state_if_resumed(prepared))


def _state_if_resumed(prepared: Prepared) -> RecordState | None:
    return RecordState.read(RunFolder(prepared.folder)) if check_resumable(prepared) else None


def _outcome_if_complete(prepared: Prepared, state: RecordState | None) -> Run | None:
    if state is None:
        return None
    if remaining_cases(prepared, state.completed(retry_failed=prepared.config.retry_failed)) != 0:
        return None
    return _outcome(prepared, "finished", state, left=0, worked=False)


def _outcome_unstarted(prepared: Prepared) -> Run:
    """Outcome of a session that was stopped before its first debate."""
    folder = RunFolder(prepared.folder)
    state = RecordState.read(folder) if folder.exists() else None
    return _outcome(prepared, "interrupted", state, left=None, worked=False)


def _status(prepared: Prepared, dispatcher: Dispatcher, left: int | None, out_of_time: bool) -> Status:
    """Status of the ended session.

    Args:
        left: number of cases without a verdict; None if unknown.
        out_of_time: whether the session reached its time limit.

    Raises:
        RecordError: the run was not stopped and every debate ran, but verdicts are missing from the record.
    """
    waiting = len(set(dispatcher.parked))
    if dispatcher.stopped_by or (out_of_time and (left is None or left > waiting)):
        return "stopped"
    if dispatcher.is_draining and (left is None or left > waiting):
        return "interrupted"
    if left is not None and left > waiting:
        raise RecordError(
            f"{prepared.config.out}: {left - waiting} of {prepared.total} cases have no recorded verdict although "
            f"every debate ran; run the same command to run them again"
        )
    return "waiting" if waiting else "finished"


def _outcome(
    prepared: Prepared,
    status: Status,
    state: RecordState | None,
    *,
    left: int | None,
    parked: Sequence[str] = (),
    worked: bool = True,
    stopped_by: str = "",
) -> Run:
    latest = {} if state is None else state.latest
    waiting = set(parked)
    is_incomplete = status in ("stopped", "interrupted")
    return Run(
        path=prepared.folder,
        status=status,
        done=len(latest),
        failed=sum(failed for _, failed in latest.values()),
        left=left,
        parked=tuple(sorted(waiting)),
        under_way=len(state.in_progress() - waiting) if is_incomplete and state is not None else 0,
        worked=worked,
        stopped_by=stopped_by,
        mirror=prepared.mirror,
    )
