"""Deadline of an ask: runs while the ask is worked on, paused while it waits for the limiter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


class Deadline:
    """`asyncio.timeout` that can be paused.

    Waiting for a rate limit, a budget or a full server does not count: with a limit of 60 requests per minute the
    two-hundredth ask would otherwise time out before it started.

    Args:
        seconds: time limit of the work.
    """

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.timeout(seconds)
        self._began = time.monotonic()
        self._stood_still_s = 0.0

    async def __aenter__(self) -> Deadline:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, trace)

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return self._timeout.expired()

    @property
    def paused_s(self) -> float:
        """Paused seconds so far."""
        return self._stood_still_s

    def clock(self) -> float:
        """Seconds of work so far."""
        return time.monotonic() - self._began - self._stood_still_s

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Context in which time does not count."""
        when, began = self._timeout.when(), time.monotonic()
        if when is None or self._timeout.expired():
            yield
            return
        left_s = when - asyncio.get_running_loop().time()
        self._timeout.reschedule(None)
        try:
            yield
        finally:
            self._stood_still_s += time.monotonic() - began
            self._timeout.reschedule(asyncio.get_running_loop().time() + left_s)
