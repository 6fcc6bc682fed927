"""Ray cluster of several nodes on this machine: each node is a separate raylet, and can be killed like a machine."""

from __future__ import annotations

import contextlib
import gc
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from ray.cluster_utils import Cluster

from moot.actors.remote.ray_session import without_idle_processes

FAST_DETECTION = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 4,
}
"""A node is declared dead about 2 s after its last heartbeat, instead of 15 s or more by default."""

_STORE_BYTES = 80 * 2**20
_ENDED_WITHIN_S = 20.0


class LiveActor(NamedTuple):
    """Actor in Ray's state tables."""

    name: str
    pid: int
    node_id: str


class LocalCluster:
    """Running cluster on this machine.

    Args:
        cluster: the cluster with its head; worker nodes are added here.
        folder: Ray's folder for temporary files; it is an argument of every process that Ray starts here.
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self._folder = cluster, str(folder)
        self.workers: list[Any] = []
        self.processes: dict[int, psutil.Process] = {}

    @property
    def address(self) -> str:
        """Value of `--address`."""
        return str(self.cluster.address)

    def add(self, cpus: float, **node_args: Any) -> Any:
        """Add a worker node, alive on return."""
        args = {"object_store_memory": _STORE_BYTES, **node_args}
        node = self.cluster.add_node(num_cpus=cpus, dashboard_agent_listen_port=0, **args)
        self.workers.append(node)
        return node

    def lose(self, node: Any) -> None:
        """Kill a worker node with all its processes."""
        self.note_processes()
        raylet = node.all_processes["raylet"][0].process.pid
        on_it = psutil.Process(raylet).children(recursive=True)
        self.workers.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)
        for process in on_it:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def actors(self) -> list[LiveActor]:
        """Every live actor by name."""
        table = self.cluster.global_state.actor_table(None, actor_state_name="ALIVE")
        found = [LiveActor(each["Name"], each["Pid"], each["Address"]["NodeID"]) for each in table.values()]
        return sorted(found)

    def note_processes(self) -> None:
        """Store the running processes, for `leaked`."""
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if any(self._folder in word for word in child.cmdline()):
                    for process in (child, *child.children(recursive=True)):
                        self.processes.setdefault(process.pid, process)

    def leaked(self, within_s: float = _ENDED_WITHIN_S) -> list[str]:
        """Stored processes that still run after a grace period."""
        _, alive = psutil.wait_procs(list(self.processes.values()), timeout=within_s)
        return [told for process in alive if (told := _process_name(process))]


@contextlib.contextmanager
def nodes(
    head_cpus: float = 0, workers: Sequence[float] = (), *, system_config: Mapping[str, int] = FAST_DETECTION
) -> Iterator[LocalCluster]:
    """Cluster of a head and one worker node per number of CPUs; everything is terminated and removed at the end.

    Args:
        head_cpus: CPUs of the head, where the drivers run; 0 keeps actors that need CPUs off it.
        workers: CPUs of each worker node.
        system_config: Ray's system configuration, by default fast detection of lost nodes.
    """
    # Sockets lie in it, whose paths may have 107 bytes: pytest's own folders are too deep.
    folder = Path(tempfile.mkdtemp(prefix="moot-"))
    running: LocalCluster | None = None
    settings = {
        "RAY_TMPDIR": str(folder),
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_raylet_start_wait_time_s": "120",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        try:
            cluster = Cluster(shutdown_at_exit=False)
            running = LocalCluster(cluster, folder)
            with without_idle_processes():
                cluster.add_node(
                    num_cpus=head_cpus,
                    object_store_memory=_STORE_BYTES,
                    include_dashboard=False,
                    dashboard_agent_listen_port=0,
                    _system_config=dict(system_config),
                )
            for cpus in workers:
                running.add(cpus)
            yield running
        finally:
            if running is not None:
                _end(running)
            shutil.rmtree(folder, ignore_errors=True)


def _end(running: LocalCluster) -> None:
    """Shut the cluster down; processes that remain, also of a node that did not start, are killed by their id."""
    running.note_processes()
    with contextlib.suppress(Exception):
        running.cluster.shutdown()
    running.note_processes()
    running.cluster.global_state.disconnect()
    _, alive = psutil.wait_procs(list(running.processes.values()), timeout=_ENDED_WITHIN_S)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    running.workers.clear()
    del running.cluster
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Ray leaves its nodes' sockets and pipes to the collector
        gc.collect()


def _process_name(process: psutil.Process) -> str:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return ""
        return f"{process.pid} {' '.join(process.cmdline())[:200]}"
    except psutil.NoSuchProcess:
        return ""
