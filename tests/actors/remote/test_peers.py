"""Watching and waiting for an actor, with calls that fail as Ray's do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from virtual_time import virtual_time

from moot.actors.record.progress import StreamedEvent
from moot.actors.remote import peers
from moot.actors.remote.peers import Incarnation, Peer, PeerLost, loss_reason
from moot.actors.remote.writer_pool import RayWriterPool
from moot.protocols.errors import ActorGone


class RestartablePeer(Peer):
    """An actor that can be killed, and is back at once."""

    def __init__(self) -> None:
        super().__init__("mortal", "here")
        self._alive = asyncio.Event()
        self.dead: bool | None = None
        self.unfit = False

    def die(self) -> None:
        self._alive.set()
        self._alive = asyncio.Event()

    async def call(self, method: str, *args: Any) -> Any:
        if self.dead is not None:
            raise PeerLost("gone", self.dead, self.unfit)
        if method == "watch":
            await self._alive.wait()
            raise PeerLost("it died", dead=True)
        return None


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110 - a condition of a test
            await asyncio.sleep(0.001)


@virtual_time
async def test_an_actor_that_dies_again_while_its_loss_is_seen_to_is_seen_to_again() -> None:
    peer, losses, slow = RestartablePeer(), [0], asyncio.Event()

    async def lost() -> None:
        losses[0] += 1
        await slow.wait()

    watching = asyncio.create_task(peer.watch(lost))
    await asyncio.sleep(0.01)
    peer.die()
    await _until(lambda: losses == [1])
    peer.die()
    slow.set()
    await _until(lambda: losses == [2])
    watching.cancel()
    assert losses == [2]


@virtual_time
async def test_an_actor_that_ray_calls_dead_is_given_up_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_DEAD_FOR_S", 0.2)
    peer = RestartablePeer()
    peer.dead = True
    with pytest.raises(ActorGone, match="run the same command again to resume"):
        async with asyncio.timeout(5):
            await peer.wait_until_back()


@virtual_time
async def test_an_actor_that_is_only_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_DEAD_FOR_S", 0.1)
    peer = RestartablePeer()
    peer.dead = False
    waiting = asyncio.create_task(peer.wait_until_back())
    await asyncio.sleep(0.4)
    assert not waiting.done()
    peer.dead = None
    async with asyncio.timeout(5):
        await waiting


@virtual_time
async def test_an_actor_that_dies_each_time_it_sets_itself_up_is_given_up() -> None:
    class Overfull(RestartablePeer):
        async def call(self, method: str, *args: Any) -> Any:
            if method == "ping":
                raise PeerLost("killed: out of memory", dead=False)

    with pytest.raises(ActorGone, match=r"started: .*out of memory"):
        await Overfull().first_call()
    with pytest.raises(ActorGone, match="did not come back"):
        await Overfull().wait_until_back()


@pytest.mark.parametrize("unfit", [True, False], ids=["raises when it is made", "is dead and stays so"])
@virtual_time
async def test_an_actor_that_cannot_be_set_up_says_why(unfit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_DEAD_FOR_S", 60.0 if unfit else 0.2)
    peer = RestartablePeer()
    peer.dead, peer.unfit = True, unfit
    with pytest.raises(ActorGone, match=r"mortal .*gone"):
        await peer.first_call()


class RestartedWriterPeer(Peer):
    """Has noted 500 events in one life and 3 in the next; an answer may be on its way for long."""

    def __init__(self) -> None:
        super().__init__("writer", "here")
        self.number, self.asked, self.may_answer = 0, asyncio.Event(), asyncio.Event()
        self.may_answer.set()
        self.lost = False

    async def call(self, method: str, *args: Any) -> Any:
        if method != "events_since":
            return None
        if self.lost:
            self.lost = False
            raise PeerLost("the connection broke", dead=False)
        incarnation, cursor = args
        noted, mine = (500 if self.number == 0 else 3), f"life {self.number}"
        first = cursor if incarnation == mine else 0
        raw = msgspec.msgpack.encode(
            (mine, noted, [StreamedEvent("q", 0, "asked", "", {}, n) for n in range(first, noted)])
        )
        self.asked.set()
        await self.may_answer.wait()
        return raw

    async def watch(self, lost: Callable[[], Any]) -> None:
        await asyncio.Event().wait()


@virtual_time
async def test_the_events_of_a_writer_that_was_only_unreachable_are_delivered_once() -> None:
    writer = RestartedWriterPeer()
    writers = RayWriterPool([writer])
    assert len(await writers.events()) == 500
    await writers._lost(0)
    assert await writers.events() == []
    await writers.stop_watching()


@virtual_time
async def test_no_events_are_reported_only_when_every_writer_has_none() -> None:
    """Else a debate's stream would end before its last events have come."""
    writer = RestartedWriterPeer()
    writer.lost = True
    writers = RayWriterPool([writer])
    assert len(await writers.events()) == 500
    await writers.stop_watching()


@virtual_time
async def test_a_writers_next_incarnation_is_streamed_from_its_first_event_on() -> None:
    """It was lost while it was asked."""
    writer = RestartedWriterPeer()
    writers = RayWriterPool([writer])
    writer.may_answer.clear()
    looking = asyncio.create_task(writers.events())
    await writer.asked.wait()
    writer.number = 1
    await writers._lost(0)
    writer.may_answer.set()
    assert len(await looking) == 500
    assert [event.at for event in await writers.events()] == [0, 1, 2]
    await writers.stop_watching()


async def test_losses_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.nodes", lambda: [{"NodeID": "there", "Alive": True}, {"NodeID": "gone", "Alive": False}])
    before, after = Incarnation("there", "a", 1), Incarnation("there", "b", 2)
    assert await loss_reason(before, before) == "it was out of reach and has not died"
    assert await loss_reason(before, after) == "its process died"
    assert await loss_reason(Incarnation("gone", "a", 1), after) == "its node died"
