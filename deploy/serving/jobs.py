"""The requests of one kind that a server knows by itself: those that go on, and those that have ended lately."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator

from moot.deploy.running.held import Held
from moot.protocols.errors import RunMismatch


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

    def __init__(self, case_id: str, content: str = "", trail: str = "record", size: int = 0) -> None:
        self.id, self.content, self.trail, self.size = case_id, content, trail, size
        self.held: Held | None = None
        self.cancelled = self.unkept = False
        self.why = ""
        self.mismatch: RunMismatch | None = None
        self.engine_s: float | None = None
        self.done = asyncio.Event()
        self.holding: asyncio.Task[None] | None = None
        self.taking: asyncio.Task[None] | None = None
        self.withdrawing: asyncio.Task[bool] | None = None

    @classmethod
    def aside(cls, case_id: str, why: str) -> Job:
        """One that was accepted once and is not gone on with: asked again, with any content, it begins anew."""
        job = cls(case_id)
        job.why = why
        job.done.set()
        return job

    @property
    def goes_on(self) -> bool:
        """Whether asking again finds this one: it is being debated, or has a verdict."""
        return not self.done.is_set() or (self.held is not None and not self.held.failure)


KEPT_ENDED = 2000
"""Requests that have ended and are answered from memory; older ones from the record."""


class Jobs:
    """Requests by their ids. Iterated over, and counted, those that go on.

    Attributes:
        size: bytes of the bodies of those that go on.
        aside: ids of those that were put aside without a verdict, also of those that are not remembered any more.
    """

    def __init__(self) -> None:
        self.size = 0
        self.aside: set[str] = set()
        self._open: dict[str, Job] = {}
        self._ended: OrderedDict[str, Job] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._open.values())

    def __contains__(self, case_id: object) -> bool:
        return case_id in self._open

    def known(self, case_id: str) -> Job | None:
        """The latest one with this id; None when it is not remembered."""
        return self._open.get(case_id) or self._ended.get(case_id)

    def begin(self, job: Job) -> None:
        """One more goes on; of its id, this is the latest."""
        self._open[job.id] = job
        self.size += job.size
        self._ended.pop(job.id, None)
        self.aside.discard(job.id)

    def end(self, job: Job) -> None:
        """It goes on no more."""
        del self._open[job.id]
        self.size -= job.size

    def keep(self, job: Job) -> None:
        """Remember one that has ended, for as long as not too many have ended after it."""
        self._ended[job.id] = job
        if job.held is None and not job.cancelled:
            self.aside.add(job.id)
        else:
            self.aside.discard(job.id)
        while len(self._ended) > KEPT_ENDED:
            self._ended.popitem(last=False)

    def undo(self, job: Job, before: Job | None) -> None:
        """Forget one that has ended, for it was refused; `before` is what was known of its id."""
        if self._ended.get(job.id) is job:
            del self._ended[job.id]
            self.aside.discard(job.id)
        if before is not None and job.id not in self._open:
            self.keep(before)
