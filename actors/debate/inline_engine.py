"""Inline engine: moderator, agents, judges and record writer in the user's own process, without Ray."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from moot.actors.debate.context_factory import (
    LocalAgentPool,
    build_debate_context,
    build_limiter,
    build_limiter_client,
    needs_limiter,
)
from moot.actors.debate.engine import ModeratorHandle, WriterPool
from moot.actors.debate.moderator import Moderator
from moot.actors.debate.run_spec import RunSpec
from moot.actors.limits.envelopes import LimiterState
from moot.actors.record.debate_result import DebateEnd, DebateResult
from moot.actors.record.folder import RunFolder
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.recovery import History
from moot.actors.record.rows import RowBuffer
from moot.actors.record.signals import Signals
from moot.actors.record.store.store import Store
from moot.actors.telemetry.telemetry import Telemetry, Tracing
from moot.protocols.base import DebateProtocol
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RecordError
from moot.protocols.messages import Event

_LEASE_S = 180.0


class LocalRecordClient:
    """Record client of a writer in the same process; replies are batched briefly.

    Args:
        writer: the only writer.
    """

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer
        self._replies = RowBuffer("replies")
        self._scheduled = False

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        """See `RecordClient.put_reply`."""
        self._replies.append(**columns)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_later(0.05, self._flush_later)

    def _flush_later(self) -> None:
        with suppress(RecordError):  # the next event raises it
            self.flush()

    def flush(self) -> None:
        """Pass the batch of replies to the writer."""
        self._scheduled = False
        if len(self._replies):
            self._writer.add_replies(self._replies.flush())

    def put_event(self, case_id: str, attempt: int, event: Event) -> None:
        """See `RecordClient.put_event`."""
        self._writer.add_events([(case_id, attempt, event, time.time())])

    def put_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """See `RecordClient.put_vectors`."""
        self._writer.add_vectors(case_id, attempt, encoder, vectors)

    async def commit(self, result: DebateResult) -> bool:
        """See `RecordClient.commit`."""
        self.flush()
        return (await self._writer.commit([result]))[0]

    def end(self, case_id: str, attempt: int) -> None:
        """See `RecordClient.end`: nothing is kept here."""

    async def history(self, case_id: str, attempt: int) -> History:
        """See `RecordClient.history`."""
        self.flush()
        return (await self._writer.history([(case_id, attempt)]))[0]

    async def has_shared(self, key: str) -> bool:
        """See `RecordClient.has_shared`."""
        self.flush()
        return await self._writer.has_shared(key)

    async def acquire_lease(self, key: str) -> tuple[bool, History]:
        """See `RecordClient.acquire_lease`."""
        return await self._writer.acquire_lease(key, _LEASE_S)

    async def release_lease(self, key: str) -> None:
        """See `RecordClient.release_lease`."""
        self.flush()
        self._writer.leases.release(key)


class InlineWriterPool:
    """Writer pool of the process's one record writer."""

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer
        self._cursor = 0

    async def register(self, cases: Sequence[LabelledCase]) -> None:
        """See `WriterPool.register`."""
        await self._writer.register(cases)

    def end(self, ends: Sequence[DebateEnd]) -> None:
        """See `WriterPool.end`."""
        with suppress(RecordError):  # the next row raises it
            self._writer.end((0, end) for end in ends)

    async def counts(self) -> Counts:
        """See `WriterPool.counts`."""
        return Counts().merge(self._writer.progress.counts)  # a copy: the writer still counts

    async def events(self) -> list[StreamedEvent]:
        """See `WriterPool.events`."""
        self._cursor, events = self._writer.progress.events_since(self._cursor)
        return events

    async def results(self, case_ids: Sequence[str]) -> dict[str, DebateResult]:
        """See `WriterPool.results`."""
        return await self._writer.results(case_ids)

    async def signals(self) -> Signals:
        """See `WriterPool.signals`."""
        return await self._writer.signals.signals()

    async def close(self, *, compact: bool) -> None:
        """See `WriterPool.close`."""
        await self._writer.close(compact=compact)


class InlineRuntime:
    """Inline runtime: everything in this process and on this event loop.

    Args:
        spec: the run.
        protocol: the protocol, an instance.
    """

    def __init__(self, spec: RunSpec, protocol: DebateProtocol) -> None:
        self._spec, self._protocol = spec, protocol
        self.moderators: Sequence[ModeratorHandle] = ()
        self.max_open = spec.max_open
        store = None if spec.store is None else Store.of(spec.store)
        self._writer = RecordWriter(RunFolder(spec.folder, store), spec.epoch, streams_replies=spec.followed)
        self.writers: WriterPool = InlineWriterPool(self._writer)

    async def start(self) -> None:
        """See `Runtime.start`."""
        await self._writer.load()
        self._record_client = LocalRecordClient(self._writer)
        telemetry = Telemetry(tracer=Tracing(self._spec.store or self._spec.folder))
        self._tracer = telemetry.tracer
        limiter = self._limiter = build_limiter(self._spec) if needs_limiter(self._spec) else None
        self._limiter_client = None if limiter is None else build_limiter_client(self._spec, limiter.exchange)
        self._agent_pool = await asyncio.to_thread(
            LocalAgentPool, self._spec, self._record_client, self._limiter_client, telemetry
        )
        self._context = await asyncio.to_thread(
            build_debate_context, self._spec, self._agent_pool, self._record_client, telemetry
        )
        self.moderators = [Moderator(self._protocol, self._context, self.max_open, self._spec.debate_timeout_s)]

    async def limiter_state(self) -> LimiterState | None:
        """See `Runtime.limiter_state`."""
        return None if self._limiter is None else self._limiter.state()

    async def stop(self, *, compact: bool = True) -> None:
        """See `Runtime.stop`."""
        try:
            for moderator in self.moderators:
                await moderator.drain(0.0)
            await self._agent_pool.close()
            if self._limiter_client is not None:
                await self._limiter_client.close()
            await self._context.close()
            self._record_client.flush()
        finally:  # on a full disk draining may fail too
            await self._writer.close(compact=compact)
            await self._tracer.close()
