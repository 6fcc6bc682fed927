"""The Ray engine: joins a cluster or starts a small local one, places the actors, and takes them down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, reduce
from typing import Literal
from uuid import uuid4

import msgspec
import ray
import structlog

from moot.actors.arena import Archive, CaseKey, Seat, SeatLost
from moot.actors.household import Service, needs_limiter, services
from moot.actors.moderator import Assignment, Report
from moot.actors.record.closing import Ended, writer_of
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.signals import Signals
from moot.actors.record.signals_wire import decode_signals
from moot.actors.remote.agent_actor import AgentActor
from moot.actors.remote.gpus import gpu_share, weight_owners
from moot.actors.remote.handover import Counter, Returned
from moot.actors.remote.joining import Membership
from moot.actors.remote.limiter_actor import LimiterActor
from moot.actors.remote.mailbox import Mailbox
from moot.actors.remote.moderator_actor import ModeratorActor
from moot.actors.remote.peers import Peer, PeerLost
from moot.actors.remote.placing import Placer
from moot.actors.remote.roster import Roster
from moot.actors.remote.writer_actor import WriterActor
from moot.actors.roles import Roles
from moot.actors.spec import Placement, RunSpec
from moot.protocols.case import LabelledCase
from moot.protocols.errors import MootError
from moot.protocols.floor import DebateProtocol

_log = structlog.get_logger(__name__)
_CLOSE_WITHIN_S = 60.0
_FORGET_EACH_S = 1.0


class RaySeat:
    """A moderator actor as the arena sees it."""

    def __init__(self, peer: Peer) -> None:
        self._peer, self._counter = peer, Counter()

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> Report:
        """See `arena.Seat.exchange`."""
        try:
            handover = msgspec.msgpack.encode(self._counter.handover(assignments))
            raw = await self._peer.call("exchange", handover, wait)
        except PeerLost as error:
            await self._peer.back()
            raise SeatLost(self._peer.name) from error
        return self._counter.report(msgspec.msgpack.decode(raw, type=Returned))

    async def withdraw(self, keys: Sequence[CaseKey]) -> None:
        """See `arena.Seat.withdraw`; a moderator that is lost has none of them open any more."""
        with suppress(PeerLost):
            await self._peer.call("withdraw", list(keys))

    async def drain(self, seconds: float) -> None:
        """See `arena.Seat.drain`."""
        await self._peer.call("drain", seconds)


class RayArchive:
    """The writer actors as the arena sees them; a writer that was lost is told again which cases are open."""

    def __init__(self, writers: Sequence[Peer]) -> None:
        self._writers = list(writers)
        self._open: dict[str, LabelledCase] = {}
        self._cursors = [0] * len(self._writers)
        self._lives = [0] * len(self._writers)
        self._last = [Counts() for _ in self._writers]
        self._signals = [Signals() for _ in self._writers]
        self._told = 0
        self._forgotten = [
            Mailbox[tuple[int, str]](partial(self._forget, number), spacing_s=_FORGET_EACH_S)
            for number in range(len(self._writers))
        ]
        self._watches = [
            asyncio.create_task(writer.watch(partial(self._lost, number)))
            for number, writer in enumerate(self._writers)
        ]

    async def register(self, cases: Sequence[LabelledCase]) -> None:
        """See `arena.Archive.register`."""
        self._open |= {labelled.case.id: labelled for labelled in cases}
        for number in range(len(self._writers)):
            if mine := self._of(number, cases):
                await self._tell("register", number, mine)

    def _of(self, number: int, cases: Sequence[LabelledCase]) -> list[LabelledCase]:
        return [labelled for labelled in cases if writer_of(labelled.case.id, len(self._writers)) == number]

    async def _tell(self, method: str, number: int, cases: Sequence[LabelledCase]) -> None:
        self._told += 1
        await self._writers[number].call_until_done(method, msgspec.msgpack.encode(cases), self._told)

    async def _lost(self, number: int) -> None:
        self._cursors[number] = 0
        self._lives[number] += 1
        await self._tell("reopen", number, self._of(number, list(self._open.values())))

    def forget(self, case_ids: Sequence[str]) -> None:
        """See `arena.Archive.forget`."""
        for case_id in case_ids:
            self._open.pop(case_id, None)
            self._forgotten[writer_of(case_id, len(self._writers))].post((self._told, case_id))

    async def _forget(self, number: int, batch: list[tuple[int, str]]) -> None:
        with suppress(PeerLost):  # its next life is told of the open ones alone
            await self._writers[number].call("forget", batch)

    async def counts(self) -> Counts:
        """See `arena.Archive.counts`; while a writer restarts, its last totals."""
        for i, writer in enumerate(self._writers):
            try:
                self._last[i] = msgspec.msgpack.decode(await writer.call("counts"), type=Counts)
            except PeerLost:
                continue
        total = Counts()
        for counts in self._last:
            total = total.merge(counts)
        return total

    async def events(self) -> list[StreamedEvent]:
        """See `arena.Archive.events`."""
        found: list[StreamedEvent] = []
        for i, writer in enumerate(self._writers):
            try:
                life = self._lives[i]
                raw = await writer.call("events_since", self._cursors[i])
            except PeerLost:
                continue
            if life != self._lives[i]:
                continue  # an earlier life's answer: the new one counts from the beginning
            self._cursors[i], events = msgspec.msgpack.decode(raw, type=tuple[int, list[StreamedEvent]])
            found += events
        return found

    async def endings(self, case_ids: Sequence[str]) -> dict[str, Ended]:
        """See `arena.Archive.endings`."""
        found: dict[str, Ended] = {}
        for number, writer in enumerate(self._writers):
            mine = [case_id for case_id in case_ids if writer_of(case_id, len(self._writers)) == number]
            if mine:
                raw = await writer.call_until_done("endings", mine)
                found |= msgspec.msgpack.decode(raw, type=dict[str, Ended])
        return found

    async def signals(self) -> Signals:
        """See `arena.Archive.signals`; while a writer restarts, its last ones."""
        for i, writer in enumerate(self._writers):
            try:
                raw = await writer.call("signals", self._signals[i].replies)
            except PeerLost:
                continue
            if raw:
                self._signals[i] = await asyncio.to_thread(decode_signals, raw)
        return await asyncio.to_thread(_merged, self._signals)

    async def close(self, *, compact: bool) -> None:
        """See `arena.Archive.close`."""
        await asyncio.gather(*(writer.call_until_done("close", compact) for writer in self._writers))

    async def unwatch(self) -> None:
        """Watch the writers no longer: before they are taken down, for a call to Ray afterwards would start it anew."""
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await asyncio.gather(*(box.close() for box in self._forgotten))


class RayRuntime:
    """Moderators, agents, judges and writers as Ray actors.

    Args:
        spec: the run.
        protocol: the protocol, already made; Ray carries it to the moderators.
        placement: `actors` gives agents and judges processes of their own; `packed` puts them into the moderators.
        address: the cluster to join, unless this process has joined one already; None: see `cluster_address`.
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
        self._membership = Membership(address)
        self._weight_owners = weight_owners(Roles(spec.roles))
        self._placer: Placer | None = None
        self.seats: Sequence[Seat] = ()
        self.max_open = spec.max_open
        self.archive: Archive
        self._archive: RayArchive | None = None

    async def start(self) -> None:
        """See `arena.Runtime.start`."""
        await _to_the_end(self._membership.join)
        self.roster = self._name_everybody()
        placer = self._placer = Placer(
            self._spec.cluster, self._membership.site, self.roster.namespace, can_grow=self._membership.can_grow
        )
        await _to_the_end(partial(self._create, placer.place))
        await placer.placed()
        everybody = [*self.roster.writers, *self.roster.moderators]
        everybody += [name for _, names in self.roster.agents for name in names]
        await asyncio.gather(*(peer.first_call() for peer in self.roster.peers(everybody)))
        self.archive = self._archive = RayArchive(self.roster.peers(self.roster.writers))
        self.seats = [RaySeat(peer) for peer in self.roster.peers(self.roster.moderators)]

    def _name_everybody(self) -> Roster:
        run = uuid4().hex[:8]
        placing, packed = self._spec.cluster, self._placement == "packed"
        moderators, processes = placing.counts(self._membership.site, packed=packed, max_open=self._spec.max_open)
        agents: list[tuple[Service, list[str]]] = []
        for number, service in enumerate(() if packed else services(Roles(self._spec.roles))):
            # Weights are loaded once, unless somebody has counted the GPUs.
            several = 1 if service in self._weight_owners and placing.agent_processes is None else processes
            # A role may be called like an actor of the runtime: `moderator`, for one.
            agents.append((service, [f"moot-{run}-role-{service[0]}-{number}-{i}" for i in range(several)]))
        return Roster(
            namespace=ray.get_runtime_context().namespace,
            writers=[f"moot-{run}-writer-{i}" for i in range(self._spec.writers)],
            moderators=[f"moot-{run}-moderator-{i}" for i in range(moderators)],
            agents=agents,
            limiter=f"moot-{run}-limiter" if needs_limiter(self._spec) else "",
        )

    def _create(self, place: Callable[..., None]) -> None:
        spec, roster = self._spec.model_dump_json(), self.roster
        # An answer key can be large, and Ray cannot restart an actor whose large arguments have been lost.
        keyless = self._spec.model_copy(update={"key": None}).model_dump_json()
        if roster.limiter:
            place(LimiterActor, "limiter", roster.limiter, keyless, roster)
        gpus = self._gpus_by_process()
        for number, name in enumerate(roster.writers):
            place(WriterActor, "writer", name, keyless, roster, number)
        for service, names in roster.agents:
            share = gpus if service in self._weight_owners else 0.0
            for name in names:
                place(AgentActor, "agent", name, spec, roster, service, gpus=share)
        for name in roster.moderators:
            share, its = (gpus, spec) if self._placement == "packed" else (0.0, keyless)
            place(ModeratorActor, "moderator", name, its, roster, name, self._placement, self._protocol, gpus=share)

    def _gpus_by_process(self) -> float:
        """What each process with weights of its own asks for, of the GPUs that the cluster has."""
        if not self._weight_owners:
            return 0.0
        if self._placement == "packed":
            processes = len(self.roster.moderators)
        else:
            processes = sum(len(names) for service, names in self.roster.agents if service in self._weight_owners)
        return gpu_share(ray.cluster_resources().get("GPU", 0.0), processes)

    async def stop(self, *, compact: bool = True) -> None:
        """See `arena.Runtime.stop`."""
        try:
            async with asyncio.timeout(_CLOSE_WITHIN_S):
                if self._archive is not None:
                    await self._close_all(compact)
        except (TimeoutError, PeerLost, MootError) as error:
            _log.error("the run could not be closed in order; what its journal holds counts", error=str(error))
        finally:
            if self._archive is not None:
                await self._archive.unwatch()
            await _to_the_end(self._take_down)

    async def _close_all(self, compact: bool) -> None:
        first = [*self.roster.moderators, *(name for _, names in self.roster.agents for name in names)]
        await asyncio.gather(*(peer.call("close") for peer in self.roster.peers(first)), return_exceptions=True)
        await self.archive.close(compact=compact)

    def _take_down(self) -> None:
        try:
            if self._placer is not None:
                self._placer.take_down()
        finally:
            self._membership.leave()


def _merged(parts: Sequence[Signals]) -> Signals:
    return reduce(Signals.merge, parts, Signals())


async def _to_the_end(work: Callable[[], None]) -> None:
    """Work in a thread that is waited for even when this is cancelled: nobody can take down half a start."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
