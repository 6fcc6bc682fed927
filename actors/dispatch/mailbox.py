"""Mailbox: batches messages to one peer; while a call is in flight, further messages gather."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from moot.protocols.errors import MootError

M = TypeVar("M")


class MailboxClosed(MootError):
    """A message is not delivered, because its mailbox was closed."""


class Mailbox(Generic[M]):
    """Batching sender to one peer, with many messages per call.

    The first message after a pause is sent at once. Further calls start `spacing_s` after the previous one at the
    earliest, so that irregular messages still share calls; a full batch is sent without waiting.

    Args:
        send: delivers a batch; awaited before the next one is sent. It must handle lost peers itself; an exception ends
            the mailbox, and is raised to all who post to it or wait for it.
        spacing_s: least time between the starts of two calls.
        most: most messages per call.
    """

    def __init__(self, send: Callable[[list[M]], Awaitable[None]], *, spacing_s: float, most: int = 256) -> None:
        self._send, self._spacing_s, self._most = send, spacing_s, most
        self._waiting: deque[M] = deque()
        self._wake = asyncio.Event()
        self._posted = 0
        self._delivered = 0
        self._drains: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._failed: Exception | None = None
        self.batch_sizes: Counter[int] = Counter()

    def post(self, message: M) -> None:
        """Queue a message; never waits. Raises the error that ended the mailbox, if any."""
        if self._failed is not None:
            raise self._failed
        self._waiting.append(message)
        self._posted += 1
        self._wake.set()
        if self._pump is None:
            self._pump = asyncio.create_task(self._run())

    async def drained(self) -> None:
        """Wait until everything posted before this call has been delivered."""
        if self._failed is not None:
            raise self._failed
        if self._delivered < self._posted:
            delivered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._drains.append((self._posted, delivered))
            await delivered

    async def close(self) -> None:
        """Stop sending; queued messages are dropped, and waiters and later posts get `MailboxClosed`."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
            self._fail(self._failed or MailboxClosed("the mailbox was closed"))

    def _fail(self, error: Exception) -> None:
        self._failed = error
        for _, delivered in self._drains:
            if not delivered.done():
                delivered.set_exception(error)

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._failed is None:
            await self._wake.wait()
            await asyncio.sleep(0)
            started = clock()
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._most))]
            if not self._waiting:
                self._wake.clear()
            self.batch_sizes[len(batch)] += 1
            await self._deliver(batch)
            rest = self._spacing_s - (clock() - started)
            if rest > 0 and len(self._waiting) < self._most:
                await asyncio.sleep(rest)

    async def _deliver(self, batch: list[M]) -> None:
        try:
            await self._send(batch)
        except Exception as error:
            self._fail(error)
            return
        self._delivered += len(batch)
        while self._drains and self._drains[0][0] <= self._delivered:
            _, delivered = self._drains.popleft()
            if not delivered.done():
                delivered.set_result(None)
