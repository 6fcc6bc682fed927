"""Client side of the reliable channel between a moderator and an agent: sends asks and receives replies in batches.

A call between processes costs far more than its content. So the agent keeps a call open until it has replies for it
(`agent_server.py`; long polling), and the moderator keeps one open while it waits for a reply: each call serves both
directions.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Sequence

from moot.actors.remote.envelopes import CancelEnvelope, MessageBatch, Outgoing, ReplyEnvelope

SPACING_S = 0.004
MOST_PER_CALL = 64
MOST_CALLS = 4

Exchange = Callable[[MessageBatch], Awaitable[Sequence[ReplyEnvelope] | None]]
"""Sends a batch and returns replies; None when the call was lost, which the sender recovers from itself."""


class AgentConnection:
    """Batching connection to one agent: sends messages and receives its replies.

    The first message after a pause is sent at once. Further calls start `spacing_s` after the previous one at the
    earliest, so that irregular messages still share calls; a full batch is sent without waiting.

    Args:
        sender: see `MessageBatch`.
        exchange: see `Exchange`.
        arrived: called for each reply.
        expected: numbers of the asks without a reply. A queued ask that is not among them is not sent: an earlier copy
            was answered, or it was cancelled.
        broken: called when `exchange` raised and the connection is unusable.
        spacing_s: least time between the starts of two calls.
    """

    def __init__(
        self,
        sender: str,
        exchange: Exchange,
        arrived: Callable[[ReplyEnvelope], None],
        expected: Collection[int],
        broken: Callable[[Exception], None],
        *,
        spacing_s: float = SPACING_S,
    ) -> None:
        self._sender, self._exchange = sender, exchange
        self._arrived, self._expected, self._broken = arrived, expected, broken
        self._spacing_s = spacing_s
        self._waiting: deque[Outgoing] = deque()
        self._received: list[int] = []
        self._epoch = self._sent = 0
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

    def call_lost(self) -> None:
        """Start a new epoch because a call was lost; called before open asks are posted again.

        The agent then gives no reply to open calls of the old epoch, and ignores its late asks.
        """
        self._epoch, self._sent = self._epoch + 1, 0

    def queued(self) -> set[int]:
        """Numbers of the messages that are not sent yet."""
        return {message.number for message in self._waiting}

    def _schedule(self) -> None:
        wanted = self._waiting or (not self._calls and self._expected)
        if wanted and self._timer is None and len(self._calls) < MOST_CALLS:
            self._timer = asyncio.get_running_loop().call_at(self._free_at, self._send)

    def _send(self) -> None:
        self._timer = None
        outgoing = self._batch()
        if not outgoing and not self._expected:
            return
        self._free_at = asyncio.get_running_loop().time() + self._spacing_s
        self.batch_sizes[len(outgoing)] += 1
        self._sent += 1
        batch = MessageBatch(self._sender, self._epoch, self._sent, self._received, outgoing)
        self._received = []
        call = asyncio.create_task(self._call(batch))
        self._calls.add(call)
        call.add_done_callback(self._returned)
        self._schedule()

    def _batch(self) -> list[Outgoing]:
        batch: list[Outgoing] = []
        while self._waiting and len(batch) < MOST_PER_CALL:
            message = self._waiting.popleft()
            if isinstance(message, CancelEnvelope) or message.number in self._expected:
                batch.append(message)
        return batch

    async def _call(self, batch: MessageBatch) -> None:
        replies = await self._exchange(batch)
        if replies is None:
            self._received += batch.received
            return
        for reply in replies:
            self._received.append(reply.number)
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
