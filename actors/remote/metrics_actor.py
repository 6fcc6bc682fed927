"""Metrics actor: the Ray actor that writes the record and keeps the running aggregates."""

from __future__ import annotations

import asyncio

import msgspec

from moot.actors.debate.run_spec import RunSpec
from moot.actors.record.debate_result import DebateEnd, DebateResult
from moot.actors.record.folder import RunFolder
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.schema import JOURNAL
from moot.actors.record.signals import encode_signals
from moot.actors.record.store.mirror import Mirror
from moot.actors.record.store.store import Store
from moot.actors.remote.record_client import EventRow, VectorRow, unpack
from moot.actors.remote.run_actor import RunActor
from moot.protocols.case import LabelledCase


class MetricsActor(RunActor):
    """Metrics actor: writes the record of the cases that hash to it and keeps the running aggregates."""

    kind = "writer"

    async def _set_up(self) -> None:
        number: int = self._args[0]
        self._copy, folder = await asyncio.to_thread(_writing_folder, self._spec)
        spec = self._spec
        self._writer = RecordWriter(
            folder, spec.epoch, number, spec.writers, self._meter, streams_replies=spec.followed
        )
        await self._writer.load()

    async def register(self, raw: bytes, number: int) -> None:
        """See `RecordWriter.register`."""
        await self._up()
        await self._writer.register(msgspec.msgpack.decode(raw, type=list[LabelledCase]), number)

    async def end(self, raw: bytes) -> None:
        """See `RecordWriter.end`; returns when the events of cancelled debates are durable."""
        await self._up()
        ends = msgspec.msgpack.decode(raw, type=list[tuple[int, DebateEnd]])
        self._writer.end(ends)
        if any(end.cancelled for _, end in ends):
            await self._writer.durable()

    async def take_rows(self, packed: tuple[bytes, int] | None, rest: bytes) -> str:
        """Accept replies (see `record_client.pack`), events and embeddings; returns the writer's incarnation."""
        await self._up()
        if packed is not None:
            self._writer.add_replies(unpack(*packed, JOURNAL["replies"]))
        events, vectors = msgspec.msgpack.decode(rest, type=tuple[list[EventRow], list[VectorRow]])
        self._writer.add_events(events)
        for case_id, attempt, encoder, text_hash, vector in vectors:
            self._writer.add_vectors(case_id, attempt, encoder, [(text_hash, vector)])
        return self._writer.incarnation

    async def commit(self, raw: bytes) -> list[bool]:
        """See `RecordWriter.commit`."""
        await self._up()
        return await self._writer.commit(msgspec.msgpack.decode(raw, type=list[DebateResult]))

    async def history(self, keys: list[tuple[str, int]]) -> tuple[str, bytes]:
        """The writer's incarnation, and the encoded result of `RecordWriter.history`."""
        await self._up()
        return self._writer.incarnation, msgspec.msgpack.encode(await self._writer.history(keys))

    async def so_far(self, keys: list[tuple[str, int]]) -> tuple[int, int]:
        """See `RowDeduplicator.so_far`."""
        await self._up()
        return self._writer.so_far(keys)

    async def results(self, case_ids: list[str]) -> bytes:
        """See `RecordWriter.results`; encoded."""
        await self._up()
        return msgspec.msgpack.encode(await self._writer.results(case_ids))

    async def acquire_lease(self, key: str, lease_s: float, lessee: str) -> tuple[bool, bytes]:
        """See `RecordWriter.acquire_lease`."""
        await self._up()
        mine, history = await self._writer.acquire_lease(key, lease_s, lessee)
        return mine, msgspec.msgpack.encode(history)

    async def has_shared(self, key: str) -> bool:
        """See `RecordWriter.has_shared`."""
        await self._up()
        return await self._writer.has_shared(key)

    async def release_lease(self, key: str, lessee: str) -> None:
        """See `ReplyLeases.release`."""
        await self._up()
        self._writer.leases.release(key, lessee)

    async def counts(self) -> bytes:
        """The writer's running totals, encoded."""
        await self._up()
        return msgspec.msgpack.encode(self._writer.progress.counts)

    async def events_since(self, incarnation: str, cursor: int) -> bytes:
        """The writer's incarnation, its next cursor, and the events after `cursor`, encoded; a cursor of another
        incarnation counts as 0."""
        await self._up()
        mine = self._writer.incarnation
        following, events = self._writer.progress.events_since(cursor if incarnation == mine else 0)
        return msgspec.msgpack.encode((mine, following, events))

    async def signals(self, incarnation: str, known: int) -> tuple[str, int, bytes]:
        """The writer's incarnation, the version of its signals, and these, encoded; empty when they still have the
        version `known` of this incarnation."""
        await self._up()
        mine, aggregator = self._writer.incarnation, self._writer.signals
        version = aggregator.version
        if (incarnation, known) == (mine, version):
            return mine, version, b""
        signals = await aggregator.signals()
        return mine, version, await asyncio.to_thread(encode_signals, signals)

    async def close(self, compact: bool) -> None:
        """See `RecordWriter.close`."""
        await self._up()
        try:
            await self._writer.close(compact=compact)
        finally:
            if self._copy is not None:
                self._copy.remove()


def _writing_folder(spec: RunSpec) -> tuple[Mirror | None, RunFolder]:
    """Folder of a writer: the run's folder, or a local mirror of a store."""
    if spec.store is None:
        return None, RunFolder(spec.folder)
    copy = Mirror(Store.of(spec.store))
    copy.pull()
    return copy, RunFolder(copy.folder, copy.store)
