"""Ray engine: joins a cluster or starts a small local one, places the actors, and takes them down."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal
from uuid import uuid4

import msgspec
import ray
import structlog

from moot.actors.agent.roles import Roles
from moot.actors.debate.context_factory import Service, needs_limiter, services
from moot.actors.debate.engine import ModeratorHandle, ModeratorLost, WriterPool
from moot.actors.debate.moderator import Assignment, ModeratorReport
from moot.actors.debate.run_spec import Placement, RunSpec
from moot.actors.limits.envelopes import LimiterState
from moot.actors.models.off_loop import to_thread_shielded
from moot.actors.models.resolve import ModelSpec
from moot.actors.record.schema import CaseKey
from moot.actors.remote.metrics_actor import MetricsActor
from moot.actors.remote.peers import CrashLoopGuard, Peer, PeerLost
from moot.actors.remote.ray_session import RaySession
from moot.actors.remote.reliable_channel import OutcomeBatch, ReliableChannelClient
from moot.actors.remote.run_actor import ActorDirectory, AgentActor, LimiterActor, ModeratorActor
from moot.actors.remote.scheduling import ActorScheduler
from moot.actors.remote.watchdog import run_watchdog
from moot.actors.remote.writer_pool import RayWriterPool
from moot.protocols.base import DebateProtocol
from moot.protocols.errors import MootError


def weight_owners(roles: Roles) -> set[Service]:
    """Services whose actors load the weights of their model."""
    bindings = services(roles).items()
    return {service for service, binding in bindings if ModelSpec.parse(binding.model).kind == "local"}


def gpu_share(gpus: float, processes: int) -> float:
    """GPU share of each process: a whole GPU, or the fraction with which all of them can be placed.

    >>> gpu_share(4, 2), gpu_share(1, 2), gpu_share(2, 3), gpu_share(0, 2)
    (1.0, 0.5, 0.5, 0.0)
    """
    whole = math.floor(gpus)
    if not (whole and processes):
        return 0.0
    # Rounded down to Ray's resolution: three thirds must not exceed one.
    return math.floor(1e4 / math.ceil(processes / whole)) / 1e4


_log = structlog.get_logger(__name__)
_CLOSE_WITHIN_S, _LEAVE_WITHIN_S = 60.0, 30.0
"""Seconds for closing the run, and for the actors that still have rows for the record."""

_DRAINED_LATE_S = 15.0
"""Extra seconds for a moderator's drain: it cancels its debates and sends its last rows."""


class RayModeratorHandle:
    """Handle of a moderator actor for the dispatcher.

    Args:
        peer: the actor.
        writers: tell whether the debates of a lost moderator have made progress.
    """

    def __init__(self, peer: Peer, writers: RayWriterPool) -> None:
        self._peer, self._writers, self._channel = peer, writers, ReliableChannelClient()
        self._crash_guard = CrashLoopGuard(peer.name)
        self._open: set[CaseKey] = set()
        self._so_far = (0, 0)

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        """See `ModeratorHandle.exchange`.

        Raises:
            ActorGone: the moderator did not come back, or dies of its assignments.
            RecordError: a lost writer can no longer receive the open cases again.
        """
        self._writers.raise_if_broken()
        self._open |= {(each.case.id, each.attempt) for each in assignments}
        try:
            batch = msgspec.msgpack.encode(self._channel.next_batch(assignments))
            raw = await self._peer.call("exchange", batch, wait)
        except PeerLost as lost:
            await self._peer.wait_until_back()
            await self._count(lost)
            raise ModeratorLost(self._peer.name) from lost
        report = self._channel.accept(msgspec.msgpack.decode(raw, type=OutcomeBatch))
        if report.done:
            self._open -= {(outcome.case_id, outcome.attempt) for outcome in report.done}
            self._crash_guard.progressed()
        return report

    async def _count(self, lost: PeerLost) -> None:
        before, self._so_far = self._so_far, await self._writers.so_far(self._open)
        if not self._open or any(now > then for now, then in zip(self._so_far, before, strict=True)):
            self._crash_guard.progressed()
        self._crash_guard.record_death(await self._peer.incarnation(), lost.why)

    async def cancel(self, keys: Sequence[CaseKey]) -> None:
        """See `ModeratorHandle.cancel`; a lost moderator has none of them open any more."""
        self._open -= set(keys)
        with suppress(PeerLost):
            await self._peer.call("cancel", list(keys))

    async def drain(self, seconds: float) -> None:
        """See `ModeratorHandle.drain`. A hanging moderator is not waited for: it dies with the run."""
        try:
            async with asyncio.timeout(seconds + _DRAINED_LATE_S):
                await self._peer.call("drain", seconds)
        except TimeoutError:
            _log.warning(
                "a moderator does not drain; its debates resume from the journal another time", actor=self._peer.name
            )


class RayRuntime:
    """Ray runtime: moderators, agents, judges and writers as Ray actors.

    Args:
        spec: the run.
        protocol: the protocol, an instance; Ray pickles it for the moderators.
        placement: `actors` gives agents and judges processes of their own; `packed` puts them into the moderators.
        address: the cluster to join, unless this process has already joined one; None: see `cluster_address`.
    """

    def __init__(
        self,
        spec: RunSpec,
        protocol: DebateProtocol,
        *,
        placement: Placement = "actors",
        address: str | None = None,
    ) -> None:
        self._spec, self._protocol = spec, protocol
        self._placement: Literal["actors", "packed"] = placement
        self._ray_session = RaySession(address)
        self._weight_owners = weight_owners(Roles(spec.roles))
        self._placer: ActorScheduler | None = None
        self.moderators: Sequence[ModeratorHandle] = ()
        self.max_open = spec.max_open
        self.writers: WriterPool
        self._writers: RayWriterPool | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """See `Runtime.start`."""
        await to_thread_shielded(self._ray_session.connect)
        self.directory = self._build_directory()
        placer = self._placer = ActorScheduler(
            self._spec.cluster, self._ray_session.site, self.directory.namespace, can_grow=self._ray_session.can_grow
        )
        await to_thread_shielded(partial(self._create, placer.place))
        await placer.placed()
        everybody = [*self.directory.writers, *self.directory.moderators]
        everybody += [name for _, names in self.directory.agents for name in names]
        all_of_them = [*everybody, *filter(None, [self.directory.limiter])]
        self._listening = asyncio.create_task(run_watchdog(self.directory.peers(all_of_them)))
        await asyncio.gather(*(peer.first_call() for peer in self.directory.peers(everybody)))
        self.writers = self._writers = RayWriterPool(self.directory.peers(self.directory.writers))
        self.moderators = [
            RayModeratorHandle(peer, self._writers) for peer in self.directory.peers(self.directory.moderators)
        ]

    def _build_directory(self) -> ActorDirectory:
        run = uuid4().hex[:8]
        cluster_settings, packed = self._spec.cluster, self._placement == "packed"
        moderators, processes = cluster_settings.counts(
            self._ray_session.site, packed=packed, max_open=self._spec.max_open
        )
        agents: list[tuple[Service, list[str]]] = []
        for number, service in enumerate(() if packed else services(Roles(self._spec.roles))):
            # Weights are loaded once, unless the user has set the number of processes.
            several = 1 if service in self._weight_owners and cluster_settings.agent_processes is None else processes
            # A role may have the name of an actor of the runtime, such as `moderator`.
            agents.append((service, [f"moot-{run}-role-{service[0]}-{number}-{i}" for i in range(several)]))
        return ActorDirectory(
            namespace=ray.get_runtime_context().namespace,
            writers=[f"moot-{run}-writer-{i}" for i in range(self._spec.writers)],
            moderators=[f"moot-{run}-moderator-{i}" for i in range(moderators)],
            agents=agents,
            limiter=f"moot-{run}-limiter" if needs_limiter(self._spec) else "",
        )

    def _create(self, place: Callable[..., None]) -> None:
        spec, directory = self._spec.model_dump_json(), self.directory
        # An answer key can be large, and Ray cannot restart an actor whose large arguments are lost.
        keyless = self._spec.model_copy(update={"key": None}).model_dump_json()
        if directory.limiter:
            place(LimiterActor, "limiter", directory.limiter, keyless, directory)
        gpus = self._gpus_by_process()
        for number, name in enumerate(directory.writers):
            place(MetricsActor, "writer", name, keyless, directory, number)
        for service, names in directory.agents:
            share = gpus if service in self._weight_owners else 0.0
            for name in names:
                place(AgentActor, "agent", name, spec, directory, service, gpus=share)
        for name in directory.moderators:
            share, its = (gpus, spec) if self._placement == "packed" else (0.0, keyless)
            place(ModeratorActor, "moderator", name, its, directory, name, self._placement, self._protocol, gpus=share)

    def _gpus_by_process(self) -> float:
        """GPU share of each process that loads weights."""
        if not self._weight_owners:
            return 0.0
        if self._placement == "packed":
            processes = len(self.directory.moderators)
        else:
            processes = sum(len(names) for service, names in self.directory.agents if service in self._weight_owners)
        return gpu_share(ray.cluster_resources().get("GPU", 0.0), processes)

    async def limiter_state(self) -> LimiterState | None:
        """See `Runtime.limiter_state`."""
        if not self.directory.limiter:
            return None
        (limiter,) = self.directory.peers([self.directory.limiter])
        with suppress(PeerLost):
            state: LimiterState = msgspec.msgpack.decode(await limiter.call("state"), type=LimiterState)
            return state
        return None

    async def stop(self, *, compact: bool = True) -> None:
        """See `Runtime.stop`."""
        try:
            async with asyncio.timeout(_CLOSE_WITHIN_S):
                if self._writers is not None:
                    await self._close_all(compact)
        except (TimeoutError, PeerLost, MootError) as error:
            why = str(error) or f"not closed within {_CLOSE_WITHIN_S:g} s: a writer hangs"
            _log.error("the run could not be closed in order; what its journal holds counts", error=why)
        finally:
            if self._writers is not None:
                await self._writers.stop_watching()
            if self._listening is not None:
                self._listening.cancel()
                await asyncio.gather(self._listening, return_exceptions=True)
            await to_thread_shielded(self._take_down)

    async def _close_all(self, compact: bool) -> None:
        first = [*self.directory.moderators, *(name for _, names in self.directory.agents for name in names)]
        with suppress(TimeoutError):  # the record is closed even if one of them hangs
            async with asyncio.timeout(_LEAVE_WITHIN_S):
                await asyncio.gather(
                    *(peer.call("close") for peer in self.directory.peers(first)), return_exceptions=True
                )
        await self.writers.close(compact=compact)

    def _take_down(self) -> None:
        try:
            if self._placer is not None:
                self._placer.take_down()
        finally:
            self._ray_session.disconnect()
