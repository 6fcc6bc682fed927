"""A moderator's connection and an agent's server, joined without Ray: every ask is answered once, in few calls, also
when calls are lost on their way there or back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_time import run_in_virtual_time, virtual_time

from moot.actors.remote.agent_connection import MOST_CALLS, MOST_PER_CALL, AgentConnection
from moot.actors.remote.agent_server import MOST_KEPT, AgentServer
from moot.actors.remote.envelopes import (
    AskEnvelope,
    CancelEnvelope,
    MessageBatch,
    ReplyEnvelope,
    decode_replies,
    encode,
)
from moot.protocols.errors import ActorGone, RecordError
from moot.protocols.messages import Ask, AskResult


def _asking(number: int) -> AskEnvelope:
    ask = Ask(case_id="c", attempt=0, path=str(number), role="agent/0", template="t", slots={}, reply="r")
    return AskEnvelope(number, ask)


def _batch(
    number: int, *messages: AskEnvelope | CancelEnvelope, below: int = 0, got: Sequence[int] = ()
) -> MessageBatch:
    return MessageBatch("m:1", below, number, list(got), list(messages))


class SlowAgent:
    """Takes `think_s` times 0 to 4 for an ask."""

    def __init__(self, think_s: float = 0.0) -> None:
        self.think_s = think_s
        self.paid: Counter[int] = Counter()
        self.cancelled: list[int] = []

    async def answer(self, ask: Ask) -> AskResult:
        number = int(ask.path)
        self.paid[number] += 1
        try:
            await asyncio.sleep(self.think_s * (number % 5))
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        return AskResult(path=ask.path, reply_id=ask.path, model="m")


class LossyConnection:
    """A connection to a server; calls whose numbers are in `lost_there` or `lost_back` are lost."""

    def __init__(
        self,
        thinker: SlowAgent,
        spacing_s: float = 0.002,
        sender: str = "m:1",
        server: AgentServer | None = None,
        lost_there: Sequence[int] = (),
        lost_back: Sequence[int] = (),
    ) -> None:
        self.open: dict[int, AskEnvelope] = {}
        self.got: list[int] = []
        self.broken_by: list[Exception] = []
        self.server = server or AgentServer(thinker.answer, spacing_s=spacing_s)
        self.connection = AgentConnection(
            sender,
            self._exchange,
            self._arrived,
            self.open.keys(),
            self.broken_by.append,
            spacing_s=spacing_s,
        )
        self.calls = 0
        self.under_way = 0
        self.most_under_way = 0
        self._lost_there, self._lost_back = set(lost_there), set(lost_back)
        self._ghosts: set[asyncio.Task[list[ReplyEnvelope]]] = set()

    def ask(self, number: int) -> None:
        self.open[number] = _asking(number)
        self.connection.post(self.open[number])

    async def all_answered(self) -> None:
        async with asyncio.timeout(10):
            while self.open:  # noqa: ASYNC110 - a dict that empties
                await asyncio.sleep(0.001)

    async def _exchange(self, batch: MessageBatch) -> Sequence[ReplyEnvelope] | None:
        number, self.calls = self.calls, self.calls + 1
        if number in self._lost_there:
            self._ask_again()
            return None
        if number in self._lost_back:  # the server keeps a call that nobody waits for
            self._ghosts.add(asyncio.create_task(self.server.exchange(batch)))
            await asyncio.sleep(0.005)
            self._ask_again()
            return None
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return await self.server.exchange(batch)
        finally:
            self.under_way -= 1

    def _ask_again(self) -> None:
        """What is done about a lost call."""
        self.connection.call_lost()
        for number in self.open.keys() - self.connection.queued():
            self.connection.post(self.open[number])

    def _arrived(self, reply: ReplyEnvelope) -> None:
        if self.open.pop(reply.number, None) is not None:
            self.got.append(reply.number)


_PAUSES = st.lists(st.integers(0, 8), min_size=1, max_size=60)
_LOST = st.lists(st.integers(0, 12), max_size=5, unique=True)


@given(_PAUSES, st.sampled_from([0.0, 0.003]), _LOST, _LOST)
def test_every_ask_is_answered_and_paid_once(
    pauses_ms: list[int], think_s: float, lost_there: list[int], lost_back: list[int]
) -> None:
    async def hold() -> None:
        thinker = SlowAgent(think_s)
        wire = LossyConnection(thinker, lost_there=lost_there, lost_back=lost_back)
        for number, pause_ms in enumerate(pauses_ms):
            wire.ask(number)
            if pause_ms:
                await asyncio.sleep(pause_ms / 1000)
        await wire.all_answered()
        assert sorted(wire.got) == list(range(len(pauses_ms)))
        assert set(thinker.paid.values()) == {1}
        assert wire.most_under_way <= MOST_CALLS
        wire.ask(len(pauses_ms))  # what has arrived is confirmed with it, also what a lost call was to confirm
        await wire.all_answered()
        assert not any(wire.server.has_ask("m:1", number) for number in range(len(pauses_ms)))
        await wire.server.close()

    run_in_virtual_time(hold())


@virtual_time
async def test_asks_and_replies_that_come_together_share_a_call() -> None:
    wire = LossyConnection(SlowAgent())
    for number in range(40):
        wire.ask(number)
    await wire.all_answered()
    assert wire.connection.batch_sizes[40] == 1
    assert wire.server.batch_sizes[40] == 1
    assert wire.calls == 1


@virtual_time
async def test_a_full_batch_leaves_without_waiting() -> None:
    clock = asyncio.get_running_loop().time
    wire, started = LossyConnection(SlowAgent(), spacing_s=30.0), clock()
    wire.ask(0)
    await wire.all_answered()
    for number in range(1, 1 + MOST_PER_CALL):
        wire.ask(number)
    await wire.all_answered()
    assert clock() - started < 5


@virtual_time
async def test_one_call_stays_with_the_agent_while_a_reply_is_awaited() -> None:
    wire = LossyConnection(SlowAgent(0.05))
    wire.ask(1)
    wire.ask(4)
    await asyncio.sleep(0.02)
    assert wire.under_way == 1
    await wire.all_answered()
    await asyncio.sleep(0.02)
    assert wire.under_way == 0


@virtual_time
async def test_a_cancelled_ask_is_not_answered() -> None:
    thinker = SlowAgent(0.05)
    wire = LossyConnection(thinker)
    wire.ask(3)
    await asyncio.sleep(0.02)
    wire.connection.post(CancelEnvelope(3))
    del wire.open[3]
    await asyncio.sleep(0.02)
    assert thinker.cancelled == [3]
    wire.ask(8)
    wire.connection.post(CancelEnvelope(8))
    await asyncio.sleep(0.02)
    wire.ask(8)  # the number is free again, although the task of the first one never began
    await wire.all_answered()
    await wire.server.close()


@virtual_time
async def test_more_calls_than_are_kept_go_back_at_once() -> None:
    server = AgentServer(SlowAgent().answer, spacing_s=0.0)
    calls = [asyncio.create_task(server.exchange(_batch(n))) for n in range(1, MOST_KEPT + 2)]
    await asyncio.sleep(0.01)
    assert [call.done() for call in calls] == [True, *[False] * MOST_KEPT]
    await server.close()
    assert [await call for call in calls] == [[]] * len(calls)


@virtual_time
async def test_a_restarted_moderator_gets_its_own_replies_only() -> None:
    """It has the name of the one before, and its numbers begin at 0 again."""
    thinker = SlowAgent(0.01)
    before = LossyConnection(thinker, sender="moderator-0:first")
    before.ask(3)
    await asyncio.sleep(0.005)
    after = LossyConnection(thinker, sender="moderator-0:second", server=before.server)
    after.ask(2)
    await after.all_answered()
    await asyncio.sleep(0.05)
    before.open.clear()
    assert after.got == [2]
    assert before.got == []
    await after.server.close()


@virtual_time
async def test_a_cancellation_that_overtakes_its_ask_holds() -> None:
    thinker = SlowAgent()
    server = AgentServer(thinker.answer, spacing_s=0.0)
    overtaking = asyncio.create_task(server.exchange(_batch(2, CancelEnvelope(1))))
    await asyncio.sleep(0.01)
    overtaken = asyncio.create_task(server.exchange(_batch(1, _asking(1), _asking(2))))
    assert await _reply_numbers(overtaking) == [2]
    assert thinker.paid == {2: 1}
    await server.close()
    await overtaken


@virtual_time
async def test_a_record_that_takes_no_more_rows_breaks_every_line_of_the_agent() -> None:
    """Otherwise its asks would time out, one after the other, and the run would continue."""

    paid: list[int] = []

    async def answer(ask: Ask) -> AskResult:
        paid.append(int(ask.path))
        await asyncio.sleep(0.01)
        raise ActorGone("the writer did not come back")

    server = AgentServer(answer, spacing_s=0.0)
    one, other = (
        LossyConnection(SlowAgent(), sender="m:1", server=server),
        LossyConnection(SlowAgent(), sender="n:1", server=server),
    )
    other.connection.post(CancelEnvelope(7))
    await _until(lambda: other.under_way == 1)
    one.ask(1)
    await _until(lambda: bool(one.broken_by and other.broken_by))
    one.ask(2)  # whoever asks later is told as well
    await _until(lambda: len(one.broken_by) == 2)
    assert {str(error) for error in one.broken_by + other.broken_by} == {"the writer did not come back"}
    assert paid == [1]
    await server.close()


@virtual_time
async def test_what_is_under_way_ends_when_the_record_takes_no_more_rows() -> None:
    ended: list[str] = []

    async def answer(ask: Ask) -> AskResult:
        try:
            await asyncio.sleep(0.01 if ask.path == "1" else 60.0)
        except asyncio.CancelledError:
            ended.append(ask.path)
            raise
        raise RecordError("the disk is full")

    server = AgentServer(answer, spacing_s=0.0)
    with pytest.raises(RecordError, match="the disk is full"):
        await server.exchange(_batch(1, _asking(2), _asking(1), _asking(3)))
    await _until(lambda: len(ended) == 2)
    assert sorted(ended) == ["2", "3"]
    await server.close()


async def _until(told: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not told():  # noqa: ASYNC110 - a condition of a test
            await asyncio.sleep(0.001)


@virtual_time
async def test_an_error_in_the_agent_is_reported_to_the_caller() -> None:
    async def answer(ask: Ask) -> AskResult:
        raise KeyError("a slot")

    server = AgentServer(answer, spacing_s=0.0)
    [reply] = decode_replies(encode(await server.exchange(_batch(1, _asking(1)))))
    assert (reply.number, reply.answered, reply.raised) == (1, None, "KeyError: 'a slot'")
    await server.close()


async def _reply_numbers(call: asyncio.Task[list[ReplyEnvelope]]) -> list[int]:
    return [reply.number for reply in await call]


@virtual_time
async def test_a_parcel_that_is_overtaken_or_comes_twice_is_not_paid_again() -> None:
    """Ask 1 is in two parcels; the reply to the one is confirmed before the other comes."""
    thinker = SlowAgent()
    server = AgentServer(thinker.answer, spacing_s=0.0)
    first = asyncio.create_task(server.exchange(_batch(1, _asking(1))))
    assert await _reply_numbers(first) == [1]
    confirming = asyncio.create_task(server.exchange(_batch(3, got=[1])))
    await asyncio.sleep(0.01)
    assert await server.exchange(_batch(1, _asking(1))) == []
    overtaken = asyncio.create_task(server.exchange(_batch(2, _asking(1))))
    assert await _reply_numbers(confirming) == [1]
    late = asyncio.create_task(server.exchange(_batch(1, below=1)))
    await asyncio.sleep(0.01)
    assert await overtaken == []
    assert await server.exchange(_batch(9, _asking(1))) == []
    assert thinker.paid == {1: 1}
    assert not server.has_ask("m:1", 1)
    await server.close()
    await late


@virtual_time
async def test_an_overtaking_parcel_that_comes_twice_is_taken_once() -> None:
    """What it asks for was cancelled in between."""
    thinker = SlowAgent(think_s=10.0)
    server = AgentServer(thinker.answer, spacing_s=0.0)
    overtaking = _batch(2, _asking(1))
    calls = []
    for batch in (overtaking, _batch(3, CancelEnvelope(1)), overtaking):
        calls.append(asyncio.create_task(server.exchange(batch)))
        await asyncio.sleep(0.01)
    assert calls[-1].done()
    assert calls[-1].result() == []
    assert (thinker.paid, thinker.cancelled) == ({1: 1}, [1])
    await server.close()
    await asyncio.gather(*calls)
