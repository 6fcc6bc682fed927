"""The two ends of a line, joined without Ray: everything arrives once, in few calls, also when calls are lost."""

from __future__ import annotations

import asyncio
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from moot.actors.envelopes import AskEnvelope, Outgoing, ReplyEnvelope
from moot.actors.line import MOST_CALLS, MOST_KEPT, MOST_PER_CALL, Line, Outbox
from moot.protocols.messages import Answered, Ask

_ASK = Ask(case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={}, reply="r")


def _answered(number: int) -> Answered:
    return Answered(path="p", reply_id=str(number), model="m")


class Wire:
    """A moderator's line and an agent's outbox; the agent takes `think_s` for each ask."""

    def __init__(self, think_s: float = 0.0, spacing_s: float = 0.002) -> None:
        self.think_s = think_s
        self.open: set[int] = set()
        self.got: list[int] = []
        self.broken_by: list[Exception] = []
        self.outbox = Outbox(spacing_s=spacing_s)
        self.line = Line(
            self._exchange, self._arrived, lambda: bool(self.open), self.broken_by.append, spacing_s=spacing_s
        )
        self.calls = 0
        self.under_way = 0
        self.most_under_way = 0
        self._thinking: set[asyncio.Task[None]] = set()

    def ask(self, number: int) -> None:
        self.open.add(number)
        self.line.post(AskEnvelope(number, _ASK))

    async def all_answered(self) -> None:
        async with asyncio.timeout(10):
            while self.open:  # noqa: ASYNC110 - a set that empties
                await asyncio.sleep(0.001)

    async def _exchange(self, batch: list[Outgoing]) -> list[ReplyEnvelope]:
        self.calls += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        for message in batch:
            task = asyncio.create_task(self._think(message.number))
            self._thinking.add(task)
            task.add_done_callback(self._thinking.discard)
        try:
            return await self.outbox.batch()
        finally:
            self.under_way -= 1

    async def _think(self, number: int) -> None:
        await asyncio.sleep(self.think_s * (number % 5))
        self.outbox.post(ReplyEnvelope(number, _answered(number)))

    def _arrived(self, reply: ReplyEnvelope) -> None:
        self.open.remove(reply.number)  # a KeyError for one that arrives twice
        self.got.append(reply.number)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=60), st.sampled_from([0.0, 0.003]))
@settings(deadline=None, max_examples=30)
def test_every_ask_is_answered_once(pauses_ms: list[int], think_s: float) -> None:
    async def hold() -> None:
        wire = Wire(think_s)
        for number, pause_ms in enumerate(pauses_ms):
            wire.ask(number)
            if pause_ms:
                await asyncio.sleep(pause_ms / 1000)
        await wire.all_answered()
        assert sorted(wire.got) == list(range(len(pauses_ms)))
        assert wire.most_under_way <= MOST_CALLS
        wire.outbox.close()

    asyncio.run(hold())


async def test_asks_and_replies_that_come_together_share_a_call() -> None:
    wire = Wire()
    for number in range(40):
        wire.ask(number)
    await wire.all_answered()
    assert wire.line.batch_sizes[40] == 1
    assert wire.outbox.batch_sizes[40] == 1
    assert wire.calls == 1


async def test_a_steady_stream_needs_one_call_for_both_directions() -> None:
    wire = Wire(think_s=0.002, spacing_s=0.02)
    for number in range(200):
        wire.ask(number)
        await asyncio.sleep(0.001)
    await wire.all_answered()
    assert wire.calls <= sum(wire.outbox.batch_sizes.values()) + MOST_KEPT
    assert wire.calls < 40


async def test_a_full_batch_leaves_without_waiting() -> None:
    wire, started = Wire(spacing_s=30.0), time.monotonic()
    wire.ask(0)
    await wire.all_answered()
    for number in range(1, 1 + MOST_PER_CALL):
        wire.ask(number)
    await wire.all_answered()
    assert time.monotonic() - started < 5


async def test_one_call_stays_with_the_agent_while_a_reply_is_awaited() -> None:
    wire = Wire(think_s=0.05)
    wire.ask(1)
    wire.ask(4)
    await asyncio.sleep(0.02)
    assert wire.under_way == 1
    await wire.all_answered()
    await asyncio.sleep(0.02)
    assert wire.under_way == 0


async def test_a_call_that_comes_back_with_nothing_is_made_again() -> None:
    wire = Wire(think_s=0.1)
    wire.ask(1)
    await asyncio.sleep(0.02)
    wire.outbox.close()
    await wire.all_answered()
    assert wire.calls == 2


async def test_more_calls_than_are_kept_go_back_at_once() -> None:
    outbox = Outbox(spacing_s=0.0)
    calls = [asyncio.create_task(outbox.batch()) for _ in range(MOST_KEPT + 1)]
    await asyncio.sleep(0.01)
    assert [call.done() for call in calls] == [True, *[False] * MOST_KEPT]
    outbox.close()
    assert [await call for call in calls] == [[]] * len(calls)


async def test_a_broken_line_says_so() -> None:
    broken: list[Exception] = []

    async def fail(batch: list[Outgoing]) -> list[ReplyEnvelope]:
        raise OSError("gone")

    line = Line(fail, lambda _: None, lambda: True, broken.append, spacing_s=0.0)
    line.post(AskEnvelope(1, _ASK))
    await asyncio.sleep(0.01)
    assert [str(error) for error in broken] == ["gone"]
