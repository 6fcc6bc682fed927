"""Open run: cases are submitted while it is open, and each submitter gets the result of its case.

Basis of a Ray Data stage, a web service, and everything else that debates cases as they arrive.
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
from moot.actors.models.prices import cost_usd
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
from moot.protocols.messages import Usage
from moot.protocols.tasks import Task

NAME = "cases"

_READERS = 2
"""Maximum followers with concurrent reads of the record."""


class OpenRun:
    """A run with one protocol, configuration and record for submitted cases. Lives in one event loop.

    On the record of an earlier run, a case with a recorded verdict gets it at no cost.

    Args:
        config: as for `moot.run`, without a task.
        protocol: an object with `async def run(self, case, floor)`, instead of `config.protocol`.
        followed: whether events are streamed; otherwise `events` has none.
        tried: the run's bindings after trial calls; None makes these calls when it is opened.

    Raises:
        UserError: one line about what is wrong.
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
            raise ConfigError(f"--out {config.out}: cases that come one by one are recorded in a folder; give its path")
        prepared = prepare(config, task=Task.arriving(NAME), protocol=protocol)
        self._prepared = prepared if tried is None else replace(prepared, bindings=tried, trials_done=True)
        self._dispatcher: QueueDispatcher | None = None
        self._runtime: Runtime
        self._task: asyncio.Task[None]
        self._closing: asyncio.Future[float]
        self._indices = itertools.count()
        self._reading = asyncio.Semaphore(_READERS)

    @property
    def prepared(self) -> Prepared:
        """The checked configuration."""
        return self._prepared

    @property
    def is_open(self) -> bool:
        """Whether cases can be submitted and looked up: from opening to closing."""
        return self._dispatcher is not None

    async def open(self) -> None:
        """Locks the folder and starts the engine. A closed run may be opened again.

        Raises:
            UserError: a model cannot be used, the folder contains another run or is in use; nothing was written, except
                for a library of `docs`, which was paid for.
        """
        prepared = self._prepared
        folder = RunFolder(prepared.folder)
        await asyncio.to_thread(check_resumable, prepared)
        if folder.is_owned():  # a caller that waits for the owner retries, and a model's trial call is paid for
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
        """Runs submitted cases until the run is closed."""
        self._indices = itertools.count(session.completed.known)
        self._runtime, closing, drain_s = session.runtime, self._closing, 0.0
        dispatcher = self._dispatcher = QueueDispatcher(
            session.runtime,
            session.completed,
            followed=self._followed,
            in_words=partial(describe_stop, config=session.prepared.config),
            forecast=session.forecast,
        )
        dispatcher.start()
        ready.set_result(None)
        try:
            drain_s = await closing
        finally:
            self._dispatcher = None
            left = await dispatcher.close(drain_s)
        whole = not left and dispatcher.error is None
        await session.stop_engine(compact=whole)
        await session.complete_record(compact=whole)
        if dispatcher.stopped_by:
            session.stopped_by(describe_stop(dispatcher.stopped_by, session.prepared.config))
        if dispatcher.error is None:
            session.status = "interrupted" if left else "stopped" if dispatcher.stopped_by else "finished"

    async def run_case(self, case: Mapping[str, object] | LabelledCase) -> DebateResult:
        """Debates a case and waits for its durable result.

        Args:
            case: as in a list of cases given to `moot.run`. Without an `id` it is identified by its content.

        Cancelling this leaves the debate running: `cancel` cancels it.

        Raises:
            UserError: it is no case, one that the protocol does not support, or the record has other content under its
                id; nothing was paid for.
            DebateCancelled: the debate was cancelled without a verdict.
        """
        return await self.run_labelled_case(await asyncio.to_thread(self.prepare_case, case))

    async def run_labelled_case(self, labelled: LabelledCase) -> DebateResult:
        """As `run_case`, for a case from `prepare_case`."""
        return self._with_cost(await self._require_open().run_case(labelled))

    async def lookup(self, case_id: str) -> DebateResult | None:
        """The recorded result of a case; None without a verdict."""
        found = await self._require_open().recorded_result(case_id)
        return None if found is None else self._with_cost(found)

    def _with_cost(self, result: DebateResult) -> DebateResult:
        usage = {
            model: Usage() if used.unknown else Usage(used.prompt_tokens, used.completion_tokens)
            for model, used in result.usage.items()
        }
        return msgspec.structs.replace(result, cost_usd=cost_usd(usage, self._prepared.prices))

    def prepare_case(self, case: Mapping[str, object] | LabelledCase) -> LabelledCase:
        """Prepares a case: reads its pictures and fills in its id.

        Raises:
            UserError: it is no case, or one that the protocol does not support.
        """
        found = next(task_from_cases([case]).cases())
        given = case.case.id if isinstance(case, LabelledCase) else case.get("id")
        if given in (None, ""):
            found = msgspec.structs.replace(
                found, case=msgspec.structs.replace(found.case, id=content_case_id(found.case))
            )
        check_case(self._prepared.protocol, found.case)
        return msgspec.structs.replace(found, index=next(self._indices))

    async def cancel(self, case_id: str) -> bool:
        """Cancels the debate of a case; False when it is not being debated. Submitted again, it resumes from the
        record."""
        return await self._require_open().cancel(case_id)

    def events(self, case_id: str) -> AsyncIterator[StreamedEvent] | None:
        """Streams the events of a debate, replies included, from its first to its last; None when it is not open and
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
        """Whether an open case has had its first event, so that it is no longer queued."""
        return self._require_open().has_started(case_id)

    @property
    def broken(self) -> BaseException | None:
        """The error that broke the engine; None without one, or after a budget's stop."""
        return None if self._dispatcher is None else self._dispatcher.error

    @property
    def refusal(self) -> str:
        """Reason why no further case is accepted; empty while they are."""
        return "" if self._dispatcher is None else self._dispatcher.stop_reason

    @property
    def can_reopen(self) -> bool:
        """Whether it stopped for a temporary reason, such as an unreachable endpoint or a lost limiter: closed and
        opened again, it resumes. A used-up budget is not temporary."""
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
        """Closes the run: refuses new cases, drains debates for this long, cancels the rest, completes the record.
        Idempotent."""
        dispatcher, self._dispatcher = self._dispatcher, None
        if dispatcher is not None:
            self._closing.set_result(drain_s)
            await self._task

    def _require_open(self) -> QueueDispatcher:
        if self._dispatcher is None:
            raise ConfigError("the run is not open")
        return self._dispatcher
