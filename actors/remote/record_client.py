"""Record client of remote writers: sends rows to the metrics actors in batches."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import structlog

from moot.actors.dispatch.mailbox import Mailbox
from moot.actors.record.debate_result import DebateEnd, DebateResult, writer_of
from moot.actors.record.recovery import History
from moot.actors.record.rows import batch_of
from moot.actors.record.schema import BOOKKEEPING_EVENTS, CaseKey
from moot.actors.remote.peers import Peer
from moot.actors.telemetry.failpoints import failpoint
from moot.protocols.errors import MootError, RecordError
from moot.protocols.messages import Event

_log = structlog.get_logger(__name__)
ROW_SPACING_S = 0.1
ROWS_PER_BATCH = 128
COMMIT_SPACING_S = 0.1
HISTORY_SPACING_S = 0.2
_LEASE_S = 180.0

EventRow = tuple[str, int, Event, float]
VectorRow = tuple[str, int, str, str, bytes]
Row = dict[str, Any] | EventRow | VectorRow | DebateEnd
"""A reply, an event, an embedding, or the end of a debate, after its last row; it is not sent."""

_EVENT_FIELDS = 4


def pack(batch: pa.RecordBatch) -> tuple[bytes, int]:
    """Compresses a batch; returns the bytes and their uncompressed length. Prompts repeat, and small arguments are
    cheap."""
    raw = batch.serialize()
    return pa.compress(raw, "lz4_raw", asbytes=True), raw.size


def unpack(packed: bytes, size: int, schema: pa.Schema) -> pa.RecordBatch:
    """Decompresses a batch from `pack`."""
    return pa.ipc.read_record_batch(pa.decompress(packed, size, "lz4_raw"), schema)


class RemoteRecordClient:
    """Record client that sends rows to the writer actors in batches.

    Args:
        writers: the writer actors, in order.
        sender: `agent`, `judge` or `moderator`; names the failpoint after a sent batch.
    """

    def __init__(self, writers: Sequence[Peer], sender: str) -> None:
        self._sender = sender
        self._connections = [_WriterConnection(writer, sender) for writer in writers]
        self._lessees: dict[str, str] = {}
        self._releasing: set[asyncio.Task[None]] = set()

    def _connection(self, case_id: str) -> _WriterConnection:
        return self._connections[writer_of(case_id, len(self._connections))]

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        """See `RecordClient.put_reply`."""
        self._connection(case_id).rows.post(columns)

    def put_event(self, case_id: str, attempt: int, event: Event) -> None:
        """See `RecordClient.put_event`."""
        self._connection(case_id).rows.post((case_id, attempt, event, time.time()))

    def put_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """See `RecordClient.put_vectors`."""
        post = self._connection(case_id).rows.post
        for text_hash, raw in vectors:
            post((case_id, attempt, encoder, text_hash, raw))

    def end(self, case_id: str, attempt: int) -> None:
        """See `RecordClient.end`."""
        with suppress(MootError):  # the mailbox has failed, and with it the run
            self._connection(case_id).rows.post(DebateEnd(case_id, attempt))

    async def commit(self, result: DebateResult) -> bool:
        """See `RecordClient.commit`."""
        connection = self._connection(result.case_id)
        durable: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        connection.results.post((result, durable))
        return await durable

    async def history(self, case_id: str, attempt: int) -> History:
        """See `RecordClient.history`."""
        return await self._connection(case_id).history((case_id, attempt))

    async def histories(self, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], History]:
        """Recorded parts of several debates."""
        found = await asyncio.gather(*(self._connection(key[0]).history(key) for key in keys))
        return dict(zip(keys, found, strict=True))

    async def acquire_lease(self, key: str) -> tuple[bool, History]:
        """See `RecordClient.acquire_lease`. A cancelled request may still be granted; its lease is then released."""
        lessee = uuid4().hex
        request = self._connection(key).writer.call_until_done("acquire_lease", key, _LEASE_S, lessee)
        granted: asyncio.Task[tuple[bool, bytes]] = asyncio.ensure_future(request)
        try:
            mine, raw = await asyncio.shield(granted)
        except asyncio.CancelledError:
            releasing = asyncio.create_task(self._release_late_grant(key, lessee, granted))
            self._releasing.add(releasing)
            releasing.add_done_callback(self._releasing.discard)
            raise
        if mine:
            self._lessees[key] = lessee
        return mine, msgspec.msgpack.decode(raw, type=History)

    async def _release_late_grant(self, key: str, lessee: str, granted: asyncio.Task[tuple[bool, bytes]]) -> None:
        try:
            mine, _ = await granted
            if mine:
                await self._connection(key).writer.call_until_done("release_lease", key, lessee)
        except Exception as error:  # nobody waits for it, and a restarted writer has no leases
            _log.warning("a lease could not be released", error=repr(error))

    async def has_shared(self, key: str) -> bool:
        """See `RecordClient.has_shared`."""
        connection = self._connection(key)
        await connection.rows.drained()
        durable: bool = await connection.writer.call_until_done("has_shared", key)
        return durable

    async def release_lease(self, key: str) -> None:
        """See `RecordClient.release_lease`."""
        connection = self._connection(key)
        await connection.rows.drained()
        await connection.writer.call_until_done("release_lease", key, self._lessees.pop(key, ""))

    def batch_sizes(self) -> Counter[int]:
        """Batch sizes of rows: number of calls by number of rows per call."""
        return sum((connection.rows.batch_sizes for connection in self._connections), Counter())

    async def drained(self) -> None:
        """Wait until every row has reached its writer."""
        for connection in self._connections:
            await connection.rows.drained()


class _WriterConnection:
    """Connection of one process to one writer: a mailbox for each kind of message."""

    def __init__(self, writer: Peer, sender: str) -> None:
        self.writer, self._sender = writer, sender
        self._noted_in: dict[CaseKey, str] = {}
        self.rows: Mailbox[Row] = Mailbox(self._send_rows, spacing_s=ROW_SPACING_S, most=ROWS_PER_BATCH)
        self.results: Mailbox[tuple[DebateResult, asyncio.Future[bool]]] = Mailbox(
            self._send_verdicts, spacing_s=COMMIT_SPACING_S
        )
        self._requests: Mailbox[tuple[CaseKey, asyncio.Future[History]]] = Mailbox(
            self._ask_history, spacing_s=HISTORY_SPACING_S
        )
        self._commits: set[asyncio.Task[None]] = set()

    async def history(self, key: CaseKey) -> History:
        """Recorded part of a debate; concurrent requests share one read of the journal."""
        answer: asyncio.Future[History] = asyncio.get_running_loop().create_future()
        self._requests.post((key, answer))
        return await answer

    async def _ask_history(self, batch: list[tuple[CaseKey, asyncio.Future[History]]]) -> None:
        try:
            await self.rows.drained()
            incarnation, raw = await self.writer.call_until_done("history", [key for key, _ in batch])
            found = msgspec.msgpack.decode(raw, type=list[History])
        except Exception as error:  # only this batch fails; the next one is a call of its own
            _refuse(batch, error)
            return
        for (key, answer), history in zip(batch, found, strict=True):
            if answer.done():  # its debate was cancelled
                continue
            if history.vectors:  # they may only be buffered there, and nobody sends them again
                self._noted_in.setdefault(key, incarnation)
            answer.set_result(history)

    async def _send_rows(self, batch: list[Row]) -> None:
        try:
            await self._send_together(batch)
        except MootError:
            raise
        except Exception as error:  # a row that cannot be stored: what is paid for after it would be lost too
            raise RecordError(f"rows cannot be recorded: {type(error).__name__}: {error}") from error

    async def _send_together(self, batch: list[Row]) -> None:
        """Send replies, events and embeddings in one call: the cost of a call hardly depends on its size."""
        replies = [row for row in batch if isinstance(row, dict)]
        events = [row for row in batch if isinstance(row, tuple) and len(row) == _EVENT_FIELDS]
        vectors = [row for row in batch if isinstance(row, tuple) and len(row) != _EVENT_FIELDS]
        incarnation = ""
        if replies or events or vectors:
            packed = pack(batch_of("replies", replies)) if replies else None
            rest = msgspec.msgpack.encode((events, vectors))
            incarnation = await self.writer.call_until_done("take_rows", packed, rest)
        for row in batch:
            if isinstance(row, DebateEnd):
                self._noted_in.pop((row.case_id, row.attempt), None)
            elif isinstance(row, tuple) and not (isinstance(row[2], Event) and row[2].kind in BOOKKEEPING_EVENTS):
                self._noted_in.setdefault(row[:2], incarnation)
        if replies:
            failpoint(f"{self._sender}.sent_to_writer")

    async def _send_verdicts(self, batch: list[tuple[DebateResult, asyncio.Future[bool]]]) -> None:
        """Send verdicts after all notes of their debates; waiting for those delays no other batch."""
        try:
            await self.rows.drained()
        except Exception as error:
            _refuse(batch, error)
            return
        task = asyncio.create_task(self._commit(batch))
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)

    async def _commit(self, batch: list[tuple[DebateResult, asyncio.Future[bool]]]) -> None:
        try:
            raw = msgspec.msgpack.encode([self._with_incarnation(result) for result, _ in batch])
            accepted = await self.writer.call_until_done("commit", raw)
        except Exception as error:
            _refuse(batch, error)
            return
        for (_, durable), ok in zip(batch, accepted, strict=True):
            if not durable.done():
                durable.set_result(ok)

    def _with_incarnation(self, result: DebateResult) -> DebateResult:
        """Copy of the result with the incarnation of the writer that received the debate's first notes, and without
        `usage`, which the writer counts itself."""
        incarnation = self._noted_in.pop((result.case_id, result.attempt), "")
        return msgspec.structs.replace(result, noted_in=incarnation, usage={})


def _refuse(batch: Sequence[tuple[Any, asyncio.Future[Any]]], error: Exception) -> None:
    """Fails every future of a batch that the writer could not serve."""
    for _, waiting in batch:
        if not waiting.done():
            waiting.set_exception(error)
