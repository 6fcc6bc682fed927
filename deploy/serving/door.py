"""Whether a request is taken now: why not, and when to ask again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from moot.deploy.running.open_run import OpenRun
from moot.deploy.serving.jobs import Jobs
from moot.deploy.serving.opening import Opening
from moot.deploy.serving.refusals import Refused

_KEPT = 256
_LATELY_S = 60.0
_UNKNOWN_S = 5.0
_LONGEST_S = 300.0


class EndingRate:
    """Ends of debates in the order they came.

    Args:
        clock: seconds, never going back.

    >>> now = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> rate = EndingRate(lambda: next(now))
    >>> rate.ended(); rate.ended(); rate.ended()
    >>> rate.seconds_until(2)
    2.0
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ends: deque[float] = deque(maxlen=_KEPT)

    def ended(self) -> None:
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
        spent = now - self._ends[0]
        per_second = len(self._ends) / spent if spent > 0 else float("inf")
        return min(_LONGEST_S, count / per_second)


_AGAIN = "the server tries again by itself"


class Door:
    """Lets in requests of one kind, while there is a place and the run takes cases. Lives in one event loop.

    Args:
        run: holds the debates.
        opening: keeps it open.
        jobs: those that are in.
        most: requests that are open or wait.
        most_bytes: longest that their bodies may be together.

    Attributes:
        draining: whether nothing more is taken.
        shut: whether the record is closed for good, too, or is being closed.
        rate: of the ends that make room.
        refused: requests for which there was no place.
    """

    def __init__(self, run: OpenRun, opening: Opening, jobs: Jobs, *, most: int, most_bytes: int) -> None:
        self._run, self._opening, self._jobs = run, opening, jobs
        self._most, self._most_bytes = most, most_bytes
        self.draining = self.shut = False
        self.rate = EndingRate(time.monotonic)
        self.refused = 0

    @property
    def closed(self) -> bool:
        """Whether the run is closed or is being closed: for good, or until it is opened anew."""
        return self.shut or bool(self._opening.why) or not self._run.is_open

    @property
    def why_shut(self) -> str:
        """Why no request is taken now, want of a place apart; empty while they are."""
        if self.draining or self.shut:
            return "the server is stopping"
        if why := self._opening.why:
            return f"{why}: {_AGAIN}"
        return self._run.refusal

    def check_draining(self) -> None:
        """Raise `Refused` when nothing more is taken."""
        if self.draining:
            raise _stopping()

    def check_closed(self) -> None:
        """Raise `Refused` while the record cannot be asked."""
        if self.shut:
            raise _stopping()
        if why := self._opening.why:
            told = f"{why}: {_AGAIN}, ask again in a while"
            raise Refused(503, told, "paused", retry_after_s=self._opening.again_s)
        if not self._run.is_open:  # it was to be opened anew, and is not any more
            raise _stopping()

    def check_takes(self) -> None:
        """Raise `Refused` while no case is taken; begins to open a run anew that has stopped for what may pass."""
        self.check_draining()
        self._opening.look()
        self.check_closed()
        if why := self._run.refusal:
            raise Refused(503, why, "stopped")

    def check_room(self, size: int) -> None:
        """Raise `Refused` when there is no place for one more request, whose body has so many bytes."""
        over = 1 + len(self._jobs) - self._most
        if over <= 0 and (not self._jobs or self._jobs.size + size <= self._most_bytes):
            return
        self.refused += 1
        full = f"{self._most:,}" if over > 0 else f"requests of {self._most_bytes:,} bytes"
        wait_s = self.rate.seconds_until(max(1, over))
        raise Refused(429, f"{full} are open or queued: ask again later", "queue_full", retry_after_s=wait_s)


def _stopping() -> Refused:
    return Refused(503, "the server is stopping: ask again in a while", "stopping", retry_after_s=10)
