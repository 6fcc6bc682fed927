"""Mailboxes: order, coalescing, spacing, drains and closing."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_time import run_in_virtual_time, virtual_time

from moot.actors.dispatch.mailbox import Mailbox, MailboxClosed


class BatchPeer:
    """Takes batches, each for `busy_s` seconds, and knows when each call began and ended."""

    def __init__(self, busy_s: float = 0.0) -> None:
        self.busy_s = busy_s
        self.batches: list[list[int]] = []
        self.began: list[float] = []
        self.under_way = 0
        self.most_at_once = 0
        self.delivered: list[int] = []

    async def take(self, batch: list[int]) -> None:
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        self.began.append(asyncio.get_running_loop().time())
        self.batches.append(batch)
        await asyncio.sleep(self.busy_s)
        self.delivered += batch
        self.under_way -= 1


@virtual_time
async def test_the_first_message_leaves_at_once() -> None:
    peer = BatchPeer()
    box: Mailbox[int] = Mailbox(peer.take, spacing_s=30.0)
    box.post(1)
    async with asyncio.timeout(5):
        await box.drained()
    assert peer.batches == [[1]]
    await box.close()


@virtual_time
async def test_messages_gather_while_a_call_is_under_way() -> None:
    peer = BatchPeer(busy_s=0.1)
    box: Mailbox[int] = Mailbox(peer.take, spacing_s=0.0)
    box.post(0)
    while not peer.under_way:  # noqa: ASYNC110 - a call that begins
        await asyncio.sleep(0)
    for i in range(1, 6):
        box.post(i)
        await asyncio.sleep(0)
    await box.drained()
    assert peer.batches == [[0], [1, 2, 3, 4, 5]]
    assert peer.most_at_once == 1
    await box.close()


@virtual_time
async def test_a_cancelled_drain_leaves_the_others_alone() -> None:
    peer = BatchPeer(busy_s=0.03)
    box: Mailbox[int] = Mailbox(peer.take, spacing_s=0.0)
    box.post(1)
    first, second = asyncio.ensure_future(box.drained()), asyncio.ensure_future(box.drained())
    await asyncio.sleep(0)
    first.cancel()
    async with asyncio.timeout(5):
        await second
    assert peer.delivered == [1]
    await box.close()


@virtual_time
async def test_closing_drops_what_waits() -> None:
    peer = BatchPeer(busy_s=0.05)
    box: Mailbox[int] = Mailbox(peer.take, spacing_s=0.0, most=1)
    for i in range(5):
        box.post(i)
    while not peer.under_way:  # noqa: ASYNC110 - a call that begins
        await asyncio.sleep(0)
    waiting = asyncio.ensure_future(box.drained())
    await asyncio.sleep(0)
    await box.close()
    await asyncio.sleep(0.12)
    assert peer.batches == [[0]]
    assert peer.delivered == []
    async with asyncio.timeout(5):
        with pytest.raises(MailboxClosed):
            await waiting
    with pytest.raises(MailboxClosed):
        box.post(5)


Pause = st.sampled_from([-1.0, -1.0, 0.0, 0.0, 0.001, 0.003])


@given(
    pauses=st.lists(Pause, min_size=1, max_size=40),
    busy_s=st.sampled_from([0.0, 0.001, 0.004]),
    spacing_s=st.sampled_from([0.0, 0.002, 0.005]),
    most=st.integers(1, 8),
    drains=st.sets(st.integers(0, 39)),
)
def test_any_schedule_is_delivered_once_and_in_order(
    pauses: list[float], busy_s: float, spacing_s: float, most: int, drains: set[int]
) -> None:
    """After each pause (negative: none at all) one message is posted; some posts are followed by a drain."""

    async def run() -> None:
        peer = BatchPeer(busy_s)
        box: Mailbox[int] = Mailbox(peer.take, spacing_s=spacing_s, most=most)
        for i, pause in enumerate(pauses):
            if pause >= 0:
                await asyncio.sleep(pause)
            box.post(i)
            if i in drains:
                await box.drained()
                assert peer.delivered == list(range(i + 1))
        async with asyncio.timeout(10):
            await box.drained()
        assert peer.delivered == list(range(len(pauses)))
        assert peer.most_at_once == 1
        assert max(map(len, peer.batches)) <= most
        assert min(map(len, peer.batches)) >= 1
        assert sum(size * times for size, times in box.batch_sizes.items()) == len(pauses)
        starts = itertools.pairwise(peer.began)
        for (earlier, later), batch in zip(starts, peer.batches[1:], strict=True):
            assert len(batch) == most or later - earlier >= spacing_s - 1e-9  # only a full batch need not wait
        await box.close()

    run_in_virtual_time(run())
