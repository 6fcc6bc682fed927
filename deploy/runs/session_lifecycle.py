"""Life cycle of a session: acquires the record, starts the engine, runs the work, and completes the record."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import structlog

from moot.actors.debate.engine import Runtime
from moot.actors.debate.run_spec import RunSpec
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.limits.budget_forecast import BudgetForecast
from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.completeness import check_complete
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import RecordOwner
from moot.actors.telemetry.log import log_repeated
from moot.deploy.runs.budget_capacity import affordable_debates
from moot.deploy.runs.caveats import log_caveats
from moot.deploy.runs.checks import check_models
from moot.deploy.runs.limits import spent_by_earlier_sessions
from moot.deploy.runs.listener import Listener
from moot.deploy.runs.outcome import RunStatus
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.record_state import RecordState, remaining_cases
from moot.deploy.runs.resume import RunYaml
from moot.deploy.runs.run_library import build_run_library
from moot.protocols.errors import RecordError

_log = structlog.get_logger(__name__)

T = TypeVar("T")


class SessionCancelled(Exception):
    """The session was stopped before the first debate started."""


async def _to_its_end(work: Coroutine[Any, Any, Any]) -> Any:
    return await work


class SessionLifecycle:
    """Life cycle of one session of a run. Use it once.

    `Session` runs a task's cases, read from an iterator, and `OpenRun` the cases submitted to a queue. They differ only
    in the work between start and end.

    Args:
        prepared: the run.
        listener: callbacks of the session.
        interruptible: awaits a long step of the start; may raise `SessionCancelled`.
        state: the record's current state, if already read.
        followed: see `RunSpec`.

    Attributes:
        prepared: the run, with its models' profiles once they are checked.
        completed: cases completed before the start.
        forecast: number of concurrent debates that the budgets allow; None without a budget.
        runtime: the started engine.
        status: how the session ended, for run.yaml; the work sets it.
    """

    completed: CompletedCases
    forecast: BudgetForecast | None
    runtime: Runtime
    _record: RunYaml

    def __init__(
        self,
        prepared: Prepared,
        listener: Listener | None = None,
        *,
        interruptible: Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]] = _to_its_end,
        state: RecordState | None = None,
        followed: bool = False,
    ) -> None:
        self.prepared, self._state, self._followed = prepared, state, followed
        self._listener: Listener = listener or Listener()
        self._interruptible = interruptible
        self._epoch = 0
        self._is_up = False
        self.status: RunStatus = "failed"

    async def run(self, work: Callable[[SessionLifecycle], Awaitable[T]]) -> T:
        """Run the session: start, work, end. The work sets `status`, and calls `stop_engine` at its end.

        Raises:
            UserError: a model cannot be used, or the folder contains another run, is in use or has lost a file; nothing
                was written, except for a library of `docs`, which was paid for.
        """
        if self.prepared.record.exists():  # before the trial calls, which are paid for
            await self._interruptible(asyncio.to_thread(check_complete, self.prepared.record))
        self.prepared = await self._interruptible(check_models(self.prepared))
        log_caveats(self.prepared)
        owner: RecordOwner = await self._interruptible(RecordOwner.acquire(self.prepared.record))
        return await owner.run(lambda epoch: self._owned(epoch, work))

    async def _owned(self, epoch: int, work: Callable[[SessionLifecycle], Awaitable[T]]) -> T:
        folder, self._epoch = self.prepared.record, epoch
        is_empty = await asyncio.to_thread(_is_empty_start, folder, self.prepared)
        self._record = await asyncio.to_thread(RunYaml, folder, self.prepared, epoch)
        try:
            try:
                await self._start(folder)
            except BaseException:
                if is_empty:
                    await asyncio.to_thread(folder.remove)
                raise
            return await work(self)
        except (asyncio.CancelledError, SessionCancelled):
            self.status = "interrupted"
            raise
        finally:
            self._listener.ended()
            log_repeated()
            if self._is_up:  # the work failed before it stopped the engine
                with contextlib.suppress(Exception):
                    await self.runtime.stop(compact=False)
            if folder.exists():
                await asyncio.to_thread(_finish, self._record, self.status)

    async def _start(self, folder: RunFolder) -> None:
        prepared, earlier = self.prepared, self._record.earlier
        building = build_run_library(prepared.docs, prepared.library, prepared.config, self._listener.indexed)
        await self._interruptible(building)
        state, self._state = self._state, None  # frees it: it may be large, and is soon outdated
        if state is None or not await asyncio.to_thread(state.is_current):
            state = await asyncio.to_thread(RecordState.read, folder)
        self.completed = state.completed(retry_failed=prepared.config.retry_failed)
        left = await asyncio.to_thread(remaining_cases, prepared, self.completed)
        self._listener.began(prepared.total, (prepared.total or 0) - (left or 0))
        spent = await asyncio.to_thread(spent_by_earlier_sessions, folder, prepared.prices, earlier)
        self.forecast = await asyncio.to_thread(affordable_debates, prepared, spent)  # runs an event loop of its own
        proven = await asyncio.to_thread(state.proven_roles) if earlier else set()
        spec = prepared.spec(self._epoch, spent, bool(earlier), proven=proven, followed=self._followed)
        self.runtime = _make_runtime(prepared, spec)
        try:
            await self._interruptible(self.runtime.start())
        except BaseException:
            with contextlib.suppress(Exception):
                await self.runtime.stop()
            raise
        self._is_up = True

    async def stop_engine(self, *, compact: bool) -> None:
        """Stop the engine; with `compact` compact the journal to Parquet, else a later session resumes from it."""
        self._is_up = False
        await self.runtime.stop(compact=compact)

    async def complete_record(self, *, compact: bool) -> None:
        """Complete the local record after the engine has stopped: pull it from the store, and compact leftovers."""
        if self.prepared.mirror is not None:  # writers on other machines have written the record
            await asyncio.to_thread(self.prepared.mirror.pull)
        if compact:
            await asyncio.to_thread(compact_leftovers, self.prepared.record, self._epoch)

    def stopped_by(self, reason: str) -> None:
        """Set the stop reason for run.yaml; ignored if empty."""
        self._record.stopped_by(reason)


def _is_empty_start(folder: RunFolder, prepared: Prepared) -> bool:
    """Whether a failed first start removes the folder: it is new, and gets no library, whose vectors are paid for
    before the engine starts. Call it as the owner, before anything is written.

    Raises:
        RecordError: the folder cannot be read.
    """
    return prepared.docs is None and folder.is_new()


def _make_runtime(prepared: Prepared, spec: RunSpec) -> Runtime:
    """Runtime of the configured engine, not started."""
    config = prepared.config
    if config.engine == "inline":
        from moot.actors.debate.inline_engine import InlineRuntime

        return InlineRuntime(spec, prepared.protocol)
    from moot.actors.remote.runtime import RayRuntime

    return RayRuntime(spec, prepared.protocol, placement=config.placement, address=config.address)


def _finish(record: RunYaml, status: str) -> None:
    """Record the session's status; a failure is only logged, so that it does not replace the original error."""
    try:
        record.finish(status)
    except RecordError as error:
        _log.warning("the end of this session could not be recorded in run.yaml", error=str(error))
