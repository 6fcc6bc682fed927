"""The requests of one kind that a server knows by itself: those that go on, and those that have ended lately."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from moot.deploy.serving.job import Job

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
