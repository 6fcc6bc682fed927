"""In-memory job table of one kind of request: open jobs, and recently completed ones."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from moot.actors.record.debate_result import DebateResult
from moot.protocols.errors import RunMismatch


@dataclass(eq=False)
class Job:
    """Accepted request. Lives in one event loop.

    Attributes:
        id: of its case.
        content: hash of its case; empty when known from the record alone.
        stream_id: id of its event stream; differs between requests with the same id.
        size: bytes of its body.
        result: its result; None before its end.
        cancelled: whether a client has cancelled it.
        reason: why it was interrupted, or cannot resume.
        mismatch: set when the record has other content under its id.
        not_persisted: whether the inbox could not persist it, so that it was refused.
        engine_s: seconds in the engine, until its verdict was durable; None before, and when read from the record.
        done: set when the job has ended.
        debate_task: task of its debate.
        persist_task: task that persists it in the inbox; None when it is already there. Fails if the request is
            refused.
        cancel_task: task that cancels it, shared by all callers; returns whether it did.
    """

    id: str
    content: str = ""
    stream_id: str = "record"
    size: int = 0
    result: DebateResult | None = None
    cancelled: bool = False
    reason: str = ""
    mismatch: RunMismatch | None = None
    not_persisted: bool = False
    engine_s: float | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)
    debate_task: asyncio.Task[None] | None = None
    persist_task: asyncio.Task[None] | None = None
    cancel_task: asyncio.Task[bool] | None = None

    @classmethod
    def completed(
        cls, case_id: str, *, result: DebateResult | None = None, cancelled: bool = False, why: str = ""
    ) -> Job:
        """Job from an earlier server. An interrupted one restarts when it is requested again, with any content."""
        job = cls(case_id, result=result, cancelled=cancelled, reason=why)
        job.done.set()
        return job

    @property
    def is_current(self) -> bool:
        """Whether a repeated request gets this job: it is open, or has a verdict."""
        return not self.done.is_set() or (self.result is not None and not self.result.failure)


MAX_COMPLETED_JOBS = 2000
"""Most completed jobs in memory; older ones are read from the record."""


class Jobs:
    """Job table by id.

    Attributes:
        open: unfinished jobs.
        size: bytes of their bodies.
        interrupted: ids of interrupted jobs, including evicted ones.
    """

    def __init__(self) -> None:
        self.open: dict[str, Job] = {}
        self.size = 0
        self.interrupted: set[str] = set()
        self._ended: OrderedDict[str, Job] = OrderedDict()

    def get(self, case_id: str) -> Job | None:
        """Latest job with this id; None when it is not in memory."""
        return self.open.get(case_id) or self._ended.get(case_id)

    def begin(self, job: Job) -> None:
        """Add an open job, the latest with its id."""
        self.open[job.id] = job
        self.size += job.size
        self._ended.pop(job.id, None)
        self.interrupted.discard(job.id)

    def end(self, job: Job) -> None:
        """Remove a job from the open ones."""
        del self.open[job.id]
        self.size -= job.size
        job.done.set()

    def keep(self, job: Job) -> None:
        """Keep a completed job until newer ones evict it."""
        self._ended[job.id] = job
        if job.result is None and not job.cancelled:
            self.interrupted.add(job.id)
        else:
            self.interrupted.discard(job.id)
        while len(self._ended) > MAX_COMPLETED_JOBS:
            self._ended.popitem(last=False)

    def undo(self, job: Job, before: Job | None) -> None:
        """Drop a refused job, and restore the job `before` with its id."""
        if self._ended.get(job.id) is job:
            del self._ended[job.id]
            self.interrupted.discard(job.id)
        if before is not None and job.id not in self.open:
            self.keep(before)


_LATELY_S, _UNKNOWN_S, _LONGEST_S = 60.0, 5.0, 300.0


class CompletionRate:
    """Rate of completed debates.

    Args:
        clock: monotonic seconds.

    >>> now = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> rate = CompletionRate(lambda: next(now))
    >>> rate.record(); rate.record(); rate.record()
    >>> rate.seconds_until(2)
    2.0
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: deque[float] = deque(maxlen=256)

    def record(self) -> None:
        """Count one completion."""
        self._ends.append(self._clock())

    def seconds_until(self, count: int) -> float:
        """Estimated seconds until this many more completions, at the recent rate; at most five minutes.

        Only completions of the last minute count: an idle time before them says nothing about the rate.
        """
        now = self._clock()
        while self._ends and now - self._ends[0] > _LATELY_S:
            self._ends.popleft()
        if len(self._ends) < 2:
            return _UNKNOWN_S
        return min(_LONGEST_S, count * (now - self._ends[0]) / len(self._ends))
