"""Server side of the reliable channel between moderators and an agent: receives asks, returns replies in batches."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from moot.actors.remote.agent_connection import MOST_PER_CALL, SPACING_S
from moot.actors.remote.envelopes import AskEnvelope, CancelEnvelope, MessageBatch, Outgoing, ReplyEnvelope
from moot.protocols.errors import ActorGone, RecordError
from moot.protocols.messages import Ask, AskResult

_log = structlog.get_logger(__name__)

MOST_KEPT = 2
"""Most open calls per moderator: one for the next batch of replies, and one for the batch after it."""


class AgentServer:
    """Deduplicating request server: answers each ask once and returns the replies to the moderator's open calls.

    A duplicate of an ask, sent because a call was lost on the way there or back, is neither answered nor paid for
    again: the ask is in flight, or its reply is kept until the moderator has acknowledged it.

    Args:
        answer: answers an ask; cancelling it cancels the work.
        spacing_s: least time between two batches of replies to one moderator; a full one is sent without waiting.
    """

    def __init__(self, answer: Callable[[Ask], Awaitable[AskResult]], *, spacing_s: float = SPACING_S) -> None:
        self._answer, self._spacing_s = answer, spacing_s
        self._outboxes: dict[str, _Outbox] = {}
        self._retired: set[str] = set()
        self._broken: ActorGone | RecordError | None = None
        self.batch_sizes: Counter[int] = Counter()

    async def exchange(self, batch: MessageBatch) -> list[ReplyEnvelope]:
        """Process a batch; returns replies to it or to earlier ones, or none when more calls are open than needed.

        A duplicate, or a call of an older epoch or incarnation, returns none: nobody waits for its result. Its asks
        were sent again and may have been answered since, so they are ignored too.

        Raises:
            ActorGone, RecordError: the record accepts no more rows, so that nothing more can be answered here.
        """
        if self._broken is not None:
            raise _fresh_copy(self._broken)
        if batch.sender in self._retired:
            return []
        outbox = self._outbox(batch.sender)
        fresh = outbox.is_new(batch)
        for message in batch.messages:
            if fresh or isinstance(message, CancelEnvelope):
                self._take(outbox, message)
        if not fresh:
            return []
        outbox.confirm(batch)
        return await outbox.hold_call()

    def has_ask(self, sender: str, number: int) -> bool:
        """Whether an ask is in flight here, or its reply is not acknowledged yet."""
        outbox = self._outboxes.get(sender)
        return outbox is not None and (number in outbox.in_flight or number in outbox.unacknowledged)

    async def close(self) -> None:
        """Cancel what is in flight and return every open call; returns when all have ended."""
        tasks = [task for outbox in self._outboxes.values() for task in outbox.close()]
        await asyncio.gather(*tasks, return_exceptions=True)

    def _outbox(self, sender: str) -> _Outbox:
        known = self._outboxes.get(sender)
        if known is None:
            name = sender.partition(":")[0]
            for older in [each for each in self._outboxes if each.partition(":")[0] == name]:
                self._outboxes.pop(older).retire()
                self._retired.add(older)
            known = self._outboxes[sender] = _Outbox(self._spacing_s, self.batch_sizes)
        return known

    def _take(self, outbox: _Outbox, message: Outgoing) -> None:
        in_flight = outbox.in_flight.get(message.number)
        if not isinstance(message, AskEnvelope):
            if in_flight is not None:
                in_flight.cancel()
            else:
                outbox.cancelled.add(message.number)
        elif (reply := outbox.unacknowledged.get(message.number)) is not None:
            outbox.post(reply)
        elif in_flight is None and message.number not in outbox.cancelled:
            task = asyncio.create_task(self._reply(outbox, message))
            outbox.in_flight[message.number] = task
            task.add_done_callback(lambda _: outbox.in_flight.pop(message.number, None))

    async def _reply(self, outbox: _Outbox, message: AskEnvelope) -> None:
        try:
            reply = ReplyEnvelope(message.number, await self._answer(message.ask))
        except (ActorGone, RecordError) as lost:
            self._break(lost)
            return
        except Exception as bug:
            _log.exception("an ask could not be answered")
            reply = ReplyEnvelope(message.number, None, f"{type(bug).__name__}: {bug}")
        outbox.unacknowledged[message.number] = reply
        outbox.post(reply)

    def _break(self, error: ActorGone | RecordError) -> None:
        """Fail every caller and cancel what is in flight: nothing more that is paid for could be recorded."""
        if self._broken is None:
            self._broken = error
            for outbox in self._outboxes.values():
                outbox.fail(error)


def _fresh_copy(error: ActorGone | RecordError) -> ActorGone | RecordError:
    """New instance of the same error, because each raise of one instance lengthens its traceback."""
    return type(error)(str(error))


class _Outbox:
    """Asks, replies and open calls of one incarnation of a moderator.

    Attributes:
        in_flight: asks that are being answered, by number.
        unacknowledged: replies that may not have arrived, by number.
        cancelled: numbers cancelled by a batch that may have overtaken the one with the ask.
    """

    def __init__(self, spacing_s: float, batch_sizes: Counter[int]) -> None:
        self.in_flight: dict[int, asyncio.Task[None]] = {}
        self.unacknowledged: dict[int, ReplyEnvelope] = {}
        self.cancelled: set[int] = set()
        self._spacing_s, self._batch_sizes = spacing_s, batch_sizes
        self._replies: deque[ReplyEnvelope] = deque()
        self._kept: deque[asyncio.Future[list[ReplyEnvelope]]] = deque()
        self._epoch = self._before = 0  # all batches of the epoch up to that number have arrived
        self._overtook: dict[int, list[int]] = {}
        self._retired = False
        self._timer: asyncio.TimerHandle | None = None
        self._free_at = 0.0

    def post(self, reply: ReplyEnvelope) -> None:
        """Queue a reply; never waits."""
        self._replies.append(reply)
        if len(self._replies) >= MOST_PER_CALL and self._timer is not None:
            self._timer.cancel()
            self._timer, self._free_at = None, 0.0
        self._schedule()

    def is_new(self, batch: MessageBatch) -> bool:
        """Whether a batch is of this epoch and no duplicate; a newer epoch returns the calls of the previous one."""
        if batch.epoch > self._epoch:
            self._epoch, self._before = batch.epoch, 0
            for received in self._overtook.values():
                self._forget(received)
            self._overtook.clear()
            self._release_calls()
        if batch.epoch < self._epoch:
            self._forget(batch.received)
            return False
        return batch.number > self._before and batch.number not in self._overtook

    def confirm(self, batch: MessageBatch) -> None:
        """Drop the replies that a new batch acknowledges, once every earlier batch has arrived: one of them may contain
        the same asks again."""
        self._overtook[batch.number] = batch.received
        while (received := self._overtook.pop(self._before + 1, None)) is not None:
            self._before += 1
            self._forget(received)
        if not self._overtook:
            self.cancelled.clear()

    def _forget(self, received: list[int]) -> None:
        for number in received:
            self.unacknowledged.pop(number, None)

    async def hold_call(self) -> list[ReplyEnvelope]:
        """Keep a call open until there are replies for it."""
        if self._retired:
            return []
        mine: asyncio.Future[list[ReplyEnvelope]] = asyncio.get_running_loop().create_future()
        self._kept.append(mine)
        if len(self._kept) > MOST_KEPT:
            self._release()
        else:
            self._schedule()
        try:
            return await mine
        finally:
            with suppress(ValueError):
                self._kept.remove(mine)  # cancelled

    def retire(self) -> None:
        """Release the calls of a dead incarnation; the next one asks again, and joins what is in flight."""
        self._retired = True
        self._release_calls()

    def close(self) -> list[asyncio.Task[None]]:
        """Cancel everything; returns the tasks that are about to end."""
        tasks = list(self.in_flight.values())
        for task in tasks:
            task.cancel()
        self.retire()
        return tasks

    def fail(self, error: ActorGone | RecordError) -> None:
        """Fail every open call with the error and cancel every ask, because no reply can be recorded any more."""
        while self._kept:
            self._kept.popleft().set_exception(_fresh_copy(error))
        for task in self.in_flight.values():
            if task is not asyncio.current_task():
                task.cancel()

    def _release_calls(self) -> None:
        while self._kept:
            self._kept.popleft().set_result([])

    def _schedule(self) -> None:
        if self._replies and self._kept and self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._free_at, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._replies and self._kept:
            self._release()

    def _release(self) -> None:
        batch = [self._replies.popleft() for _ in range(min(len(self._replies), MOST_PER_CALL))]
        self._kept.popleft().set_result(batch)
        self._free_at = asyncio.get_running_loop().time() + self._spacing_s
        self._batch_sizes[len(batch)] += 1
        self._schedule()
