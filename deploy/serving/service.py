"""One kind of request: what was accepted, where it stands, and how many there may be at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from pathlib import Path
from secrets import token_hex

import structlog
from pydantic import ValidationError

from moot.actors.visit import NotHeld
from moot.deploy.running.config import RunConfig
from moot.deploy.running.open_run import OpenRun
from moot.deploy.serving.answers import KindStats, Links, State, Status, Verdict
from moot.deploy.serving.inbox import Inbox
from moot.deploy.serving.job import Job
from moot.deploy.serving.rate import EndingRate
from moot.deploy.serving.refusals import Refused, invalid
from moot.deploy.serving.requests import Asked
from moot.deploy.serving.settings import Kind
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RecordError, RunFolderBusy, RunMismatch, TaskFileError, UserError

_log = structlog.get_logger(__name__)
KEPT_ENDED = 2000
"""Requests that have ended and are answered from memory; older ones from the record."""

_AGAIN_S = 0.5
_READERS = 2


class Service:
    """Holds one open run for clients. Lives in one event loop.

    Args:
        kind: of request.
        config: of the run.
        request: the model of a request's body.
        inbox: keeps what was accepted.
        max_queued: most that wait beyond those that are open.
        max_queued_bytes: longest that the bodies of all that are open or wait may be together.

    Attributes:
        draining: whether nothing more is taken.
        reading: how many late readers may read the record's events at once.
        closed: whether the record is closed, too, or is being closed.
    """

    def __init__(
        self,
        kind: Kind,
        config: RunConfig,
        request: type[Asked],
        inbox: Inbox,
        *,
        max_queued: int,
        max_queued_bytes: int,
    ) -> None:
        self.kind = kind
        self.run = OpenRun(config)
        self._request, self._inbox = request, inbox
        self._most, self._most_bytes = config.max_open + max_queued, max_queued_bytes
        self._size = 0
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
                labelled, content = await asyncio.to_thread(self._read, body)
            except Refused as error:
                why = str(error.detail)
                _log.error("an accepted request cannot be gone on with", kind=self.kind, id=case_id, error=why)
                continue
            self._begin(labelled, content, len(body))
        return len(pending)

    async def accept(self, body: bytes) -> Job:
        """Take a request; it is kept on disk when this returns, for everybody who has asked the same.

        Cancelling this leaves it accepted.

        Raises:
            Refused: it is no case, its id has other content, there is no place for it, or the server is stopping.
        """
        self._check_open(closed=self.draining)
        labelled, content = await asyncio.to_thread(self._read, body)
        case_id = labelled.case.id
        known = self._jobs.get(case_id) or self._ended.get(case_id)
        if known is not None and known.content and known.content != content:
            raise _other_content(case_id)
        if known is not None and known.content and known.goes_on:
            if known.taking is not None and not known.done.is_set():
                await asyncio.shield(known.taking)
            return known
        self._check_open(closed=self.draining)
        if why := self.run.refusal:
            raise Refused(503, why, "stopped")
        self._check_room(len(body))
        job = self._begin(labelled, content, len(body))
        job.taking = asyncio.create_task(self._take(job, body, known))
        job.taking.add_done_callback(_seen)
        await asyncio.shield(job.taking)
        return job

    async def _take(self, job: Job, body: bytes, before: Job | None) -> None:
        """Keep a request that the engine has taken; one that is refused leaves what was known of its id `before`."""
        await asyncio.sleep(0)  # the engine takes it, or refuses it at once
        if job.mismatch is not None:
            self._undo(job, before)
            raise _other_content(job.id)
        if job.why:
            self._undo(job, before)
            raise Refused(503, job.why, "stopped")
        try:
            await self._inbox.accept(self.kind, job.id, body)
        except RecordError:
            job.unkept = True
            await self.withdraw(job)
            if job.held is None:
                self._undo(job, before)
                raise Refused(503, "the server cannot write", "unwritable", retry_after_s=30) from None

    def _undo(self, job: Job, before: Job | None) -> None:
        if self._ended.get(job.id) is job:
            del self._ended[job.id]
        if before is not None and job.id not in self._jobs:
            self._keep(before)

    def _check_room(self, size: int) -> None:
        over = 1 + len(self._jobs) - self._most
        if over <= 0 and (not self._jobs or self._size + size <= self._most_bytes):
            return
        self._count["refused"] += 1
        full = f"{self._most:,}" if over > 0 else f"requests of {self._most_bytes:,} bytes"
        wait_s = self._rate.seconds_until(max(1, over))
        raise Refused(429, f"{full} are open or queued: ask again later", "queue_full", retry_after_s=wait_s)

    def _check_open(self, *, closed: bool) -> None:
        if closed:
            raise Refused(503, "the server is stopping: ask again in a while", "stopping", retry_after_s=10)

    def _read(self, body: bytes) -> tuple[LabelledCase, str]:
        """The case of a request, and the hash of its content; long for a long body, so not for the event loop."""
        if not body.strip():
            raise Refused(422, "the body is empty: JSON is expected")
        try:
            labelled = self.run.labelled(self._request.model_validate_json(body).case())
        except ValidationError as error:
            raise invalid(error.errors(include_url=False, include_context=False, include_input=False)) from None
        except TaskFileError as error:
            raise Refused(422, f"{error.field}: {error.expected}" if error.field else error.expected) from None
        except UserError as error:
            raise Refused(422, str(error)) from None
        return labelled, labelled.case.content_hash()

    def _begin(self, labelled: LabelledCase, content: str, size: int) -> Job:
        case_id = labelled.case.id
        job = self._jobs[case_id] = Job(case_id, content, token_hex(4), size)
        self._size += size
        self._ended.pop(case_id, None)
        job.holding = asyncio.create_task(self._hold(job, labelled))
        return job

    async def _hold(self, job: Job, labelled: LabelledCase) -> None:
        started = time.perf_counter()
        try:
            job.held = await self.run.hold_labelled(labelled)
            job.engine_s = time.perf_counter() - started
        except RunMismatch as error:
            job.mismatch = error  # what the inbox has under this id is not of this request
            if job.taking is None:
                _log.error("an accepted request cannot be gone on with", kind=self.kind, id=job.id, error=str(error))
        except NotHeld as error:
            job.why = "" if job.cancelled else str(error)
        except Exception as error:
            _log.error("a debate could not be held", kind=self.kind, id=job.id, error=repr(error))
            job.why = "the server could not go on with it"
        self._end(job)

    def _end(self, job: Job) -> None:
        """What has ended is on record, and what was put aside stays in the inbox."""
        del self._jobs[job.id]
        self._size -= job.size
        job.done.set()
        if job.mismatch is None:
            self._keep(job)
            if job.held is not None or job.cancelled:
                self._count[self.status(job)] += 1
        if job.held is not None:
            self._rate.ended()
            self._inbox.forget(self.kind, job.id)
        elif job.cancelled and not job.unkept:  # what is there may be of an earlier time that it was asked
            self._inbox.cancel(self.kind, job.id)

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
        """Cancel a request; False when it has ended. Those who ask for it at once are told the same.

        Cancelling this leaves the request being cancelled.
        """
        if job.done.is_set() or self.closed:
            return False
        if job.withdrawing is None:
            job.withdrawing = asyncio.create_task(self._withdraw(job))
            job.withdrawing.add_done_callback(_seen)
        return await asyncio.shield(job.withdrawing)

    async def _withdraw(self, job: Job) -> bool:
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
        await asyncio.gather(*(job.taking for job in left if job.taking is not None), return_exceptions=True)
        if left:
            await asyncio.wait([job.holding for job in left if job.holding is not None])
        return sum(job.held is None and not job.cancelled for job in left)


def _seen(task: asyncio.Task[None] | asyncio.Task[bool]) -> None:
    """Whoever has asked for it may be gone: an error is told to those who wait for it."""
    if not task.cancelled():
        task.exception()


def _other_content(case_id: str) -> Refused:
    return Refused(409, f"{case_id} is known with other content: choose another id", "other_content")
