"""Open run: a run that accepts cases while it is open, and returns the result of each to its submitter.

Basis of Ray Data stages and of the HTTP service.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial

import msgspec

from moot.actors.debate.engine import Runtime
from moot.actors.dispatch.event_streams import EventStream
from moot.actors.dispatch.queue_dispatcher import QueueDispatcher
from moot.actors.limits.limiter_client import EndpointDown, LimiterGone
from moot.actors.models.usage_totals import cost_usd, total_of
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.folder import RunFolder
from moot.actors.record.progress import Counts, StreamedEvent, recorded_events
from moot.actors.record.store.uri import is_uri
from moot.deploy.runs.prepare import Bindings, Prepared, prepare
from moot.deploy.runs.resume import check_resumable
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.session_lifecycle import SessionLifecycle
from moot.deploy.runs.stop_reason import describe_stop
from moot.deploy.runs.task import check_case, content_case_id, task_from_cases
from moot.protocols.case import LabelledCase
from moot.protocols.errors import ConfigError, RunFolderBusy
from moot.protocols.tasks import Task

NAME = "cases"

_MAX_READERS = 2
"""Maximum number of concurrent reads of the record."""


class OpenRun:
    """Run with one protocol, configuration and record for submitted cases. Use it in one event loop.

    On an existing record, a case with a recorded verdict gets that verdict at no cost.

    Args:
        config: as for `moot.run`, without a task.
        protocol: an object with `async def run(self, case, floor)`, instead of `config.protocol`.
        followed: whether events are streamed; otherwise `events` yields none.
        tried: the run's bindings after trial calls; None makes these calls when the run is opened.

    Raises:
        UserError: the configuration is invalid.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        protocol: object | None = None,
        followed: bool = True,
        tried: Bindings | None = None,
    ) -> None:
        self._followed = followed
        if "task" in config.model_fields_set or config.limit is not None:
            raise ConfigError("`task` and `limit` are not for an open run: its cases are submitted one by one")
        if config.max_minutes is not None:
            raise ConfigError("`max_minutes` is not for an open run: it lasts until it is closed")
        if config.attended:
            raise ConfigError("`attended` is not for an open run: no person answers")
        if config.out is not None and is_uri(config.out):
            raise ConfigError(f"--out {config.out}: submitted cases are recorded in a local folder; give its path")
        prepared = prepare(config, task=Task.arriving(NAME), protocol=protocol)
        self._prepared = prepared if tried is None else replace(prepared, bindings=tried, trials_done=True)
        self._dispatcher: QueueDispatcher | None = None
        self._runtime: Runtime
        self._task: asyncio.Task[None]
        self._closing: asyncio.Future[float]
        self._indices = itertools.count()
        self._reading = asyncio.Semaphore(_MAX_READERS)

    @property
    def prepared(self) -> Prepared:
        """The checked configuration."""
        return self._prepared

    @property
    def is_open(self) -> bool:
        """Whether cases can be submitted and looked up."""
        return self._dispatcher is not None

    async def open(self) -> None:
        """Acquire the folder and start the engine. A closed run may be opened again.

        Raises:
            UserError: a model cannot be used, or the folder contains another run or is in use; nothing was written,
                except for a library of `docs`, which was paid for.
        """
        prepared = self._prepared
        folder = RunFolder(prepared.folder)
        await asyncio.to_thread(check_resumable, prepared)
        if folder.is_owned():  # before the trial calls, which are paid for: callers retry while the folder is owned
            raise RunFolderBusy(f"{folder.path} is being written by another process; wait for it or stop it")
        session = SessionLifecycle(prepared, followed=self._followed)
        loop = asyncio.get_running_loop()
        ready, self._closing = loop.create_future(), loop.create_future()
        task = self._task = asyncio.create_task(session.run(partial(self._serve, ready)))
        try:
            await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        finally:
            self._prepared = session.prepared
        if not ready.done():
            task.result()

    async def _serve(self, ready: asyncio.Future[None], session: SessionLifecycle) -> None:
        """Run submitted cases until the run is closed."""
        self._indices = itertools.count(session.completed.known)
        self._runtime, closing, drain_s = session.runtime, self._closing, 0.0
        in_words = partial(describe_stop, config=session.prepared.config, bindings=session.prepared.bindings)
        dispatcher = self._dispatcher = QueueDispatcher(
            session.runtime,
            session.completed,
            followed=self._followed,
            in_words=in_words,
            forecast=session.forecast,
        )
        dispatcher.start()
        ready.set_result(None)
        try:
            drain_s = await closing
        finally:
            self._dispatcher = None
            left = await dispatcher.close(drain_s)
        complete = not left and dispatcher.error is None
        await session.stop_engine(compact=complete)
        await session.complete_record(compact=complete)
        if dispatcher.stopped_by:
            session.stopped_by(in_words(dispatcher.stopped_by))
        if dispatcher.error is None:
            session.status = "interrupted" if left else "stopped" if dispatcher.stopped_by else "finished"

    async def run_case(self, case: Mapping[str, object] | LabelledCase) -> DebateResult:
        """Debate a case and wait for its durable result.

        Cancelling this coroutine does not cancel the debate; `cancel` does.

        Args:
            case: as in a list of cases given to `moot.run`. Without an `id` it is identified by its content.

        Raises:
            UserError: the case is invalid, the protocol does not support it, or the record has other content under its
                id; nothing was paid for.
            DebateCancelled: the debate was cancelled without a verdict.
        """
        return await self.run_labelled_case(await asyncio.to_thread(self.prepare_case, case))

    async def run_labelled_case(self, labelled: LabelledCase) -> DebateResult:
        """As `run_case`, for a case from `prepare_case`."""
        return self._with_cost(await self._require_open().run_case(labelled))

    async def lookup(self, case_id: str) -> DebateResult | None:
        """Recorded result of a case; None without a verdict."""
        result = await self._require_open().recorded_result(case_id)
        return None if result is None else self._with_cost(result)

    def _with_cost(self, result: DebateResult) -> DebateResult:
        is_known = not total_of(result.usage).calls_without_usage
        cost = cost_usd(result.usage, self._prepared.prices) if is_known else None
        return msgspec.structs.replace(result, cost_usd=cost)

    def prepare_case(self, case: Mapping[str, object] | LabelledCase) -> LabelledCase:
        """Prepare a case: read its pictures and fill in its id.

        Raises:
            UserError: the case is invalid, or the protocol does not support it.
        """
        labelled = next(task_from_cases([case]).cases())
        given = case.case.id if isinstance(case, LabelledCase) else case.get("id")
        if given in (None, ""):
            labelled = msgspec.structs.replace(
                labelled, case=msgspec.structs.replace(labelled.case, id=content_case_id(labelled.case))
            )
        check_case(self._prepared.protocol, labelled.case)
        self._prepared.columns.warn_of(labelled.case)
        return msgspec.structs.replace(labelled, index=next(self._indices))

    async def cancel(self, case_id: str) -> bool:
        """Cancel the debate of a case; False if it is not being debated. If the case is submitted again, its debate
        resumes from the record."""
        return await self._require_open().cancel(case_id)

    def events(self, case_id: str) -> AsyncIterator[StreamedEvent] | None:
        """Stream of a debate's events, replies included, from the first to the last; None if the debate is not open and
        did not end recently. Events before an interruption are read from the record."""
        event_stream = self._require_open().event_stream(case_id)
        return None if event_stream is None else self._follow(case_id, event_stream)

    async def _follow(self, case_id: str, event_stream: EventStream) -> AsyncIterator[StreamedEvent]:
        if event_stream.earlier_than is not None:
            for event in await self.recorded_events(case_id, event_stream.earlier_than):
                yield event
        async for event in event_stream.follow():
            yield event

    async def recorded_events(self, case_id: str, before: float = float("inf")) -> list[StreamedEvent]:
        """Recorded events of a case before a time (Unix seconds); also while the run is closed.

        Raises:
            RecordError: the record cannot be read.
        """
        async with self._reading:
            return await asyncio.to_thread(recorded_events, RunFolder(self._prepared.folder), case_id, before)

    def has_started(self, case_id: str) -> bool:
        """Whether an open case has had its first event: it is no longer queued."""
        return self._require_open().has_started(case_id)

    @property
    def broken(self) -> BaseException | None:
        """Error that stopped the engine; None without one, also after a stop by a budget."""
        return None if self._dispatcher is None else self._dispatcher.error

    @property
    def refusal(self) -> str:
        """Reason why cases are refused; empty while they are accepted."""
        return "" if self._dispatcher is None else self._dispatcher.stop_reason

    @property
    def can_reopen(self) -> bool:
        """Whether the run stopped for a temporary reason, an unreachable endpoint or a lost limiter, so that it resumes
        when it is closed and opened again. An exhausted budget is not temporary."""
        if self._dispatcher is None or self._dispatcher.error is not None:
            return False
        return self._dispatcher.stopped_by.partition(":")[0] in (EndpointDown.kind, LimiterGone.kind)

    @property
    def pending(self) -> int:
        """Number of submitted cases without a result."""
        return 0 if self._dispatcher is None else self._dispatcher.waiting

    async def counts(self) -> Counts:
        """Running totals of the whole record."""
        self._require_open()
        return await self._runtime.writers.counts()

    async def close(self, *, drain_s: float = 0.0) -> None:
        """Close the run: refuse new cases, drain debates for `drain_s` seconds, cancel the rest, complete the record.
        Idempotent."""
        dispatcher, self._dispatcher = self._dispatcher, None
        if dispatcher is not None:
            self._closing.set_result(drain_s)
            await self._task

    def _require_open(self) -> QueueDispatcher:
        if self._dispatcher is None:
            raise ConfigError("the run is not open")
        return self._dispatcher
