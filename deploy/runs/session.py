"""One session of work on a run: checks, ownership, engine, arena, and the record left in good order."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec
import structlog

from moot.actors.debate.engine import Runtime, WriterPool
from moot.actors.debate.pending_decisions import Person
from moot.actors.debate.run_spec import RunSpec
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.dispatch.dispatcher import Dispatcher
from moot.actors.limits.limiter_client import BudgetSpent
from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.folder import RunFolder
from moot.actors.record.recovery import recover_signals
from moot.actors.record.store.lease import RecordOwner
from moot.actors.record.tables import read_table
from moot.deploy.runs.bounds import spent_by_earlier_sessions
from moot.deploy.runs.budget_capacity import affordable_debates
from moot.deploy.runs.caveats import log_caveats
from moot.deploy.runs.checks import check_models
from moot.deploy.runs.listener import Listener
from moot.deploy.runs.outcome import Run, Status
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.resume import RunYaml, check_resumable
from moot.deploy.runs.run_library import build_run_library
from moot.deploy.runs.stop_reason import describe_stop, remaining_work
from moot.protocols.case import is_shared_id
from moot.protocols.errors import RecordError

_log = structlog.get_logger(__name__)
_POLL_S = 0.2
_SIGNALS_S = 1.0
_LAST_LOOK_S = 30.0
"""Seconds for the last events and signals of a run: a writer that is gone or hangs gives none."""

T = TypeVar("T")


class SessionCancelled(Exception):
    """The session was told to stop before the first debate began."""


class Session:
    """Works on a run until it is done or told to stop. Use it once.

    Args:
        prepared: the run.
        listener: follows it.
        person: answers an attended run's forms while it lives; None leaves its debates waiting for `moot decide`.
    """

    def __init__(self, prepared: Prepared, listener: Listener | None = None, person: Person | None = None) -> None:
        self._prepared, self._person = prepared, person
        self._listener: Listener = listener or Listener()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dispatcher: Dispatcher | None = None
        self._stopping = asyncio.Event()
        self._stop_asked = False
        self._out_of_time = False
        self._told_of, self._told_at = 0, 0.0
        self._outdated = 0

    def stop(self) -> None:
        """Drain: nothing new starts, calls under way finish, the record is flushed. From any thread."""
        self._stop_asked = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: there is nothing left to stop
                self._loop.call_soon_threadsafe(self._stop_on_loop)

    def _stop_on_loop(self) -> None:
        self._stopping.set()
        if self._dispatcher is not None:
            self._dispatcher.stop()

    @property
    def is_running(self) -> bool:
        """Whether debates are being held, so that a stop has calls to wait for."""
        return self._dispatcher is not None

    async def _cancel_on_stop(self, work: Coroutine[Any, Any, T]) -> T:
        """Do a part of the start; a stop cancels it and raises `SessionCancelled`."""
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
        """Hold every debate that is not done.

        Raises:
            UserError: something is wrong with what was asked for; nothing has been written then.
        """
        self._loop = asyncio.get_running_loop()
        if self._stop_asked:
            self._stopping.set()
        prepared = self._prepared
        folder = prepared.record
        await check_models(prepared, network=False)
        if (done := await asyncio.to_thread(outcome_if_complete, prepared)) is not None:
            await self._report_recorded_signals(folder)
            return done
        try:
            prepared = self._prepared = await self._cancel_on_stop(check_models(prepared))
            log_caveats(prepared)
            owner = await self._cancel_on_stop(RecordOwner.acquire(folder))
            return await owner.run(self._owned)
        except SessionCancelled:
            return await asyncio.to_thread(_outcome, prepared, "interrupted", left=None, worked=False)

    async def _owned(self, epoch: int) -> Run:
        prepared, folder = self._prepared, self._prepared.record
        in_vain = await asyncio.to_thread(is_empty_start, folder, prepared)
        record = await asyncio.to_thread(RunYaml, folder, prepared, epoch)
        status: Status | Literal["failed"] = "failed"
        try:
            await self._cancel_on_stop(build_run_library(prepared, self._listener.indexed))
            completed = await asyncio.to_thread(load_completed_cases, prepared)
            left = await asyncio.to_thread(_remaining_cases, prepared, completed)
            self._outdated = completed.superseded
            self._listener.began(prepared.total, (prepared.total or 0) - (left or 0))
            spent = await asyncio.to_thread(spent_by_earlier_sessions, folder, prepared.prices, record.earlier)
            covered = await asyncio.to_thread(affordable_debates, prepared, spent)
            runtime = make_runtime(prepared, prepared.spec(epoch, spent, bool(record.earlier)))
            await self._started(runtime, folder if in_vain else None)
            dispatcher = self._dispatcher = Dispatcher(runtime, prepared.cases(), completed, self._person, covered)
            await self._run_debates(dispatcher, runtime)
            if prepared.mirror is not None:  # writers elsewhere have written the record
                await asyncio.to_thread(prepared.mirror.pull)
            if not dispatcher.is_draining:
                await asyncio.to_thread(compact_leftovers, folder, epoch)
            left = await asyncio.to_thread(_remaining_after_session, prepared)
            status = _status(prepared, dispatcher, left, self._out_of_time)
            stopped_by = await asyncio.to_thread(self._stop_reason, dispatcher, left) if status == "stopped" else ""
            record.stopped_by(stopped_by)
            return await asyncio.to_thread(
                _outcome, prepared, status, left=left, parked=dispatcher.parked, stopped_by=stopped_by
            )
        except (asyncio.CancelledError, SessionCancelled):
            status = "interrupted"
            raise
        finally:
            self._listener.ended()
            if folder.exists():
                await asyncio.to_thread(finish_session, record, status)

    async def _started(self, runtime: Runtime, new_folder: RunFolder | None) -> None:
        """Start the engine; when that fails, a folder that was made for it is taken away again."""
        try:
            await self._cancel_on_stop(runtime.start())
        except BaseException:
            with contextlib.suppress(Exception):
                await runtime.stop()
            if new_folder is not None:
                await asyncio.to_thread(new_folder.remove)
            raise

    async def _run_debates(self, dispatcher: Dispatcher, runtime: Runtime) -> None:
        if self._stop_asked:
            dispatcher.stop()
        following = asyncio.create_task(self._follow(runtime.writers))
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
                async with asyncio.timeout(_LAST_LOOK_S):
                    await self._poll(runtime.writers)
                    await self._report_signals(runtime.writers, at_the_end=True)
            await runtime.stop(compact=not dispatcher.is_draining)  # a run that was stopped goes on from its journal

    def _stop_at_deadline(self) -> None:
        self._out_of_time = not self._stopping.is_set()
        if self._dispatcher is not None:
            self._dispatcher.stop()

    def _stop_reason(self, dispatcher: Dispatcher, left: int | None) -> str:
        """What stopped the run, in words, with so many cases left."""
        config = self._prepared.config
        if self._out_of_time:
            return f"--max-minutes {config.max_minutes:g} is over"
        rest = None
        if left is not None and dispatcher.stopped_by.startswith(BudgetSpent.kind):
            rest = remaining_work(self._prepared.record, left, self._prepared.prices)
        return describe_stop(dispatcher.stopped_by, config, rest)

    async def _follow(self, writers: WriterPool) -> None:
        while True:
            await asyncio.sleep(_POLL_S)
            try:
                await self._poll(writers)
            except Exception as error:
                _log.debug("the record's writers cannot be asked just now", error=repr(error))

    async def _poll(self, writers: WriterPool) -> None:
        if self._listener.wants_events:
            while found := await writers.events():
                self._listener.events(found)
            if time.monotonic() - self._told_at >= _SIGNALS_S:
                await self._report_signals(writers)
        counts = await writers.counts()
        failed = max(0, counts.failed - self._outdated)  # only a case that failed gets another attempt
        self._listener.counts(msgspec.structs.replace(counts, failed=failed))

    async def _report_recorded_signals(self, folder: RunFolder) -> None:
        """Of a run that has nothing left to do: those of its record."""
        if self._listener.wants_events:
            keeper = await asyncio.to_thread(recover_signals, folder, lambda _: True)
            if keeper.replies:
                self._listener.signals(await keeper.signals())

    async def _report_signals(self, writers: WriterPool, *, at_the_end: bool = False) -> None:
        if not self._listener.wants_events:
            return
        signals = await writers.signals()
        if signals.replies and (at_the_end or signals.replies != self._told_of):
            self._listener.signals(signals)
            self._told_of = signals.replies
        self._told_at = time.monotonic()


def outcome_if_complete(prepared: Prepared) -> Run | None:
    """The outcome of a run that has nothing left to do; None while it has.

    Raises:
        RunMismatch: another configuration has made what lies in the folder.
    """
    if check_resumable(prepared) and _remaining_cases(prepared, load_completed_cases(prepared)) == 0:
        return _outcome(prepared, "finished", left=0, worked=False)
    return None


def is_empty_start(folder: RunFolder, prepared: Prepared) -> bool:
    """Whether a first start that fails takes the folder away again: it was made just now, and will hold no library,
    whose vectors are paid for before the engine starts. Ask it as the owner, before anything is written.

    Raises:
        RecordError: the folder cannot be read.
    """
    return prepared.docs is None and folder.is_new()


def make_runtime(prepared: Prepared, spec: RunSpec) -> Runtime:
    """The engine that the configuration names, not started."""
    config = prepared.config
    if config.engine == "inline":
        from moot.actors.debate.inline_engine import InlineRuntime

        return InlineRuntime(spec, prepared.protocol)
    from moot.actors.remote.runtime import RayRuntime

    return RayRuntime(spec, prepared.protocol, placement=config.placement, address=config.address)


def finish_session(record: RunYaml, status: str) -> None:
    """Write down how the session ended; on a full disk what ended it is the better news."""
    try:
        record.finish(status)
    except RecordError as error:
        _log.warning("run.yaml does not say how this session ended", error=str(error))


def load_completed_cases(prepared: Prepared, *, retry_failed: bool | None = None) -> CompletedCases:
    """What the record holds."""
    folder = RunFolder(prepared.folder)
    verdicts, cases = read_table(folder, "verdicts", ["failed"]), read_table(folder, "cases", ["content_hash"])
    finished = {(row["case_id"], row["attempt"]): row["failed"] for row in verdicts.to_pylist()}
    content = {row["case_id"]: row["content_hash"] for row in cases.to_pylist()}
    retry = prepared.config.retry_failed if retry_failed is None else retry_failed
    return CompletedCases(finished, content, retry_failed=retry)


def _remaining_cases(prepared: Prepared, completed: CompletedCases) -> int | None:
    """How many cases have no verdict yet; None for a source that cannot be read twice."""
    if prepared.checked is None:
        return None
    return sum(completed.assignment(labelled) is not None for labelled in prepared.cases())


def _remaining_after_session(prepared: Prepared) -> int | None:
    """The same after a session, by what the record holds now; a case that has failed in it is done."""
    return _remaining_cases(prepared, load_completed_cases(prepared, retry_failed=False))


def _status(prepared: Prepared, dispatcher: Dispatcher, left: int | None, out_of_time: bool) -> Status:
    """How the session ended.

    Raises:
        RecordError: nobody stopped the run, every debate was held, and yet the record lacks verdicts.
    """
    waiting = len(set(dispatcher.parked))
    if dispatcher.stopped_by or (out_of_time and (left is None or left > waiting)):
        return "stopped"
    if dispatcher.is_draining and (left is None or left > waiting):
        return "interrupted"
    if left is not None and left > waiting:
        raise RecordError(
            f"{prepared.config.out}: {left - waiting} of {prepared.total} cases have no verdict on record although "
            f"every debate was held; the same command holds them again"
        )
    return "waiting" if waiting else "finished"


def _cases_in_progress(prepared: Prepared, ended: Mapping[str, int]) -> set[str]:
    """Cases of which the record holds replies beyond the last attempt that has a verdict."""
    turns = read_table(prepared.folder, "turns", []).group_by("case_id").aggregate([("attempt", "max")])
    of_cases = (row for row in turns.to_pylist() if not is_shared_id(row["case_id"]))
    return {row["case_id"] for row in of_cases if row["attempt_max"] > ended.get(row["case_id"], -1)}


def _outcome(
    prepared: Prepared,
    status: Status,
    *,
    left: int | None,
    parked: Sequence[str] = (),
    worked: bool = True,
    stopped_by: str = "",
) -> Run:
    latest: dict[str, tuple[int, bool]] = {}
    begun = RunFolder(prepared.folder).exists()
    for row in read_table(prepared.folder, "verdicts", ["failed"]).to_pylist() if begun else ():
        latest[row["case_id"]] = max(latest.get(row["case_id"], (-1, False)), (row["attempt"], row["failed"]))
    waiting = set(parked)
    cut = begun and status in ("stopped", "interrupted")
    under_way = (
        _cases_in_progress(prepared, {case: attempt for case, (attempt, _) in latest.items()}) - waiting if cut else ()
    )
    return Run(
        path=prepared.folder,
        status=status,
        done=len(latest),
        failed=sum(failed for _, failed in latest.values()),
        left=left,
        parked=tuple(sorted(waiting)),
        under_way=len(under_way),
        worked=worked,
        stopped_by=stopped_by,
        mirror=prepared.mirror,
    )
