"""Record writer: buffers rows, flushes them in order, and commits a verdict once all it depends on is durable.

Each writer owns the cases that hash to it. It is a plain class: the inline engine calls it directly, a metrics actor
hosts it on a cluster.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa

from moot.actors.models.off_loop import to_thread_shielded
from moot.actors.record.counters import RecordCounters
from moot.actors.record.debate_result import DebateEnd, DebateResult, writer_of
from moot.actors.record.deduplicator import CommitCheck, GroundTruth, RowDeduplicator
from moot.actors.record.folder import RunFolder
from moot.actors.record.journal import Journal
from moot.actors.record.open_debate import OpenDebate
from moot.actors.record.progress import Progress, StreamedEvent, replies_as_events, verdict_event
from moot.actors.record.recovery import (
    History,
    histories,
    recorded_results,
    recorded_rounds,
    recover,
)
from moot.actors.record.reply_leases import ReplyLeases
from moot.actors.record.rows import DECISION, SHARED, USAGE, case_columns, sorted_json, tokens_of, verdict_columns
from moot.actors.record.schema import ABANDONED, CANCELLED, DUPLICATE, RESUMED, CaseKey
from moot.actors.record.signal_aggregator import SignalAggregator
from moot.actors.record.signal_file import SignalFile
from moot.actors.record.signal_recovery import recover_signals
from moot.actors.record.writer_cache import WriterCache
from moot.actors.telemetry.failpoints import failpoint
from moot.actors.telemetry.meter import SILENT, Meter
from moot.protocols.case import LabelledCase, is_shared_id
from moot.protocols.messages import Event
from moot.protocols.round_values import RoundValues
from moot.protocols.tasks.scoring import is_correct

_REPLY_KEYS = [
    "case_id",
    "attempt",
    "path",
    "reply_id",
    "supersedes",
    "reused_from",
    "model",
    *USAGE,
]

_DROPPED_COLUMNS = [
    "case_id",
    "attempt",
    "path",
    "reply_id",
    "model",
    "at",
    "unconfirmed_attempts",
    "unconfirmed_tokens_max",
]


class RecordWriter:
    """Writer of the rows of the cases that hash to it.

    Args:
        folder: the run's folder; owned by the process that creates the writer.
        epoch: the owner's number.
        writer: the writer's number.
        meter: counts the appended rows.
        streams_replies: whether the streamed events include replies.

    Attributes:
        incarnation: id of this writer's process, different from that of any earlier writer of the record.
    """

    def __init__(
        self,
        folder: Path | RunFolder,
        epoch: int,
        writer: int = 0,
        writers: int = 1,
        meter: Meter = SILENT,
        *,
        streams_replies: bool = False,
    ) -> None:
        self._folder = folder if isinstance(folder, RunFolder) else RunFolder(folder)
        self._writer, self._writers = writer, writers
        self.incarnation = uuid4().hex
        self._journal = Journal(self._folder, epoch, writer)
        self._memory = WriterCache()
        self._finished: set[CaseKey] = set()
        self._arrivals = RowDeduplicator(self._memory, self._finished)
        self._cases_written: set[str] = set()
        self._reading = asyncio.Lock()
        self._admission = CommitCheck(self._arrivals, self._write_verdict, self.incarnation)
        self._not_durable: set[str] = set()
        self.leases = ReplyLeases(self._has_shared_reply)
        self.progress = Progress()
        self.signals = SignalAggregator()
        self._signal_file = SignalFile(self._folder.path, epoch, writer)
        self._tally = RecordCounters(meter)
        self._tells_replies = streams_replies

    async def load(self) -> None:
        """Read what earlier owners and earlier incarnations of this writer recorded; called first."""
        await self._journal.begin()
        state = await asyncio.to_thread(recover, self._folder, self._mine, self._memory)
        self._cases_written = state.cases
        self._finished |= state.finished
        self.progress = state.progress
        signals = await asyncio.to_thread(recover_signals, self._folder, self._mine)
        self.signals = SignalAggregator(signals, self._earlier_rounds)
        self._signal_file.begin(self.signals)

    def _mine(self, case_id: str) -> bool:
        return writer_of(case_id, self._writers) == self._writer

    async def register(self, cases: Sequence[LabelledCase], number: int = 0) -> None:
        """Register cases with their ground truth, before their first row; cancelled debates of them are open again.

        Args:
            number: increases with each call of `register`, so that a late `end` is recognised.

        Raises:
            RecordError: the record cannot be written.
        """
        for case_id, attempt in self._arrivals.register(cases, number):
            self._write_event(case_id, attempt, Event(RESUMED, ""), time.time())
        for labelled in cases:
            if labelled.case.id not in self._cases_written:
                self._cases_written.add(labelled.case.id)
                self._journal.append("cases", **case_columns(labelled))

    def end(self, numbered: Iterable[tuple[int, DebateEnd]]) -> None:
        """End debates, whichever way: those without a verdict are evicted, and a cancelled one gets an event of that.

        Args:
            numbered: ends, each with a number as in `register`; a case registered later stays open.

        Raises:
            RecordError: the record cannot be written.
        """
        for number, end in numbered:
            is_over = self._arrivals.release(end.case_id, number)
            if is_over and end.cancelled and self._arrivals.cancel((end.case_id, end.attempt)):
                event = Event(CANCELLED, "", {"why": end.cancelled})
                self._write_event(end.case_id, end.attempt, event, time.time())
        self._arrivals.evict()

    async def durable(self) -> None:
        """Wait until everything added so far is durable.

        Raises:
            RecordError: it cannot be written.
        """
        await self._journal.durable()

    def add_replies(self, batch: pa.RecordBatch) -> None:
        """Add a batch of the stream `replies`; duplicates by key are dropped."""
        keep = [self._accept(*row) for row in zip(*(batch[name].to_pylist() for name in _REPLY_KEYS), strict=True)]
        if not all(keep):
            self._note_unconfirmed(batch.filter(pa.array([not kept for kept in keep])))
            batch = batch.filter(pa.array(keep))
        if batch.num_rows:
            self._journal.append_replies(batch)
            self.signals.add_replies(batch, self._arrivals.debate)
            self._tally.add_replies(batch)
            if self._tells_replies:
                self.progress.add_events(replies_as_events(batch))
        self._arrivals.evict()
        failpoint("writer.buffered")

    def _note_unconfirmed(self, dropped: pa.RecordBatch) -> None:
        """Record the possible cost of attempts behind dropped rows; a row that was sent twice has cost nothing more."""
        for row in dropped.select(_DROPPED_COLUMNS).to_pylist():
            key = (row["case_id"], row["attempt"])
            debate = self._arrivals.find(key)
            known = None if debate is None else debate.reply_ids.get(row["path"])
            if row["unconfirmed_attempts"] and known != row["reply_id"]:
                data = {
                    "why": DUPLICATE,
                    "model": row["model"],
                    "attempts": row["unconfirmed_attempts"],
                    "tokens_at_most": row["unconfirmed_tokens_max"],
                }
                event, at = Event(ABANDONED, row["path"], data), row["at"] or time.time()
                if self._arrivals.accept_event(key, event, at):
                    self._write_event(*key, event, at)

    def _accept(
        self,
        case_id: str,
        attempt: int,
        path: str,
        reply_id: str,
        supersedes: str | None,
        reused_from: str | None,
        model: str | None,
        outcome: str,
        unconfirmed: int | None,
        prompt: int | None,
        completion: int | None,
    ) -> bool:
        debate = self._arrivals.accept_reply((case_id, attempt), path, reply_id, supersedes)
        if debate is None:
            return False
        tokens = tokens_of(outcome, unconfirmed, prompt, completion)
        debate.use(reply_id, supersedes, model, *tokens)
        if not reply_id.startswith(DECISION):
            self.progress.count_reply(*tokens, reused=reused_from is not None)
        return True

    def add_events(self, events: Sequence[tuple[str, int, Event, float]]) -> None:
        """Add (case id, attempt, event, unix time); duplicates are dropped."""
        for case_id, attempt, event, at in events:
            if not self._arrivals.accept_event((case_id, attempt), event, at):
                continue
            if (debate := self._arrivals.find((case_id, attempt))) is not None:
                self.signals.add_event(debate, event, case_id)
            self._tally.add_event(event)
            self._write_event(case_id, attempt, event, at)
        self._arrivals.evict()

    def _write_event(self, case_id: str, attempt: int, event: Event, at: float) -> None:
        self._journal.append(
            "events",
            case_id=case_id,
            attempt=attempt,
            kind=event.kind,
            path=event.path,
            data=sorted_json(event.data),
            at=at,
        )
        self.progress.add_events([StreamedEvent(case_id, attempt, event.kind, event.path, event.data, at)])

    async def history(self, keys: Sequence[CaseKey]) -> list[History]:
        """Recorded part of each debate, up to the latest added row: replies (re-asked ones merged) and embeddings. It
        is read while rows are written, one read at a time.

        Raises:
            RecordError: what was added cannot be written, or the record cannot be read.
        """
        known = [key for key in keys if not self._is_shared_and_new(key)]
        if not known:  # so that not every shared ask of a run reads the whole journal
            return [History() for _ in keys]
        await self._journal.readable()
        async with self._reading:
            read = await to_thread_shielded(lambda: histories(self._folder, known, self._memory))
        found = dict(zip(known, read, strict=True))
        return [found.get(key, History()) for key in keys]

    async def _earlier_rounds(self, keys: Sequence[CaseKey]) -> list[RoundValues]:
        """Recorded values by round of the attempts before these; older ones were taken out before."""
        earlier = [(case_id, attempt - 1) for case_id, attempt in keys]
        await self._journal.readable()
        async with self._reading:
            return await to_thread_shielded(lambda: recorded_rounds(self._folder, earlier, self._memory))

    def so_far(self, keys: Sequence[CaseKey]) -> tuple[int, int]:
        """See `RowDeduplicator.so_far`."""
        return self._arrivals.so_far(keys)

    async def results(self, case_ids: Sequence[str]) -> dict[str, DebateResult]:
        """See `recorded_results`; the last ones are cached. Others are read while rows are written."""
        if not self._not_durable.isdisjoint(case_ids):
            await self.flush()
            self._not_durable.difference_update(case_ids)
        found = self._memory.results(case_ids)
        if missing := [case_id for case_id in case_ids if case_id not in found]:
            async with self._reading:
                found |= await to_thread_shielded(lambda: recorded_results(self._folder, missing, self._memory))
        return found

    def _is_shared_and_new(self, key: CaseKey) -> bool:
        """Whether this is the pseudo case of a shared reply, which has no embeddings, without a recorded reply."""
        return is_shared_id(key[0]) and not self._has_shared_reply(key[0])

    def _has_shared_reply(self, case_id: str) -> bool:
        debate = self._arrivals.find((case_id, 0))
        return debate is not None and SHARED in debate.reply_ids

    async def acquire_lease(self, key: str, lease_s: float, lessee: str = "") -> tuple[bool, History]:
        """See `ReplyLeases.acquire`; also returns the recorded part of the shared reply."""
        mine = await self.leases.acquire(key, lease_s, lessee)
        try:
            return mine, (await self.history([(key, 0)]))[0]
        except BaseException:
            if mine:
                self.leases.release(key, lessee)
            raise

    async def has_shared(self, case_id: str) -> bool:
        """Whether the shared reply of a pseudo case is durable; waits for the next flush, not for the reply."""
        if not self._has_shared_reply(case_id):
            return False
        await self._journal.durable()
        return True

    def add_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Store a debate's embeddings by text hash, as float32 bytes."""
        for text_hash, raw in vectors:
            self._journal.append(
                "embeddings",
                case_id=case_id,
                attempt=attempt,
                encoder=encoder,
                text_hash=text_hash,
                vector=np.frombuffer(raw, np.float32),
            )

    async def commit(self, results: Sequence[DebateResult]) -> list[bool]:
        """Record verdicts; returns when they are durable.

        False for a debate whose replies are missing in the journal or differ, or whose notes an earlier incarnation of
        this writer may have lost: its moderator replays it.
        """
        admitted = await self._admission.check(results)
        self._arrivals.evict()
        if any(admitted):
            ended = self._tally.ended
            await self._journal.durable()
            self._tally.settle(ended)
            self._not_durable.difference_update(result.case_id for result in results)
        return admitted

    def _write_verdict(self, result: DebateResult, debate: OpenDebate, truth: GroundTruth) -> None:
        gold, reference, is_reply, _ = truth
        failed = bool(result.failure)
        unanswered = result.answer is None and is_reply
        correct = None if failed or unanswered else is_correct(result.answer, gold, reference)
        columns = verdict_columns(result, gold, correct, time.time())
        self._not_durable.add(result.case_id)
        self._journal.append("verdicts", **columns)
        self._memory.put_result(msgspec.structs.replace(result, replies={}, noted_in="", usage=debate.usage()))
        self._tally.end(result)
        self.progress.count_verdict(result.how, failed, correct, result.rounds)
        self.signals.end((result.case_id, result.attempt), debate, failed=failed, correct=correct)
        self.progress.add_events([verdict_event(columns)])

    async def flush(self) -> None:
        """Make everything added so far durable."""
        await self._journal.flush()

    async def close(self, *, compact: bool = True) -> None:
        """Flush, and compact the journal of this writer to Parquet."""
        await self._signal_file.close()
        await self._journal.close(compact=compact)
