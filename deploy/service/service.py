"""Service of one kind of request: accepts, queues, tracks and cancels requests."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from secrets import token_hex

import structlog

from moot.actors.dispatch.case_router import DebateCancelled
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.prepare import Bindings
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.service.errors import RequestError
from moot.deploy.service.inbox import Inbox
from moot.deploy.service.jobs import CompletionRate, Job, Jobs
from moot.deploy.service.lifecycle import RunLifecycle
from moot.deploy.service.request_models import REQUESTS, case_of
from moot.deploy.service.response_models import KindStats, Links, RequestState, Status, VerdictBody
from moot.deploy.service.settings import Kind, ServeConfig
from moot.protocols.case import LabelledCase
from moot.protocols.errors import RecordError, RunMismatch

_log = structlog.get_logger(__name__)
_RETRIES = "the server retries automatically"


class Service:
    """Service of one kind of request, from one open run. Lives in one event loop.

    Args:
        kind: of request.
        config: the server's configuration.
        run: configuration of the run.
        inbox: persists accepted requests.
        tried: see `OpenRun`.

    Attributes:
        run: the open run.
    """

    def __init__(
        self, kind: Kind, config: ServeConfig, run: RunConfig, inbox: Inbox, tried: Bindings | None = None
    ) -> None:
        self.kind = kind
        self.run = OpenRun(run, tried=tried)
        self._inbox = inbox
        self._jobs = Jobs()
        self._count: Counter[str] = Counter()
        self._rate = CompletionRate()
        self._opening = RunLifecycle(kind, self.run, self.resume_pending)
        self._most, self._most_bytes = config.max_open + config.max_queued, config.max_queued_bytes
        self._draining = self._shut = False

    async def open(self, *, busy_s: float = 0.0) -> None:
        """Start the engine.

        Args:
            busy_s: seconds to wait for another owner of the record to release it.

        Raises:
            UserError: see `OpenRun.open`.
        """
        await self._opening.open(busy_s)

    async def resume_pending(self) -> None:
        """Resume the requests that an earlier server accepted and did not finish."""
        for case_id, body in await self._inbox.pending(self.kind):
            if case_id not in self._jobs.open:
                try:
                    self._begin(*await self._case_of(body), len(body))
                except RequestError as error:
                    self._mark_interrupted(case_id, str(error.detail))

    async def _case_of(self, body: bytes) -> tuple[LabelledCase, str]:
        return await asyncio.to_thread(case_of, body, REQUESTS[self.kind], self.run)

    def _mark_interrupted(self, case_id: str, why: str) -> None:
        """Mark an accepted request that cannot be resumed, with the reason; the inbox keeps it."""
        _log.error("an accepted request cannot be resumed", kind=self.kind, id=case_id, error=why)
        self._jobs.keep(Job.completed(case_id, why=why))

    async def accept(self, body: bytes) -> Job:
        """Accept a request; it is durable when this returns. Equal requests share one job.

        Cancelling this call leaves the request accepted.

        Raises:
            RequestError: the body is no case, its id has other content, the queue is full, or the server is stopping.
        """
        if self._draining:
            raise _server_stopping()
        labelled, content = await self._case_of(body)
        known = self._jobs.get(labelled.case.id)
        if known is not None and known.content:
            if known.content != content:
                raise _content_conflict(known)
            if known.is_current:
                if known.persist_task is not None and not known.done.is_set():
                    await asyncio.shield(known.persist_task)
                return known
        self._check_accepting()
        self._check_room(len(body))
        job = self._begin(labelled, content, len(body))
        job.persist_task = asyncio.create_task(self._persist(job, body, known))
        job.persist_task.add_done_callback(_consume_exception)
        await asyncio.shield(job.persist_task)
        return job

    async def _persist(self, job: Job, body: bytes, before: Job | None) -> None:
        """Persist a request that the engine accepted; a refused one restores the job `before` with its id."""
        await asyncio.sleep(0)  # the engine accepts or refuses it at once
        if job.mismatch is not None:
            self._jobs.undo(job, before)
            raise _content_conflict(job)
        if job.reason:
            self._jobs.undo(job, before)
            self._check_accepting()
            raise RequestError(503, job.reason, "stopped")
        try:
            await self._inbox.accept(self.kind, job.id, body)
        except RecordError:
            job.not_persisted = True
            await self.cancel(job)
            if job.result is None:
                self._jobs.undo(job, before)
                raise RequestError(503, "the server cannot write", "unwritable", retry_after_s=30) from None

    def _begin(self, labelled: LabelledCase, content: str, size: int) -> Job:
        job = Job(labelled.case.id, content, token_hex(4), size)
        self._jobs.begin(job)
        job.debate_task = asyncio.create_task(self._run(job, labelled))
        return job

    async def _run(self, job: Job, labelled: LabelledCase) -> None:
        started = time.perf_counter()
        try:
            job.result = await self.run.run_labelled_case(labelled)
            job.engine_s = time.perf_counter() - started
        except RunMismatch as error:
            job.mismatch = error
        except DebateCancelled as error:
            job.reason = "" if job.cancelled else str(error)
            self._opening.reopen_if_stopped()
        except Exception as error:
            _log.error("a debate failed to run", kind=self.kind, id=job.id, error=repr(error))
            job.reason = "the server could not resume it"
        self._end(job)

    def _end(self, job: Job) -> None:
        """Finish a job: a verdict is in the record, an interrupted request stays in the inbox."""
        self._jobs.end(job)
        if job.mismatch is None:
            self._jobs.keep(job)
            if job.result is not None or job.cancelled:
                self._count[self.status(job)] += 1
        elif (
            job.persist_task is None
        ):  # while a request is being accepted, the inbox's row under its id may be an older one
            self._mark_interrupted(job.id, str(job.mismatch))
        if job.result is not None:
            self._rate.record()
            self._inbox.acknowledge(self.kind, job.id)
        elif job.cancelled and not job.not_persisted:  # the row may be from an earlier request with this id
            self._inbox.cancel(self.kind, job.id)

    def status(self, job: Job) -> Status:
        """Status of a request."""
        if job.result is not None:
            return "failed" if job.result.failure else "done"
        if job.done.is_set():
            return "cancelled" if job.cancelled else "aside"
        return "open" if self.closed or self.run.has_started(job.id) else "queued"

    def state(self, job: Job) -> RequestState:
        """Full state of a request."""
        place = f"/v1/{self.kind}/{job.id}"
        verdict = None if job.result is None else VerdictBody.model_validate(job.result)
        links = Links(self=place, events=f"{place}/events")
        return RequestState(id=job.id, status=self.status(job), links=links, verdict=verdict, why=job.reason)

    async def find(self, case_id: str) -> Job:
        """Request by its id: from memory, the record or the inbox.

        Raises:
            RequestError: it is unknown to all of them, or lost, or they are unavailable.
        """
        known = self._jobs.get(case_id)
        if known is not None:
            return known
        self._check_closed()
        try:
            job = await self._lookup(case_id)
        except DebateCancelled:  # the run was closed meanwhile
            self._check_closed()
            raise
        if (begun := self._jobs.get(case_id)) is not None:
            return begun
        if job is None:
            raise self._unknown()
        self._jobs.keep(job)
        return job

    def _unknown(self) -> RequestError:
        """Error for an id that nothing has: it may be that of a lost request."""
        one = self.kind.removesuffix("s")
        if self._inbox.has_lost_ids:
            why = "requests that this server had accepted were lost, and this may be one: send it again"
            return RequestError(410, f"no such {one} is known, but {why}", "perhaps_lost")
        return RequestError(404, f"no such {one}")

    async def _lookup(self, case_id: str) -> Job | None:
        """Look up a request that is not open; None when it was never accepted.

        Raises:
            RequestError: it was accepted, and is lost.
        """
        if (result := await self.run.lookup(case_id)) is not None:
            return Job.completed(case_id, result=result)
        if (kept := await self._inbox.find(self.kind, case_id)) is None:
            return None
        if kept.state == "lost":
            message = f"{case_id} was accepted, and the server's disk has lost or damaged it: send the request again"
            raise RequestError(410, message, "lost")
        if kept.state == "cancelled":
            return Job.completed(case_id, cancelled=True)
        try:
            await self._case_of(kept.body)
        except RequestError as error:
            return Job.completed(case_id, why=str(error.detail))
        return Job.completed(case_id, why=self.run.refusal or "it resumes when the server restarts")

    async def cancel(self, job: Job) -> bool:
        """Cancel a request, even an interrupted one; False when it has ended. Concurrent calls share one cancellation.

        Cancelling this call does not stop the cancellation.
        """
        if self.closed:
            return False
        if job.done.is_set():
            return self._cancel_interrupted(job)
        if job.cancel_task is None:
            job.cancel_task = asyncio.create_task(self._cancel(job))
            job.cancel_task.add_done_callback(_consume_exception)
        return await asyncio.shield(job.cancel_task)

    def _cancel_interrupted(self, job: Job) -> bool:
        if self.status(job) != "aside" or self._jobs.get(job.id) is not job:
            return False
        job.cancelled, job.reason = True, ""
        self._jobs.keep(job)
        self._count["cancelled"] += 1
        self._inbox.cancel(self.kind, job.id)
        return True

    async def _cancel(self, job: Job) -> bool:
        job.cancelled = True
        if not await self.run.cancel(job.id):
            job.cancelled = False  # its verdict is about to arrive
        await job.done.wait()
        return job.cancelled

    @property
    def closed(self) -> bool:
        """Whether the run is closed or closing: for good, or until it is reopened."""
        return self._shut or bool(self._opening.why) or not self.run.is_open

    @property
    def unavailable_reason(self) -> str:
        """Reason why requests are refused now, a full queue aside; empty while they are accepted."""
        if self._draining or self._shut:
            return "the server is stopping"
        return f"{why}: {_RETRIES}" if (why := self._opening.why) else self.run.refusal

    def _check_closed(self) -> None:
        """Refuse while the record is unavailable."""
        if why := "" if self._shut else self._opening.why:
            message = f"{why}: {_RETRIES}, retry later"
            raise RequestError(503, message, "paused", retry_after_s=self._opening.again_s)
        if self.closed:
            raise _server_stopping()

    def _check_accepting(self) -> None:
        """Refuse while no case is accepted; starts to reopen a run that stopped for a transient reason."""
        if self._draining:
            raise _server_stopping()
        self._opening.reopen_if_stopped()
        self._check_closed()
        if why := self.run.refusal:
            raise RequestError(503, why, "stopped")

    def _check_room(self, size: int) -> None:
        """Refuse when the queue has no room for one more request with a body of `size` bytes."""
        over = 1 + len(self._jobs.open) - self._most
        if over <= 0 and (not self._jobs.open or self._jobs.size + size <= self._most_bytes):
            return
        self._count["refused"] += 1
        full = f"{self._most:,}" if over > 0 else f"requests of {self._most_bytes:,} bytes"
        wait_s = self._rate.seconds_until(max(1, over))
        raise RequestError(429, f"{full} are open or queued: retry later", "queue_full", retry_after_s=wait_s)

    def stats(self) -> KindStats:
        """Current counts, and counts since the start."""
        now = Counter(self.status(job) for job in self._jobs.open.values())
        lost = self._inbox.lost(self.kind)
        since = {name: self._count[name] for name in ("done", "failed", "cancelled", "refused")}
        return KindStats(open=now["open"], queued=now["queued"], aside=len(self._jobs.interrupted), lost=lost, **since)

    async def drain(self, seconds: float) -> None:
        """Refuse new requests and wait for open ones, up to a deadline; their state can be read meanwhile."""
        self._draining = True
        await self._opening.cancel()
        if holding := [job.debate_task for job in self._jobs.open.values() if job.debate_task is not None]:
            await asyncio.wait(holding, timeout=seconds)

    async def close(self) -> int:
        """Interrupt unfinished requests and close the record; returns the number of interrupted requests.
        Idempotent."""
        self._draining = self._shut = True
        await self._opening.cancel()
        left = list(self._jobs.open.values())
        await self.run.close()
        await asyncio.gather(
            *(job.persist_task for job in left if job.persist_task is not None), return_exceptions=True
        )
        await asyncio.gather(*(job.debate_task for job in left if job.debate_task is not None))
        return sum(job.result is None and not job.cancelled for job in left)


def _consume_exception(task: asyncio.Task[None] | asyncio.Task[bool]) -> None:
    """Mark a task's exception as retrieved: waiters get it, and there may be none."""
    if not task.cancelled():
        task.exception()


def _content_conflict(job: Job) -> RequestError:
    return RequestError(409, f"{job.id} is known with other content: choose another id", "other_content")


def _server_stopping() -> RequestError:
    return RequestError(503, "the server is stopping: retry later", "stopping", retry_after_s=10)
