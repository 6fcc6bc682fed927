"""Pool of the record's writers as Ray actors, for the driver."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from functools import partial, reduce

import msgspec
import structlog

from moot.actors.dispatch.mailbox import Mailbox
from moot.actors.record.debate_result import DebateEnd, DebateResult, writer_of
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.schema import CaseKey
from moot.actors.record.signals import Signals, decode_signals
from moot.actors.remote.peers import Peer, PeerLost
from moot.protocols.case import LabelledCase
from moot.protocols.errors import ActorGone, MootError, RecordError

_log = structlog.get_logger(__name__)
_END_EACH_S = 0.25


class RayWriterPool:
    """Pool of writer actors; a lost writer gets the open cases again."""

    def __init__(self, writers: Sequence[Peer]) -> None:
        self._writers = list(writers)
        self._open: dict[str, LabelledCase] = {}
        self._cursors = [("", 0)] * len(self._writers)
        self._last = [Counts() for _ in self._writers]
        self._signals = [Signals() for _ in self._writers]
        self._versions = [("", -1)] * len(self._writers)
        self._merged_signals = Signals()
        self._registrations = self._cancelled_unsent = 0
        self._ends = [
            Mailbox[tuple[int, DebateEnd]](partial(self._send_ends, number), spacing_s=_END_EACH_S)
            for number in range(len(self._writers))
        ]
        self._watches = [
            asyncio.create_task(writer.watch(partial(self._lost, number)))
            for number, writer in enumerate(self._writers)
        ]
        self._broken: BaseException | None = None
        for watch in self._watches:
            watch.add_done_callback(self._unwatched)

    def _unwatched(self, watch: asyncio.Task[None]) -> None:
        """Keep the error: a writer that is no longer watched would not get the open cases again after a loss."""
        if not watch.cancelled() and watch.exception() is not None:
            self._broken = watch.exception()

    def raise_if_broken(self) -> None:
        """Raise `ActorGone` or `RecordError` when the watch of a writer has failed."""
        if self._broken is not None:
            kind = ActorGone if isinstance(self._broken, ActorGone) else RecordError
            raise kind(str(self._broken)) from self._broken

    async def register(self, cases: Sequence[LabelledCase]) -> None:
        """See `WriterPool.register`."""
        self._open |= {labelled.case.id: labelled for labelled in cases}
        for number in range(len(self._writers)):
            if mine := self._of(number, cases):
                await self._send_open_cases(number, mine)

    def _of(self, number: int, cases: Sequence[LabelledCase]) -> list[LabelledCase]:
        return [labelled for labelled in cases if writer_of(labelled.case.id, len(self._writers)) == number]

    async def _send_open_cases(self, number: int, cases: Sequence[LabelledCase]) -> None:
        self._registrations += 1
        await self._writers[number].call_until_done("register", msgspec.msgpack.encode(cases), self._registrations)

    async def _lost(self, number: int) -> None:
        await self._send_open_cases(number, self._of(number, list(self._open.values())))

    def end(self, ends: Sequence[DebateEnd]) -> None:
        """See `WriterPool.end`."""
        for end in ends:
            self._cancelled_unsent += bool(end.cancelled)
            self._open.pop(end.case_id, None)
            self._ends[writer_of(end.case_id, len(self._writers))].post((self._registrations, end))

    async def _send_ends(self, number: int, batch: list[tuple[int, DebateEnd]]) -> None:
        try:
            await self._writers[number].call_until_done("end", msgspec.msgpack.encode(batch))
        except MootError as error:  # the writer's own calls end the run
            _log.warning("the record does not learn how some debates ended", debates=len(batch), error=str(error))
        finally:
            self._cancelled_unsent -= sum(bool(end.cancelled) for _, end in batch)

    async def counts(self) -> Counts:
        """See `WriterPool.counts`; its last totals while a writer restarts."""
        for i, writer in enumerate(self._writers):
            try:
                self._last[i] = msgspec.msgpack.decode(await writer.call("counts"), type=Counts)
            except PeerLost:
                continue
        total = Counts()
        for counts in self._last:
            total = total.merge(counts)
        return total

    async def events(self) -> list[StreamedEvent]:
        """See `WriterPool.events`. Waits for a lost writer when the others have none. Events not yet read when a writer
        died are not delivered."""
        found: list[StreamedEvent] = []
        while True:
            lost = [writer for i, writer in enumerate(self._writers) if not await self._read_events(i, found)]
            if found or not lost:
                return found
            await asyncio.gather(*(writer.wait_until_back() for writer in lost))

    async def _read_events(self, number: int, found: list[StreamedEvent]) -> bool:
        try:
            raw = await self._writers[number].call("events_since", *self._cursors[number])
        except PeerLost:
            return False
        incarnation, cursor, events = msgspec.msgpack.decode(raw, type=tuple[str, int, list[StreamedEvent]])
        self._cursors[number] = (incarnation, cursor)
        found += events
        return True

    async def so_far(self, keys: Collection[CaseKey]) -> tuple[int, int]:
        """See `RowDeduplicator.so_far`; over all writers."""
        ended = replies = 0
        for number, writer in enumerate(self._writers):
            mine = [key for key in keys if writer_of(key[0], len(self._writers)) == number]
            if mine:
                its_ended, its_replies = await writer.call_until_done("so_far", mine)
                ended, replies = ended + its_ended, replies + its_replies
        return ended, replies

    async def results(self, case_ids: Sequence[str]) -> dict[str, DebateResult]:
        """See `WriterPool.results`."""
        found: dict[str, DebateResult] = {}
        for number, writer in enumerate(self._writers):
            mine = [case_id for case_id in case_ids if writer_of(case_id, len(self._writers)) == number]
            if mine:
                raw = await writer.call_until_done("results", mine)
                found |= msgspec.msgpack.decode(raw, type=dict[str, DebateResult])
        return found

    async def signals(self) -> Signals:
        """See `WriterPool.signals`; its last ones while a writer restarts."""
        has_changed = False
        for i, writer in enumerate(self._writers):
            try:
                incarnation, version, raw = await writer.call("signals", *self._versions[i])
            except PeerLost:
                continue
            if raw:
                has_changed, self._versions[i] = True, (incarnation, version)
                self._signals[i] = await asyncio.to_thread(decode_signals, raw)
        if has_changed:
            self._merged_signals = await asyncio.to_thread(_merged, self._signals)
        return self._merged_signals

    async def close(self, *, compact: bool) -> None:
        """See `WriterPool.close`."""
        if self._cancelled_unsent:  # the others need not arrive
            await asyncio.gather(*(box.drained() for box in self._ends))
        await asyncio.gather(*(writer.call_until_done("close", compact) for writer in self._writers))

    async def stop_watching(self) -> None:
        """Stop watching the writers, before they are taken down: a later call to Ray would start a new one."""
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await asyncio.gather(*(box.close() for box in self._ends))


def _merged(parts: Sequence[Signals]) -> Signals:
    return reduce(Signals.merge, parts, Signals())
