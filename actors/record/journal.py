"""Append-only journal of one writer: rows are buffered, flushed in order, and finally compacted to Parquet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from moot.actors.models.off_loop import to_thread_shielded
from moot.actors.record.compaction import compact
from moot.actors.record.flush_log import append_flush
from moot.actors.record.folder import RunFolder, Segment
from moot.actors.record.roll_files import roll_name
from moot.actors.record.rows import RowBuffer
from moot.actors.record.schema import JOURNAL
from moot.actors.record.segments import SegmentWriter
from moot.actors.record.store.deltas import DeltaWriter, rolls_of, seal
from moot.actors.record.store.mirror import pull
from moot.actors.record.store.store import Store
from moot.actors.telemetry.failpoints import failpoint
from moot.protocols.errors import RecordError

FLUSH_ROWS = 256
FLUSH_S = 1.0
ROLL_BYTES = 256 * 2**20
SYNC_S = 1.0
_COMMIT_S = 0.1

STORED_ROWS = 4096
"""Like `FLUSH_ROWS`, where each flush is a request to a store; verdicts also wait for `FLUSH_S`."""


class Journal:
    """Write-ahead journal: buffers rows and makes them durable after at most `FLUSH_S` seconds or `FLUSH_ROWS` rows.

    Durable means passed to the operating system, so that a killed process loses nothing. At most `SYNC_S` later it is
    synced to the disk, so that it also survives a power failure. In a store it means put there.

    Args:
        folder: the run's folder; owned by the process that creates the journal.
        epoch: the owner's number.
        writer: the writer's number.
    """

    def __init__(self, folder: RunFolder, epoch: int, writer: int) -> None:
        self._folder, self._epoch, self._writer = folder, epoch, writer
        self._rows = {stream: RowBuffer(stream) for stream in JOURNAL if stream != "replies"}
        self._replies: list[pa.RecordBatch] = []
        self._buffered = 0
        self._flushing = asyncio.Lock()
        self._next: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._current: asyncio.Future[None] | None = None
        self._failed: RecordError | None = None
        self._due: asyncio.TimerHandle | None = None
        self._due_at = 0.0
        self._flush_task: asyncio.Task[None] | None = None
        self._synced_at = time.monotonic()
        stored = folder.store is not None
        self._most, self._commit_s = (STORED_ROWS, FLUSH_S) if stored else (FLUSH_ROWS, _COMMIT_S)
        self._deltas: DeltaWriter | None = None
        self._roll = folder.next_roll(epoch, writer)
        self._segments = self._new_segments()

    async def begin(self) -> None:
        """Start the journal in the store, if there is one: what earlier incarnations of the writer append from now on
        does not count, and what counts is copied here.

        Raises:
            RecordError: the store cannot be written.
        """
        if self._folder.store is not None:
            await asyncio.to_thread(self._begin, self._folder.store)

    def _begin(self, store: Store) -> None:
        mine = roll_name(self._epoch, self._writer, 0)[: -len("0000")]
        earlier = {roll: names for roll, names in rolls_of(store).items() if roll.startswith(mine)}
        seal(store, earlier)
        if earlier:  # what they have put since this incarnation looked counts too
            pull(store, self._folder.path)
        self._roll = max([self._roll, *(int(roll.removeprefix(mine)) + 1 for roll in earlier)])
        self._segments = self._new_segments()
        self._begin_roll()

    def append(self, stream: str, **columns: Any) -> None:
        """Buffer a row of any stream but `replies`.

        Raises:
            RecordError: earlier rows could not be written: nothing more may be paid for.
        """
        self._check()
        self._rows[stream].append(**columns)
        self._count(1)

    def append_replies(self, batch: pa.RecordBatch) -> None:
        """Buffer a batch of the stream `replies`. Raises like `append`."""
        self._check()
        self._replies.append(batch)
        self._count(batch.num_rows)

    def _check(self) -> None:
        if self._failed is not None:
            raise RecordError(str(self._failed))  # a new instance: each raise of one lengthens its traceback

    def _count(self, rows: int) -> None:
        self._buffered += rows
        if self._buffered >= self._most:
            self._flush_within(0.0)
        elif self._due is None:
            self._flush_within(FLUSH_S)

    def _flush_within(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._due is not None:
            if self._due_at <= due:
                return
            self._due.cancel()
        self._due, self._due_at = loop.call_at(due, self._start_flush), due

    def _start_flush(self) -> None:
        self._due = None
        self._flush_task = asyncio.create_task(self._flush_in_background())

    async def _flush_in_background(self) -> None:
        with suppress(RecordError):  # the next row, and whoever waits for durability, gets it
            await self.flush()

    async def durable(self) -> None:
        """Wait until everything appended so far is durable; concurrent verdicts share a flush.

        Raises:
            RecordError: it cannot be written, or something before it could not.
        """
        if self._buffered:
            self._flush_within(self._commit_s)
            await asyncio.shield(self._next)
        elif self._current is not None:
            await asyncio.shield(self._current)
        self._check()

    async def flush(self) -> None:
        """Make everything appended so far durable.

        Raises:
            RecordError: it cannot be written. Nothing is written after that, because rows are missing.
        """
        async with self._flushing:
            if self._due is not None:
                self._due.cancel()
                self._due = None
            if self._failed is not None:
                self._resolve(self._next)
                self._check()
            if not self._buffered:
                return
            self._buffered = 0
            self._current, self._next = self._next, asyncio.get_running_loop().create_future()
            try:
                await self._in_thread(self._write)
            finally:
                self._resolve(self._current)
                self._current = None
        failpoint("writer.flushed")

    async def readable(self) -> None:
        """Make everything appended so far readable in the segments; in a folder it is then durable, in a store perhaps
        not.

        Raises:
            RecordError: see `flush`.
        """
        if self._folder.store is None:
            await self.flush()
            return
        async with self._flushing:
            self._check()
            await self._in_thread(self._append)

    async def _in_thread(self, write: Callable[[dict[str, list[pa.RecordBatch]]], None]) -> None:
        replies, self._replies = self._replies, []
        with self._noting_failure():
            taken = {stream: [rows.flush()] for stream, rows in self._rows.items() if len(rows)}

        def checked() -> None:
            with self._noting_failure():
                write({**taken, "replies": replies})

        await to_thread_shielded(checked)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        """Fail the journal when something could not be written: nothing may follow it."""
        try:
            yield
        except RecordError as error:
            self._failed = error
            raise
        except Exception as error:
            self._failed = RecordError(f"cannot write to {self._folder.path}: {error}")
            raise self._failed from error

    @staticmethod
    def _resolve(flushed: asyncio.Future[None]) -> None:
        if not flushed.done():
            flushed.set_result(None)

    def _write(self, taken: dict[str, list[pa.RecordBatch]]) -> None:
        self._append(taken)
        if self._deltas is not None:
            self._deltas.put(segment.path for segment in self._segments.values() if segment.size)
        elif time.monotonic() - self._synced_at > SYNC_S:
            self._sync()
        self._log_flush()
        if self._segments["replies"].size > ROLL_BYTES:
            self._compact()
            self._begin_roll()

    def _append(self, taken: dict[str, list[pa.RecordBatch]]) -> None:
        for stream in JOURNAL:
            segment = self._segments[stream]
            for batch in taken.get(stream, ()):
                segment.append(batch)
            segment.flush()

    def _begin_roll(self) -> None:
        if self._folder.store is not None:
            self._deltas = DeltaWriter(self._folder.store, roll_name(self._epoch, self._writer, self._roll))

    def _log_flush(self) -> None:
        begun = {stream: segment for stream, segment in self._segments.items() if segment.size}
        written = {stream: segment.size for stream, segment in begun.items()}
        append_flush(self._log(), written, {stream: segment.synced for stream, segment in begun.items()})

    def _log(self) -> Path:
        return self._folder.flush_log(roll_name(self._epoch, self._writer, self._roll))

    def _sync(self) -> None:
        for segment in self._segments.values():
            segment.sync()
        self._synced_at = time.monotonic()

    def _new_segments(self) -> dict[str, SegmentWriter]:
        return {
            stream: SegmentWriter(self._folder.segment_path(self._epoch, self._writer, self._roll, stream), schema)
            for stream, schema in JOURNAL.items()
        }

    def _compact(self) -> None:
        name = roll_name(self._epoch, self._writer, self._roll)
        written = self._end_segments()
        if not self._folder.is_owned_by(self._epoch):
            raise RecordError(f"{self._folder.path}: another process has taken it over")
        if self._deltas is not None:
            self._deltas.check()
        if written:
            compact(self._folder, name, written)

    def _end_segments(self) -> dict[str, list[Segment]]:
        """Close the segments that are not empty, and continue in new ones; returns the closed ones by stream."""
        ended: dict[str, list[Segment]] = {}
        for stream, segment in self._segments.items():
            if segment.size:
                ended[stream] = [Segment(segment.path, None, segment.close())]
        if ended:
            lengths = {stream: segments[0].least_bytes for stream, segments in ended.items()}
            append_flush(self._log(), lengths, lengths, ends=True)
        self._roll += 1
        self._segments = self._new_segments()
        return ended

    def _leave(self) -> None:
        """End the segments; a later owner compacts them."""
        if self._end_segments() and self._deltas is not None:
            self._deltas.end()

    async def close(self, *, compact: bool = True) -> None:
        """Flush, and compact the segments of this writer to Parquet."""
        try:
            await self.flush()
            async with self._flushing:
                await to_thread_shielded(self._noting_failure()(self._compact if compact else self._leave))
        finally:
            for segment in self._segments.values():
                segment.abandon()
