"""Placement of a run's actors on the nodes of a cluster, and the reasons why unplaced ones wait."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
import structlog

from moot.actors.debate.placement import ClusterInfo, ClusterSettings, Kind
from moot.actors.remote.peers import Peer
from moot.actors.remote.ray_session import ByValue
from moot.protocols.errors import ActorGone, ConfigError

FOREVER = -1
"""Ray's value for unlimited restarts: an actor's callers end the run when it crash-loops, see `peers.CrashLoopGuard`.

Ray retries no lost call, because it does not know the journal. A moderator's cases are reassigned and replayed; an
agent's calls may have been paid for, so moderators repeat only asks that the journal lacks; a writer's rows are sent
again, and the first row of each step wins; the limiter's ledger records what was spent.
"""


_log = structlog.get_logger(__name__)
_LOOK_S = 2.0
_LACKING, _IN_USE, _STARTING = "no node has it yet", "no node has it free", "it is being started"
_QUIET_S, _QUIET_START_S, _AGAIN_S = 30.0, 120.0, 60.0
"""Seconds that a lack of resources lasts before it is logged, that the start of processes does, and between two lines:
the first run on a slow machine, which reads its packages from disk, works after tens of seconds."""

_NO_PACKAGE = "No module named 'moot"


@dataclass(frozen=True)
class ResourceRequest:
    """Resources that an actor requests.

    Attributes:
        amounts: by Ray's name of the resource; no zeros.
    """

    kind: Kind
    amounts: Mapping[str, float] = field(default_factory=dict)


class WaitNotice:
    """Decides when a wait is logged: when its reason has lasted, and then each `_AGAIN_S` or when it changes."""

    def __init__(self) -> None:
        self._why, self._since = "", 0.0
        self._logged, self._logged_at = "", 0.0

    def is_due(self, needs: str, why: str, now: float) -> bool:
        """Whether a wait is logged now.

        Args:
            needs, why: see `unplaced_reason`.
            now: monotonic seconds.
        """
        if why != self._why:
            self._why, self._since = why, now
        if now - self._since < (_QUIET_START_S if why == _STARTING else _QUIET_S):
            return False
        if needs + why == self._logged and now - self._logged_at <= _AGAIN_S:
            return False
        self._logged, self._logged_at = needs + why, now
        return True


class ActorScheduler:
    """Scheduler of a run's actors, as configured.

    Args:
        cluster_settings: of the run.
        site: size of the cluster.
        namespace: of the run.
        can_grow: whether nodes may be added to the cluster.
    """

    def __init__(self, cluster_settings: ClusterSettings, site: ClusterInfo, namespace: str, *, can_grow: bool) -> None:
        self._placing, self._site, self._namespace = cluster_settings, site, namespace
        self._can_grow = can_grow
        self._placed: list[tuple[str, Any, ResourceRequest]] = []

    def place(self, actor: type, kind: Kind, name: str, *args: Any, gpus: float = 0.0) -> None:
        """Create a named actor; returns before it is placed.

        Args:
            args: for its constructor.
        """
        cpus = self._placing.cpus(kind, self._site)
        amounts = {"CPU": cpus, "GPU": gpus, **self._placing.resources}
        want = ResourceRequest(kind, {what: amount for what, amount in amounts.items() if amount})
        remote = ray.remote(actor).options(
            name=name,
            namespace=self._namespace,
            num_cpus=cpus,
            num_gpus=gpus,
            resources=dict(self._placing.resources) or None,
            scheduling_strategy="SPREAD" if self._placing.spreads(self._site) else "DEFAULT",
            max_restarts=FOREVER,
            max_task_retries=0,
            max_concurrency=1000,
            enable_task_events=False,
        )
        self._placed.append((name, remote.remote(*map(ByValue, args)), want))

    async def placed(self) -> None:
        """Wait until every actor is placed; a log line says what they wait for.

        Raises:
            ConfigError: no node fits one of them, and none was added in time; or the workers lack this package.
            ActorGone: one died at its start.
        """
        waiting = {
            asyncio.create_task(Peer(name, self._namespace, handle).first_call("where")): want
            for name, handle, want in self._placed
        }
        try:
            await self._all_placed(waiting)
        except ActorGone as gone:
            if _NO_PACKAGE in str(gone):
                raise ConfigError(
                    "the cluster's workers do not find moot: install it on its nodes, or give them a wheel of it, "
                    "runtime_env={'py_modules': ['moot-....whl']} (see cluster.md)"
                ) from None
            raise
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _all_placed(self, waiting: Mapping[asyncio.Task[None], ResourceRequest]) -> None:
        clock = asyncio.get_running_loop().time
        lacking_since, notice = 0.0, WaitNotice()
        while pending := [task for task in waiting if not task.done()]:
            await asyncio.wait(pending, timeout=_LOOK_S, return_when=asyncio.FIRST_EXCEPTION)
            for task in waiting:
                if task.done():
                    task.result()
            wants = [want for task, want in waiting.items() if not task.done()]
            if not wants:
                return
            needs, why = await asyncio.to_thread(_wait, wants)
            lacking_since = (lacking_since or clock()) if why == _LACKING else 0.0
            if lacking_since and (not self._can_grow or clock() - lacking_since >= self._placing.wait_s):
                raise ConfigError(
                    f"no node of the cluster has {needs}: add such a node, or ask for less with --cluster (see "
                    "cluster.md)"
                )
            if notice.is_due(needs, why, clock()):
                _log.warning("waiting for a place on the cluster", needs=needs, why=why, waiting=len(wants))

    def take_down(self) -> None:
        """Kill every actor."""
        for name, handle, _ in self._placed:
            try:
                ray.kill(handle)
            except Exception as error:  # Ray was shut down, or cannot be reached: then the actors end with it
                _log.warning("an actor could not be ended", actor=name, error=str(error))
        self._placed.clear()


def _wait(wants: Sequence[ResourceRequest]) -> tuple[str, str]:
    """See `unplaced_reason`; for the current state of this cluster."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    free = importlib.import_module("ray._private.state").available_resources_per_node()
    return unplaced_reason(wants, nodes, list(free.values()))


def unplaced_reason(
    wants: Sequence[ResourceRequest], nodes: Sequence[Mapping[str, float]], free: Sequence[Mapping[str, float]]
) -> tuple[str, str]:
    """Resources that unplaced actors need, as "what for whom", and why they are not available.

    Args:
        wants: at least one.
        nodes: resources of each node.
        free: unused resources of each node.
    """
    for given, why in ((nodes, _LACKING), (free, _IN_USE)):
        for want in wants:
            if not any(_fits(want, node) for node in given):
                return f"{_short(want, given)} for {_an(want)}", why
    return f"a process for {_an(wants[0])}", _STARTING


def _fits(want: ResourceRequest, node: Mapping[str, float]) -> bool:
    return all(node.get(what, 0.0) >= amount for what, amount in want.amounts.items())


def _short(want: ResourceRequest, nodes: Sequence[Mapping[str, float]]) -> str:
    """The resource that no node has enough of; all of them if only their combination is missing."""
    for what, amount in want.amounts.items():
        if not any(node.get(what, 0.0) >= amount for node in nodes):
            return f"{what} {amount:g}"
    return " with ".join(f"{what} {amount:g}" for what, amount in want.amounts.items())


def _an(want: ResourceRequest) -> str:
    return f"an {want.kind}" if want.kind == "agent" else f"a {want.kind}"
