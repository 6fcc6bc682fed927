"""A run's real actor classes in one process without Ray, over a transport that loses, duplicates, delays and
reorders."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from moot.actors.agent.roles import Roles
from moot.actors.debate.context_factory import needs_limiter, services
from moot.actors.debate.engine import ModeratorHandle, WriterPool
from moot.actors.debate.run_spec import RunSpec
from moot.actors.remote import peers
from moot.actors.remote.metrics_actor import MetricsActor
from moot.actors.remote.peers import PeerLost
from moot.actors.remote.run_actor import ActorDirectory, AgentActor, LimiterActor, ModeratorActor
from moot.actors.remote.runtime import RayModeratorHandle
from moot.actors.remote.writer_pool import RayWriterPool
from moot.actors.telemetry.meter import SILENT
from moot.protocols.base import DebateProtocol

LOST_THERE, LOST_BACK, TWICE, LATE_AGAIN = 0.06, 0.06, 0.06, 0.06
LONGEST_DELAY_S = 0.03
WATCH_BREAKS_WITHIN_S = 0.6


class FaultyTransport:
    """Transport of calls to actors of this process, with injected faults.

    A call may be lost before it arrives; lose its result; or be delivered a second time, at once or after later calls.
    Delays reorder concurrent messages. A watch sometimes breaks although its actor is alive.

    Args:
        seed: random seed of the faults.
        faulty: whether faults are injected.
    """

    def __init__(self, seed: int, faulty: bool = True) -> None:
        self._random = random.Random(seed)
        self.faulty = faulty
        self.actors: dict[str, Any] = {}
        self.faults: Counter[str] = Counter()
        self.ghosts: set[asyncio.Task[Any]] = set()

    async def call(self, peer: peers.Peer, method: str, *args: Any) -> Any:
        """Replacement of `Peer.call`."""
        work = getattr(self.actors[peer.name], method)
        if method == "where":
            return None
        if not self.faulty or method == "ping":
            return await work(*args)
        if method == "watch":
            await asyncio.sleep(self._random.uniform(0.0, WATCH_BREAKS_WITHIN_S))
            self.faults["watch broken"] += 1
            raise PeerLost("the connection of a watch broke", dead=False)
        fate = self._random.random()
        await self._delay()
        if fate < LOST_THERE:
            self.faults["lost there"] += 1
            raise PeerLost("lost on its way there", dead=False)
        if (fate := fate - LOST_THERE) < LOST_BACK:
            self.faults["lost back"] += 1
            self._haunt(work(*args))
            await self._delay()
            raise PeerLost("lost on its way back", dead=False)
        if (fate := fate - LOST_BACK) < TWICE:
            self.faults["twice"] += 1
            self._haunt(work(*args))
        elif fate - TWICE < LATE_AGAIN:
            self.faults["late again"] += 1
            self._haunt(self._later(work, args))
        result = await work(*args)
        await self._delay()
        return result

    async def _delay(self) -> None:
        await asyncio.sleep(self._random.choice((0.0, 0.0, self._random.uniform(0.0, LONGEST_DELAY_S))))

    async def _later(self, work: Any, args: Sequence[Any]) -> None:
        await asyncio.sleep(self._random.uniform(0.05, 0.5))
        await work(*args)

    def _haunt(self, call: Any) -> None:
        """Run a call and discard its result."""
        ghost = asyncio.ensure_future(call)
        self.ghosts.add(ghost)
        ghost.add_done_callback(self.ghosts.discard)


class FaultyRuntime:
    """Runtime in the placement `actors` over such a transport.

    Args:
        spec: the run.
        protocol: the protocol object.
        wire: the transport of all calls.
        moderators: number of moderators.
    """

    def __init__(self, spec: RunSpec, protocol: DebateProtocol, wire: FaultyTransport, moderators: int = 2) -> None:
        self._spec, self._protocol, self._wire = spec, protocol, wire
        agents = [(service, [f"role-{number}"]) for number, service in enumerate(services(Roles(spec.roles)))]
        self.directory = ActorDirectory(
            namespace="",
            writers=[f"writer-{i}" for i in range(spec.writers)],
            moderators=[f"moderator-{i}" for i in range(moderators)],
            agents=agents,
            limiter="limiter" if needs_limiter(spec) else "",
        )
        self.max_open = spec.max_open
        self.moderators: Sequence[ModeratorHandle] = ()
        self.writers: WriterPool

    async def limiter_state(self) -> None:
        """See `dispatcher.Runtime.limiter_state`."""

    async def start(self) -> None:
        """See `dispatcher.Runtime.start`."""
        spec, actors = self._spec.model_dump_json(), self._wire.actors
        if self.directory.limiter:
            actors[self.directory.limiter] = LimiterActor(spec, self.directory)
        for number, name in enumerate(self.directory.writers):
            actors[name] = MetricsActor(spec, self.directory, number)
        for service, (name,) in self.directory.agents:
            actors[name] = AgentActor(spec, self.directory, service)
        for name in self.directory.moderators:
            actors[name] = ModeratorActor(spec, self.directory, name, "actors", self._protocol)
        for actor in actors.values():
            actor._new_meter = lambda: SILENT
        await asyncio.gather(*(actor._up() for actor in actors.values()))
        self.writers = self._archive = RayWriterPool(self.directory.peers(self.directory.writers))
        self.moderators = [
            RayModeratorHandle(peer, self._archive) for peer in self.directory.peers(self.directory.moderators)
        ]

    async def stop(self, *, compact: bool = True) -> None:
        """See `dispatcher.Runtime.stop`; its own calls are without faults, and discarded calls end before the record
        closes."""
        self._wire.faulty = False
        for name in self.directory.moderators:
            await self._wire.actors[name].close()
        for _, (name,) in self.directory.agents:
            await self._wire.actors[name].close()
        while self._wire.ghosts:
            await asyncio.wait(set(self._wire.ghosts))
        await self.writers.close(compact=compact)
        await self._archive.stop_watching()
