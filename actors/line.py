"""A line between a moderator and an agent: one call carries asks there and brings replies back.

A call between processes costs far more than what it carries. So the agent keeps a call until it has replies to give it,
and the moderator always has one with the agent while it waits for a reply: each call serves both directions.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence

from moot.actors.envelopes import Outgoing, ReplyEnvelope

SPACING_S = 0.004
MOST_PER_CALL = 64
MOST_CALLS = 4
MOST_KEPT = 2

Exchange = Callable[[list[Outgoing]], Awaitable[Sequence[ReplyEnvelope]]]


class Line:
    """The moderator's end.

    The first message after a pause leaves at once. After that a call starts at the earliest `spacing_s` after the one
    before it, so that messages which come unevenly still share calls; a full batch leaves without waiting.

    Args:
        exchange: delivers a batch, and gives replies back; it must see to a lost agent itself.
        arrived: called for each reply.
        awaiting: whether any reply is awaited.
        broken: called when `exchange` raised: nothing can come over this line any more.
        spacing_s: least time between the starts of two calls.
    """

    def __init__(
        self,
        exchange: Exchange,
        arrived: Callable[[ReplyEnvelope], None],
        awaiting: Callable[[], bool],
        broken: Callable[[Exception], None],
        *,
        spacing_s: float = SPACING_S,
    ) -> None:
        self._exchange, self._arrived, self._awaiting, self._broken = exchange, arrived, awaiting, broken
        self._spacing_s = spacing_s
        self._waiting: deque[Outgoing] = deque()
        self._calls: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._free_at = 0.0
        self.batch_sizes: Counter[int] = Counter()

    def post(self, message: Outgoing) -> None:
        """Queue a message; never waits."""
        self._waiting.append(message)
        if len(self._waiting) >= MOST_PER_CALL and self._timer is not None:
            self._timer.cancel()
            self._timer, self._free_at = None, 0.0
        self._schedule()

    def queued(self) -> set[int]:
        """Numbers of the messages that have not left yet."""
        return {message.number for message in self._waiting}

    def _schedule(self) -> None:
        wanted = self._waiting or (not self._calls and self._awaiting())
        if wanted and self._timer is None and len(self._calls) < MOST_CALLS:
            self._timer = asyncio.get_running_loop().call_at(self._free_at, self._send)

    def _send(self) -> None:
        self._timer = None
        batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_PER_CALL))]
        if not batch and not self._awaiting():
            return
        self._free_at = asyncio.get_running_loop().time() + self._spacing_s
        self.batch_sizes[len(batch)] += 1
        call = asyncio.create_task(self._call(batch))
        self._calls.add(call)
        call.add_done_callback(self._returned)
        self._schedule()

    async def _call(self, batch: list[Outgoing]) -> None:
        for reply in await self._exchange(batch):
            self._arrived(reply)

    def _returned(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        if call.cancelled():
            return
        error = call.exception()
        if error is None:
            self._schedule()
        elif isinstance(error, Exception):
            self._broken(error)


class Outbox:
    """The agent's end: replies that wait for one of their moderator's calls to go back with.

    Args:
        spacing_s: least time between two batches; a full one leaves without waiting.
    """

    def __init__(self, *, spacing_s: float = SPACING_S) -> None:
        self._spacing_s = spacing_s
        self._replies: deque[ReplyEnvelope] = deque()
        self._kept: deque[asyncio.Future[list[ReplyEnvelope]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._free_at = 0.0
        self.batch_sizes: Counter[int] = Counter()

    def post(self, reply: ReplyEnvelope) -> None:
        """Queue a reply; never waits."""
        self._replies.append(reply)
        if len(self._replies) >= MOST_PER_CALL and self._timer is not None:
            self._timer.cancel()
            self._timer, self._free_at = None, 0.0
        self._schedule()

    async def batch(self) -> list[ReplyEnvelope]:
        """Keep the caller until there are replies; it gets none when more callers wait than are needed."""
        mine: asyncio.Future[list[ReplyEnvelope]] = asyncio.get_running_loop().create_future()
        self._kept.append(mine)
        if len(self._kept) > MOST_KEPT:
            self._release()
        else:
            self._schedule()
        return await mine

    def close(self) -> None:
        """Let every caller go."""
        while self._kept:
            self._release()

    def _schedule(self) -> None:
        if self._replies and self._kept and self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._free_at, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._replies and self._kept:
            self._release()

    def _release(self) -> None:
        caller = self._kept.popleft()
        if not caller.done():
            batch = [self._replies.popleft() for _ in range(min(len(self._replies), MOST_PER_CALL))]
            caller.set_result(batch)
            self._free_at = asyncio.get_running_loop().time() + self._spacing_s
            self.batch_sizes[len(batch)] += 1
        self._schedule()
