"""The Ray actors of a run: thin wrappers around plain classes, found by name, restarted by Ray when they die."""

from __future__ import annotations

import asyncio
import gc
import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

import msgspec
import ray
from ray.util import metrics

from moot.actors.agent.agent import Agent
from moot.actors.agent.roles import Roles
from moot.actors.debate.context_factory import (
    LocalAgentPool,
    Service,
    build_agent,
    build_debate_context,
    build_limiter,
    build_limiter_client,
    services,
)
from moot.actors.debate.first_asks import Admission, AskCounts, FirstAskCounts, FirstAskExchange
from moot.actors.debate.moderator import Moderator
from moot.actors.debate.run_spec import RunSpec
from moot.actors.limits.envelopes import Grant, UsageReport
from moot.actors.limits.ledger import ReportDeduplicator
from moot.actors.limits.limiter_client import LimiterClient
from moot.actors.remote.agent_pool import RemoteAgentPool
from moot.actors.remote.agent_server import AgentServer
from moot.actors.remote.envelopes import decode_batch, encode
from moot.actors.remote.peers import SET_UP_S, Incarnation, Peer
from moot.actors.remote.record_client import RemoteRecordClient
from moot.actors.remote.reliable_channel import AssignmentBatch, ReliableChannelServer
from moot.actors.telemetry.failpoints import failpoint
from moot.actors.telemetry.log import configure_json
from moot.actors.telemetry.meter import ACTOR_RESTARTS, BUDGET_USED, METRICS, Meter, Metric
from moot.actors.telemetry.telemetry import Telemetry, Tracing
from moot.protocols.errors import ActorGone

_PROTOCOL = "protocol"


class RayMeter:
    """Meter of one Ray process; requires an initialised `ray`.

    The node's agent keeps a series for each process that has existed. So no counter falls back to 0 when an actor
    restarts: the new process has a series of its own, and the sum over all of them is the total.

    Args:
        protocol: of the run; a label of every metric.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._made: dict[str, Any] = {metric.name: _make(metric) for metric in METRICS}
        self._tags: dict[tuple[str, ...], dict[str, str]] = {}

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """See `Meter.add`."""
        counter = self._made[metric.name]
        if amount > 0.0:
            counter.inc(amount, self._tagged(metric, labels))
        else:
            counter._record(0.0, self._tagged(metric, labels))  # `inc` refuses 0, and a series has to start there

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """See `Meter.set`."""
        self._made[metric.name].set(value, self._tagged(metric, labels))

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """See `Meter.observe`."""
        self._made[metric.name].observe(value, self._tagged(metric, labels))

    def _tagged(self, metric: Metric, labels: tuple[str, ...]) -> dict[str, str]:
        key = (metric.name, *labels)
        known = self._tags.get(key)
        if known is None:
            known = self._tags[key] = {_PROTOCOL: self._protocol, **dict(zip(metric.labels, labels, strict=True))}
        return known


def _make(metric: Metric) -> Any:
    tags = (_PROTOCOL, *metric.labels)
    if metric.kind == "histogram":
        return metrics.Histogram(metric.name, metric.about, boundaries=list(metric.boundaries), tag_keys=tags)
    return (metrics.Counter if metric.kind == "counter" else metrics.Gauge)(metric.name, metric.about, tag_keys=tags)


class ActorDirectory(msgspec.Struct, frozen=True):
    """Addresses of a run's actors: their names by kind; no limiter when nothing is limited."""

    namespace: str
    writers: list[str]
    moderators: list[str]
    agents: list[tuple[Service, list[str]]]
    limiter: str = ""

    def peers(self, names: Sequence[str]) -> list[Peer]:
        """Handles of actors by name."""
        return [Peer(name, self.namespace) for name in names]


_THRESHOLDS = (50_000, 50, 50)


def tune_garbage_collection() -> None:
    """Tunes the garbage collector: freezes existing objects, and collects the others rarely.

    Many debates stay open for long; collecting their objects repeatedly took a third of a moderator's CPU, and stopped
    a server for a tenth of a second. For a process of moot, after its set-up.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


class RunActor(ABC):
    """Base class of a run's actors: set up on the first call, so that a restarted one is set up too."""

    kind: ClassVar[str]

    def __init__(self, spec: str, directory: ActorDirectory, *args: Any) -> None:
        self._spec = RunSpec.model_validate_json(spec)
        self._directory = directory
        self._args = args
        configure_json("info")
        self._setting_up: asyncio.Task[None] | None = None
        self._born = time.monotonic()
        self._restarted = False

    async def ping(self) -> None:
        """Return once the actor is set up; raises the error of a failed set-up."""
        await self._up()

    async def where(self) -> bytes:
        """The actor's `Incarnation`, encoded: at once, set up or not."""
        return msgspec.msgpack.encode(Incarnation.current())

    async def watch(self) -> None:
        """Never returns: the call fails when this process is gone."""
        await asyncio.Event().wait()

    async def _up(self) -> None:
        if self._setting_up is None:
            self._setting_up = asyncio.create_task(self._set_up_once())
        if not self._setting_up.done():
            await asyncio.shield(self._setting_up)
        self._setting_up.result()

    async def _set_up_once(self) -> None:
        self._meter = self._new_meter()
        await self._set_up()
        tune_garbage_collection()

    def _new_meter(self) -> Meter:
        """Meter of this process; first counts whether the actor was restarted."""
        meter = RayMeter(self._spec.protocol)
        with warnings.catch_warnings():  # Ray's own property calls a method that Ray deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            self._restarted = bool(ray.get_runtime_context().was_current_actor_reconstructed)
        meter.add(ACTOR_RESTARTS, float(self._restarted), self.kind)
        return meter

    @abstractmethod
    async def _set_up(self) -> None:
        """Create the actor's services."""

    def _new_limiter_client(self) -> LimiterClient | None:
        """Limiter client of this process; None when nothing is limited."""
        if not self._directory.limiter:
            return None
        (limiter,) = self._directory.peers([self._directory.limiter])

        async def exchange(report: UsageReport) -> Grant:
            raw = await limiter.call_until_done("exchange", msgspec.msgpack.encode(report))
            return msgspec.msgpack.decode(raw, type=Grant)

        return build_limiter_client(self._spec, exchange)


class LimiterActor(RunActor):
    """Limiter actor: grants rates, concurrency and budgets to all processes of a run."""

    kind = "limiter"

    async def _set_up(self) -> None:
        self._limiter = build_limiter(self._spec)
        self._deduplicator = ReportDeduplicator(self._limiter.exchange)
        self._first_asks = FirstAskCounts(self._spec.max_unusable)

    async def exchange(self, raw: bytes) -> bytes:
        """See `Limiter.exchange`."""
        await self._up()
        grant = await self._deduplicator.exchange(msgspec.msgpack.decode(raw, type=UsageReport))
        for budget, ratio in self._limiter.used_ratios().items():
            self._meter.set(BUDGET_USED, ratio, budget)
        return msgspec.msgpack.encode(grant)

    async def first_ask(self, sender: str, family: str, stated: bytes, wants: bool) -> bytes:
        """See `FirstAskCounts.exchange`."""
        await self._up()
        counts = msgspec.msgpack.decode(stated, type=AskCounts)
        return msgspec.msgpack.encode(self._first_asks.exchange(sender, family, counts, wants=wants))

    async def forget_first_asks(self, sender: str) -> None:
        """See `FirstAskCounts.forget`."""
        await self._up()
        self._first_asks.forget(sender)

    async def state(self) -> bytes:
        """See `Limiter.state`."""
        await self._up()
        return msgspec.msgpack.encode(self._limiter.state())


class AgentActor(RunActor):
    """Agent actor: an agent or judge, one role on one model."""

    kind = "agent"

    async def _set_up(self) -> None:
        service: Service = tuple(self._args[0])
        self._family = "judge" if service[0].startswith("judge") else "agent"
        self._record_client = RemoteRecordClient(self._directory.peers(self._directory.writers), self._family)
        binding = services(Roles(self._spec.roles))[service]
        self._limiter_client = self._new_limiter_client()
        telemetry = Telemetry(self._meter, Tracing(self._spec.store or self._spec.folder))
        self._tracer = telemetry.tracer
        self._agent: Agent = await asyncio.to_thread(
            build_agent, self._spec, binding, self._record_client, self._limiter_client, telemetry
        )
        self._server = AgentServer(self._agent.answer)

    async def exchange(self, blob: bytes) -> bytes:
        """See `AgentServer.exchange`."""
        await self._up()
        batch = decode_batch(blob)
        if batch.received:
            failpoint(f"{self._family}.sent_to_moderator")
        return encode(await self._server.exchange(batch))

    async def drain(self) -> None:
        """Start no further limited calls."""
        await self._up()
        if self._limiter_client is not None:
            self._limiter_client.drain()

    async def has_ask(self, sender: str, number: int) -> bool:
        """See `AgentServer.has_ask`; also True while asks to its last incarnation may still arrive, at most
        `SET_UP_S`."""
        up = self._setting_up is not None and self._setting_up.done()
        if not up and time.monotonic() < self._born + SET_UP_S:
            return True
        await self._up()
        return self._server.has_ask(sender, number)

    async def batch_sizes(self) -> dict[str, dict[int, int]]:
        """Batch sizes of replies and of the record's rows: number of calls by number of items per call."""
        await self._up()
        return {"replies": dict(self._server.batch_sizes), "rows": dict(self._record_client.batch_sizes())}

    async def close(self) -> None:
        """Cancel what is in flight; the rows of paid replies first reach their writer."""
        await self._up()
        await self._server.close()
        await self._agent.close()
        if self._limiter_client is not None:
            await self._limiter_client.close()
        await self._record_client.drained()
        await self._tracer.close()


_ROWS_WITHIN_S = 10.0
"""Seconds for the last rows of a drain; a live writer accepts them at once."""


class ModeratorActor(RunActor):
    """Moderator actor; in the packed placement its agents and judges run in the same process."""

    kind = "moderator"

    async def _set_up(self) -> None:
        name, placement, protocol = self._args
        self._record_client = RemoteRecordClient(self._directory.peers(self._directory.writers), "agent")
        roles = Roles(self._spec.roles)
        self._remote: RemoteAgentPool | None = None
        self._local: LocalAgentPool | None = None
        self._limiter_client = self._new_limiter_client() if placement == "packed" else None
        telemetry = Telemetry(self._meter, Tracing(self._spec.store or self._spec.folder))
        self._tracer = telemetry.tracer
        if placement == "packed":
            self._local = await asyncio.to_thread(
                LocalAgentPool, self._spec, self._record_client, self._limiter_client, telemetry
            )
        else:
            agents = {
                (service[0], service[1]): self._directory.peers(names) for service, names in self._directory.agents
            }
            self._remote = RemoteAgentPool(roles, agents, self._record_client, name)
        agent_pool = self._remote or self._local
        assert agent_pool is not None
        places = max(1, self._spec.max_open // len(self._directory.moderators))
        self._context = await asyncio.to_thread(
            build_debate_context,
            self._spec,
            agent_pool,
            self._record_client,
            telemetry,
            await self._first_ask_exchange(name),
        )
        self._moderator = Moderator(protocol, self._context, places, self._spec.debate_timeout_s)
        self._channel = ReliableChannelServer(self._moderator)

    async def _first_ask_exchange(self, name: str) -> FirstAskExchange | None:
        """Exchange with the first asks of all moderators; None when nothing is limited, so that nothing is paid for."""
        if not self._directory.limiter:
            return None
        (limiter,) = self._directory.peers([self._directory.limiter])
        if self._restarted:
            with suppress(ActorGone):
                await limiter.call_until_done("forget_first_asks", name)

        async def exchange(family: str, stated: AskCounts, *, wants: bool) -> Admission:
            try:
                raw = await limiter.call_until_done("first_ask", name, family, msgspec.msgpack.encode(stated), wants)
            except ActorGone:  # the agents hear of it with their next call
                return Admission(admitted=wants)
            return msgspec.msgpack.decode(raw, type=Admission)

        return exchange

    async def exchange(self, raw: bytes, wait: bool) -> bytes:
        """See `ReliableChannelServer.exchange`."""
        await self._up()
        batch = msgspec.msgpack.decode(raw, type=AssignmentBatch)
        return msgspec.msgpack.encode(await self._channel.exchange(batch, wait=wait))

    async def cancel(self, keys: list[tuple[str, int]]) -> None:
        """See `Moderator.cancel`."""
        await self._up()
        await self._moderator.cancel(keys)

    async def batch_sizes(self) -> dict[str, dict[int, int]]:
        """Batch sizes of asks and of the record's rows: number of calls by number of items per call."""
        await self._up()
        asks = self._remote.batch_sizes() if self._remote is not None else Counter[int]()
        return {"asks": dict(asks), "rows": dict(self._record_client.batch_sizes())}

    async def drain(self, seconds: float) -> None:
        """See `Moderator.drain`; rows that a lost writer does not accept in time are paid for again."""
        await self._up()
        await self._moderator.drain(seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ROWS_WITHIN_S):
                await self._record_client.drained()

    async def close(self) -> None:
        """Cancel every debate and release the models of the packed placement."""
        await self._up()
        await self._moderator.close()
        if self._remote is not None:
            await self._remote.close()
        if self._local is not None:
            await self._local.close()
        if self._limiter_client is not None:
            await self._limiter_client.close()
        await self._context.close()
        await self._record_client.drained()
        await self._tracer.close()
