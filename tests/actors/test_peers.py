"""Watching and waiting for an actor, with calls that fail as Ray's do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from moot.actors.record.progress import Progress
from moot.actors.remote import peers
from moot.actors.remote.peers import Peer, PeerLost
from moot.actors.remote.runtime import RayArchive
from moot.protocols.errors import ActorGone
from moot.protocols.messages import Event


class Mortal(Peer):
    """An actor that can be killed, and is back at once."""

    def __init__(self) -> None:
        super().__init__("mortal", "here")
        self._alive = asyncio.Event()
        self.dead: bool | None = None
        self.unfit = False

    def kill(self) -> None:
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


async def test_an_actor_that_dies_again_while_its_loss_is_seen_to_is_seen_to_again() -> None:
    peer, losses, slow = Mortal(), [0], asyncio.Event()

    async def lost() -> None:
        losses[0] += 1
        await slow.wait()

    watching = asyncio.create_task(peer.watch(lost))
    await asyncio.sleep(0.01)
    peer.kill()
    await _until(lambda: losses == [1])
    peer.kill()
    slow.set()
    await _until(lambda: losses == [2])
    watching.cancel()
    assert losses == [2]


async def test_an_actor_that_ray_calls_dead_is_given_up_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_DEAD_FOR_S", 0.2)
    peer = Mortal()
    peer.dead = True
    with pytest.raises(ActorGone, match="the same command goes on"):
        async with asyncio.timeout(5):
            await peer.back()


async def test_an_actor_that_is_only_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_DEAD_FOR_S", 0.1)
    peer = Mortal()
    peer.dead = False
    waiting = asyncio.create_task(peer.back())
    await asyncio.sleep(0.4)
    assert not waiting.done()
    peer.dead = None
    async with asyncio.timeout(5):
        await waiting


async def test_an_actor_that_is_lost_while_it_starts_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Mortal()
    peer.dead = False
    starting = asyncio.create_task(peer.first_call())
    await asyncio.sleep(0.15)
    assert not starting.done()
    peer.dead = None
    async with asyncio.timeout(5):
        await starting


async def test_an_actor_that_dies_each_time_it_sets_itself_up_is_given_up() -> None:
    class Overfull(Mortal):
        async def call(self, method: str, *args: Any) -> Any:
            if method == "ping":
                raise PeerLost("killed: out of memory", dead=False)

    with pytest.raises(ActorGone, match="could not be started: killed: out of memory"):
        await Overfull().first_call()
    with pytest.raises(ActorGone, match="did not come back"):
        await Overfull().back()


@pytest.mark.parametrize("unfit", [True, False], ids=["raises when it is made", "is dead and stays so"])
async def test_an_actor_that_cannot_be_set_up_says_why(unfit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_DEAD_FOR_S", 60.0 if unfit else 0.2)
    peer = Mortal()
    peer.dead, peer.unfit = True, unfit
    with pytest.raises(ActorGone, match="mortal could not be started: gone"):
        await peer.first_call()


async def test_an_answer_of_an_earlier_life_of_a_writer_moves_no_cursor() -> None:
    """A writer is lost while it is asked for events: the next life's are told from the first one on."""
    asked, lost = asyncio.Event(), asyncio.Event()

    class Writer(Peer):
        """Has a life of 500 events, then one of 3."""

        def __init__(self) -> None:
            super().__init__("writer", "here")
            self.life = 0

        async def call(self, method: str, *args: Any) -> Any:
            if method != "events_since":
                return None
            if self.life == 0:
                asked.set()
                await lost.wait()
                return msgspec.msgpack.encode((500, []))
            progress = Progress()
            for number in range(3):
                progress.event("q", 0, Event("asked", f"{number}", {}), 0.0)
            return msgspec.msgpack.encode(progress.events_since(args[0]))

        async def watch(self, lost: Callable[[], Any]) -> None:
            await asyncio.Event().wait()

    writer = Writer()
    archive = RayArchive([writer])
    looking = asyncio.create_task(archive.events())
    await asked.wait()
    writer.life = 1
    await archive._lost(0)
    lost.set()
    assert await looking == []
    assert [event.path for event in await archive.events()] == ["0", "1", "2"]
    await archive.unwatch()
