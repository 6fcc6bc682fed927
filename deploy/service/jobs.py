"""The requests of one kind that a server knows by itself: those that go on, and those that have ended lately."""

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
    """A request that was accepted. Lives in one event loop.

    Attributes:
        id: of its case.
        content: the hash of its case; empty for one that is known from the record alone.
        trail: tells its events from those of another time that it was asked.
        size: bytes of its body.
        held: its end, once it has one.
        cancelled: whether a client has cancelled it.
        why: what put it aside, or keeps it there.
        mismatch: what the record holds under its id is something else.
        unkept: whether the inbox could not keep it, so that it was refused.
        engine_s: seconds that the engine had it, until its verdict was durable; None before, and from the record.
        done: set when there is nothing more to wait for.
        holding: has it debated.
        taking: has the inbox keep it; None for one that is there already. Fails when the request is refused.
        withdrawing: cancels it, once for all who ask; gives whether it did.
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
        """One of an earlier time. One that was put aside begins anew when it is asked again, with any content."""
        job = cls(case_id, result=result, cancelled=cancelled, reason=why)
        job.done.set()
        return job

    @property
    def is_current(self) -> bool:
        """Whether asking again finds this one: it is being debated, or has a verdict."""
        return not self.done.is_set() or (self.result is not None and not self.result.failure)


MAX_COMPLETED_JOBS = 2000
"""Requests that have ended and are answered from memory; older ones from the record."""


class Jobs:
    """Requests by their ids.

    Attributes:
        open: those that go on.
        size: bytes of their bodies.
        aside: ids of those that were put aside without a verdict, also of those that are not remembered any more.
    """

    def __init__(self) -> None:
        self.open: dict[str, Job] = {}
        self.size = 0
        self.interrupted: set[str] = set()
        self._ended: OrderedDict[str, Job] = OrderedDict()

    def get(self, case_id: str) -> Job | None:
        """The latest one with this id; None when it is not remembered."""
        return self.open.get(case_id) or self._ended.get(case_id)

    def begin(self, job: Job) -> None:
        """One more goes on; of its id, this is the latest."""
        self.open[job.id] = job
        self.size += job.size
        self._ended.pop(job.id, None)
        self.interrupted.discard(job.id)

    def end(self, job: Job) -> None:
        """It goes on no more."""
        del self.open[job.id]
        self.size -= job.size
        job.done.set()

    def keep(self, job: Job) -> None:
        """Remember one that has ended, for as long as not too many have ended after it."""
        self._ended[job.id] = job
        if job.result is None and not job.cancelled:
            self.interrupted.add(job.id)
        else:
            self.interrupted.discard(job.id)
        while len(self._ended) > MAX_COMPLETED_JOBS:
            self._ended.popitem(last=False)

    def undo(self, job: Job, before: Job | None) -> None:
        """Forget one that has ended, for it was refused; `before` is what was known of its id."""
        if self._ended.get(job.id) is job:
            del self._ended[job.id]
            self.interrupted.discard(job.id)
        if before is not None and job.id not in self.open:
            self.keep(before)


_LATELY_S, _UNKNOWN_S, _LONGEST_S = 60.0, 5.0, 300.0


class CompletionRate:
    """Ends of debates in the order they came.

    Args:
        clock: seconds, never going back.

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
        """One more has ended."""
        self._ends.append(self._clock())

    def seconds_until(self, count: int) -> float:
        """Seconds until so many more will have ended, at the rate of the last ends; at most five minutes.

        Only ends of the last minute count: a quiet time before them says nothing of how fast debates end.
        """
        now = self._clock()
        while self._ends and now - self._ends[0] > _LATELY_S:
            self._ends.popleft()
        if len(self._ends) < 2:
            return _UNKNOWN_S
        return min(_LONGEST_S, count * (now - self._ends[0]) / len(self._ends))
