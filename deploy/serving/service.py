"""One kind of request: what was accepted, where it stands, and how many there may be at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from secrets import token_hex

import structlog

from moot.actors.seating import NotHeld
from moot.deploy.running.config import RunConfig
from moot.deploy.running.open_run import OpenRun
from moot.deploy.running.prepare import Bindings
from moot.deploy.serving.answers import KindStats, Links, State, Status, Verdict
from moot.deploy.serving.bodies import case_of
from moot.deploy.serving.door import Door
from moot.deploy.serving.inbox import Inbox
from moot.deploy.serving.jobs import Job, Jobs
from moot.deploy.serving.opening import Opening
from moot.deploy.serving.recalled import recalled
from moot.deploy.serving.refusals import Refused
from moot.deploy.serving.requests import Asked
from moot.deploy.serving.settings import Kind
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RecordError, RunMismatch

_log = structlog.get_logger(__name__)


class Service:
    """Holds one open run for clients. Lives in one event loop.

    Args:
        kind: of request.
        config: of the run.
        request: the model of a request's body.
        inbox: keeps what was accepted.
        max_queued: most that wait beyond those that are open.
        max_queued_bytes: longest that the bodies of all that are open or wait may be together.
        tried: see `OpenRun`.

    Attributes:
        door: whether requests are taken now.
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
        tried: Bindings | None = None,
    ) -> None:
        self.kind = kind
        self.run = OpenRun(config, tried=tried)
        self._request, self._inbox = request, inbox
        self._jobs = Jobs()
        self._count: Counter[str] = Counter()
        self._opening = Opening(kind, self.run, self.go_on)
        most = config.max_open + max_queued
        self.door = Door(self.run, self._opening, self._jobs, most=most, most_bytes=max_queued_bytes)

    async def open(self, *, busy_s: float = 0.0) -> None:
        """Start the engine.

        Args:
            busy_s: seconds to wait for another owner of the record to let it go.

        Raises:
            UserError: see `OpenRun.open`.
        """
        await self._opening.first(busy_s)

    async def go_on(self) -> int:
        """Take up again what an earlier server had accepted and not ended; gives how many."""
        pending = await self._inbox.pending(self.kind)
        for case_id, body in pending:
            if case_id in self._jobs:
                continue
            try:
                labelled, content = await asyncio.to_thread(case_of, body, self._request, self.run)
            except Refused as error:
                self._set_aside(case_id, str(error.detail))
                continue
            self._begin(labelled, content, len(body))
        return len(pending)

    def _set_aside(self, case_id: str, why: str) -> None:
        """Say of an accepted request why it cannot be gone on with; the inbox keeps it for whoever mends that."""
        _log.error("an accepted request cannot be gone on with", kind=self.kind, id=case_id, error=why)
        self._jobs.keep(Job.aside(case_id, why))

    async def accept(self, body: bytes) -> Job:
        """Take a request; it is kept on disk when this returns, for everybody who has asked the same.

        Cancelling this leaves it accepted.

        Raises:
            Refused: it is no case, its id has other content, there is no place for it, or the server is stopping.
        """
        self.door.check_draining()
        labelled, content = await asyncio.to_thread(case_of, body, self._request, self.run)
        case_id = labelled.case.id
        known = self._jobs.known(case_id)
        if known is not None and known.content and known.content != content:
            raise _other_content(case_id)
        if known is not None and known.content and known.goes_on:
            if known.taking is not None and not known.done.is_set():
                await asyncio.shield(known.taking)
            return known
        self.door.check_takes()
        self.door.check_room(len(body))
        job = self._begin(labelled, content, len(body))
        job.taking = asyncio.create_task(self._take(job, body, known))
        job.taking.add_done_callback(_seen)
        await asyncio.shield(job.taking)
        return job

    async def _take(self, job: Job, body: bytes, before: Job | None) -> None:
        """Keep a request that the engine has taken; one that is refused leaves what was known of its id `before`."""
        await asyncio.sleep(0)  # the engine takes it, or refuses it at once
        if job.mismatch is not None:
            self._jobs.undo(job, before)
            raise _other_content(job.id)
        if job.why:
            self._jobs.undo(job, before)
            self.door.check_takes()
            raise Refused(503, job.why, "stopped")
        try:
            await self._inbox.accept(self.kind, job.id, body)
        except RecordError:
            job.unkept = True
            await self.withdraw(job)
            if job.held is None:
                self._jobs.undo(job, before)
                raise Refused(503, "the server cannot write", "unwritable", retry_after_s=30) from None

    def _begin(self, labelled: LabelledCase, content: str, size: int) -> Job:
        job = Job(labelled.case.id, content, token_hex(4), size)
        self._jobs.begin(job)
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
            self._opening.look()
        except Exception as error:
            _log.error("a debate could not be held", kind=self.kind, id=job.id, error=repr(error))
            job.why = "the server could not go on with it"
        self._end(job)

    def _end(self, job: Job) -> None:
        """What has ended is on record, and what was put aside stays in the inbox."""
        self._jobs.end(job)
        job.done.set()
        if job.mismatch is None:
            self._jobs.keep(job)
            if job.held is not None or job.cancelled:
                self._count[self.status(job)] += 1
        elif job.taking is None:  # of one that is just being taken, what the inbox has under its id is not its own
            self._set_aside(job.id, str(job.mismatch))
        if job.held is not None:
            self.door.rate.ended()
            self._inbox.forget(self.kind, job.id)
        elif job.cancelled and not job.unkept:  # what is there may be of an earlier time that it was asked
            self._inbox.cancel(self.kind, job.id)

    def status(self, job: Job) -> Status:
        """Where a request stands."""
        if job.held is not None:
            return "failed" if job.held.failure else "done"
        if job.done.is_set():
            return "cancelled" if job.cancelled else "aside"
        return "open" if self.door.closed or self.run.begun(job.id) else "queued"

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
        """A request by its id: from memory, the record or the inbox; None when none of them knows it."""
        known = self._jobs.known(case_id)
        if known is not None:
            return known
        self.door.check_closed()
        try:
            job = await recalled(self.kind, case_id, self.run, self._inbox, self._request)
        except NotHeld:
            self.door.check_closed()
            raise
        if (begun := self._jobs.known(case_id)) is not None:
            return begun
        if job is not None:
            self._jobs.keep(job)
        return job

    async def withdraw(self, job: Job) -> bool:
        """Cancel a request, one that was put aside, too; False when it has ended. Those who ask for it at once are told
        the same.

        Cancelling this leaves the request being cancelled.
        """
        if self.door.closed:
            return False
        if job.done.is_set():
            return self._withdraw_aside(job)
        if job.withdrawing is None:
            job.withdrawing = asyncio.create_task(self._withdraw(job))
            job.withdrawing.add_done_callback(_seen)
        return await asyncio.shield(job.withdrawing)

    def _withdraw_aside(self, job: Job) -> bool:
        if self.status(job) != "aside" or self._jobs.known(job.id) is not job:
            return False
        job.cancelled, job.why = True, ""
        self._jobs.keep(job)
        self._count["cancelled"] += 1
        self._inbox.cancel(self.kind, job.id)
        return True

    async def _withdraw(self, job: Job) -> bool:
        job.cancelled = True
        if not await self.run.withdraw(job.id):
            job.cancelled = False  # its verdict is on its way
        await job.done.wait()
        return job.cancelled

    def stats(self) -> KindStats:
        """Counts of now and since the start."""
        now = Counter(self.status(job) for job in self._jobs)
        since = {name: self._count[name] for name in ("done", "failed", "cancelled")}
        aside, refused = len(self._jobs.aside), self.door.refused
        return KindStats(open=now["open"], queued=now["queued"], aside=aside, refused=refused, **since)

    async def drain(self, seconds: float) -> None:
        """Take nothing more, and let debates end for so long; they can be asked for meanwhile."""
        self.door.draining = True
        await self._opening.stop()
        holding = [job.holding for job in self._jobs if job.holding is not None]
        if holding:
            await asyncio.wait(holding, timeout=seconds)

    async def close(self) -> int:
        """Put aside what has not ended and close the record; gives how many were put aside. Closing twice is
        harmless."""
        self.door.draining = self.door.shut = True
        await self._opening.stop()
        left = [job for job in self._jobs if job.holding is not None]
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
