"""One kind of request: what was accepted, where it stands, and how many there may be at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from pathlib import Path
from secrets import token_hex

import structlog
from pydantic import ValidationError

from moot.actors.reception import NotHeld
from moot.deploy.running.config import RunConfig
from moot.deploy.running.held import Held
from moot.deploy.running.open_run import OpenRun
from moot.deploy.serving.answers import KindStats, Links, State, Status, Verdict
from moot.deploy.serving.inbox import Inbox
from moot.deploy.serving.rate import EndingRate
from moot.deploy.serving.refusals import Refused
from moot.deploy.serving.requests import Asked
from moot.deploy.serving.settings import Kind
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RecordError, RunFolderBusy, RunMismatch, TaskFileError, UserError

_log = structlog.get_logger(__name__)
KEPT_ENDED = 2000
"""Requests that have ended and are answered from memory; older ones from the record."""

_AGAIN_S = 0.5
_READERS = 2


class Job:
    """A request that was accepted.

    Attributes:
        id: of its case.
        content: the hash of its case; empty for one that is known from the record alone.
        trail: tells its events from those of another time that it was asked.
        held: its end, once it has one.
        why: what put it aside.
        engine_s: seconds that the engine had it, until its verdict was durable; None before, and from the record.
        done: set when there is nothing more to wait for.
    """

    def __init__(self, case_id: str, content: str = "", trail: str = "record") -> None:
        self.id, self.content, self.trail = case_id, content, trail
        self.held: Held | None = None
        self.cancelled = False
        self.why = ""
        self.mismatch: RunMismatch | None = None
        self.engine_s: float | None = None
        self.done = asyncio.Event()
        self.holding: asyncio.Task[None] | None = None

    @property
    def goes_on(self) -> bool:
        """Whether asking again finds this one: it is being debated, or has a verdict."""
        return not self.done.is_set() or (self.held is not None and not self.held.failure)


class Service:
    """Holds one open run for clients. Lives in one event loop.

    Args:
        kind: of request.
        config: of the run.
        request: the model of a request's body.
        inbox: keeps what was accepted.
        max_queued: most that wait beyond those that are open.

    Attributes:
        draining: whether nothing more is taken.
        reading: how many late readers may read the record's events at once.
        closed: whether the record is closed, too, or is being closed.
    """

    def __init__(self, kind: Kind, config: RunConfig, request: type[Asked], inbox: Inbox, *, max_queued: int) -> None:
        self.kind = kind
        self.run = OpenRun(config)
        self._request, self._inbox = request, inbox
        self._most = config.max_open + max_queued
        self._jobs: dict[str, Job] = {}
        self._ended: OrderedDict[str, Job] = OrderedDict()
        self._rate = EndingRate(time.monotonic)
        self._count: Counter[str] = Counter()
        self.reading = asyncio.Semaphore(_READERS)
        self.closed = False
        self.draining = False

    @property
    def folder(self) -> Path:
        """Of the record."""
        return self.run.prepared.folder

    async def open(self, *, busy_s: float = 0.0) -> None:
        """Start the engine.

        Args:
            busy_s: seconds to wait for another owner of the record to let it go.

        Raises:
            UserError: see `OpenRun.open`.
        """
        deadline = time.monotonic() + busy_s
        while True:
            try:
                await self.run.open()
                return
            except RunFolderBusy:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(_AGAIN_S)

    async def go_on(self) -> int:
        """Take up again what an earlier server had accepted and not ended; gives how many."""
        pending = await self._inbox.pending(self.kind)
        for case_id, body in pending:
            try:
                asked = self._request.model_validate_json(body)
                labelled = await asyncio.to_thread(self.run.labelled, asked.case())
            except (ValidationError, UserError) as error:
                _log.error("an accepted request cannot be gone on with", kind=self.kind, id=case_id, error=str(error))
                continue
            self._begin(labelled)
        return len(pending)

    async def accept(self, asked: Asked) -> Job:
        """Take a request; it is kept on disk when this returns.

        Raises:
            Refused: it is no case, its id has other content, there is no place for it, or the server is stopping.
        """
        self._check_open(closed=self.draining)
        labelled = await asyncio.to_thread(self._labelled, asked)
        case_id, content = labelled.case.id, labelled.case.content_hash()
        known = self._jobs.get(case_id) or self._ended.get(case_id)
        if known is not None and known.content and known.content != content:
            raise _other_content(case_id)
        if known is not None and known.content and known.goes_on:
            return known
        if len(self._jobs) >= self._most:
            self._count["refused"] += 1
            wait_s = self._rate.seconds_until(1 + len(self._jobs) - self._most)
            full = f"{self._most:,} are open or queued: ask again later"
            raise Refused(429, full, "queue_full", retry_after_s=wait_s)
        job = self._begin(labelled)
        await asyncio.sleep(0)  # the engine takes it, or refuses it at once
        if job.mismatch is not None:
            raise _other_content(case_id)
        if job.why:
            raise Refused(503, job.why, "stopped")
        try:
            await self._inbox.accept(self.kind, case_id, asked.model_dump_json(round_trip=True).encode())
        except RecordError:
            await self.withdraw(job)
            raise Refused(503, "the server cannot write", "unwritable", retry_after_s=30) from None
        return job

    def _check_open(self, *, closed: bool) -> None:
        if closed:
            raise Refused(503, "the server is stopping: ask again in a while", "stopping", retry_after_s=10)

    def _labelled(self, asked: Asked) -> LabelledCase:
        try:
            return self.run.labelled(asked.case())
        except TaskFileError as error:
            raise Refused(422, f"{error.field}: {error.expected}" if error.field else error.expected) from None
        except UserError as error:
            raise Refused(422, str(error)) from None

    def _begin(self, labelled: LabelledCase) -> Job:
        case_id = labelled.case.id
        job = self._jobs[case_id] = Job(case_id, labelled.case.content_hash(), token_hex(4))
        self._ended.pop(case_id, None)
        job.holding = asyncio.create_task(self._hold(job, labelled))
        return job

    async def _hold(self, job: Job, labelled: LabelledCase) -> None:
        started = time.perf_counter()
        try:
            job.held = await self.run.hold_labelled(labelled)
            job.engine_s = time.perf_counter() - started
        except RunMismatch as error:
            job.mismatch = error
        except NotHeld as error:
            job.why = "" if job.cancelled else str(error)
        except Exception as error:
            _log.error("a debate could not be held", kind=self.kind, id=job.id, error=repr(error))
            job.why = "the server could not go on with it"
        self._end(job)

    def _end(self, job: Job) -> None:
        """What has ended is on record, and what was put aside stays in the inbox."""
        del self._jobs[job.id]
        if job.mismatch is None:
            self._keep(job)
            if job.held is not None or job.cancelled:
                self._count[self.status(job)] += 1
        if job.held is not None:
            self._rate.ended()
        if job.held is not None or job.mismatch is not None:
            self._inbox.forget(self.kind, job.id)
        elif job.cancelled:
            self._inbox.cancel(self.kind, job.id)
        job.done.set()

    def _keep(self, job: Job) -> None:
        self._ended[job.id] = job
        while len(self._ended) > KEPT_ENDED:
            self._ended.popitem(last=False)

    def status(self, job: Job) -> Status:
        """Where a request stands."""
        if job.held is not None:
            return "failed" if job.held.failure else "done"
        if job.done.is_set():
            return "cancelled" if job.cancelled else "aside"
        return "open" if self.closed or self.run.begun(job.id) else "queued"

    def state(self, job: Job) -> State:
        """Where a request stands, in full."""
        place = f"/v1/{self.kind}/{job.id}"
        return State(
            id=job.id,
            status=self.status(job),
            links=Links(self=place, events=f"{place}/events"),
            verdict=None if job.held is None else Verdict.of(job.held),
            why=job.why,
        )

    async def find(self, case_id: str) -> Job | None:
        """A request by its id: from memory, or from the record; None when neither knows it."""
        known = self._jobs.get(case_id) or self._ended.get(case_id)
        if known is not None:
            return known
        self._check_open(closed=self.closed)
        job = Job(case_id)
        job.held = await self.run.recall(case_id)
        job.cancelled = job.held is None and await self._inbox.was_cancelled(self.kind, case_id)
        if job.held is None and not job.cancelled:
            return None
        job.done.set()
        if case_id not in self._jobs:
            self._keep(job)
        return job

    async def withdraw(self, job: Job) -> bool:
        """Cancel a request; False when it has ended."""
        if job.done.is_set() or self.closed:
            return False
        job.cancelled = True
        if not await self.run.withdraw(job.id):
            job.cancelled = False  # its verdict is on its way
        await job.done.wait()
        return job.cancelled

    def stats(self) -> KindStats:
        """Counts of now and since the start."""
        now = Counter(self.status(job) for job in self._jobs.values())
        since = {name: self._count[name] for name in ("done", "failed", "cancelled", "refused")}
        return KindStats(open=now["open"], queued=now["queued"], **since)

    async def drain(self, seconds: float) -> None:
        """Take nothing more, and let debates end for so long; they can be asked for meanwhile."""
        self.draining = True
        holding = [job.holding for job in self._jobs.values() if job.holding is not None]
        if holding:
            await asyncio.wait(holding, timeout=seconds)

    async def close(self) -> int:
        """Put aside what has not ended and close the record; gives how many were put aside. Closing twice is
        harmless."""
        self.draining = self.closed = True
        left = [job for job in self._jobs.values() if job.holding is not None]
        await self.run.close()
        if left:
            await asyncio.wait([job.holding for job in left if job.holding is not None])
        return sum(job.held is None and not job.cancelled for job in left)


def _other_content(case_id: str) -> Refused:
    return Refused(409, f"{case_id} is known with other content: choose another id", "other_content")
