"""From a node's death to the first call that is made again, with Ray's default detection of lost nodes and a tuned one.

A run of single answers (one kind of actor calls the server) on four worker nodes; the node with the agent on it, and
perhaps another actor, is killed with all its processes. Its calls under way end with it. The server then tells when the
next call comes in: everything between is the death being noticed, the actor being placed and started on another node,
and the moderator reading what is on record and asking again for what is not.

`noticed_s` is when Ray called the node dead, `restarted_s` when the agent lived elsewhere, `called_s` when the first
call came.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from nodes import FAST_DETECTION, LocalCluster, nodes
from simulate_process import SimulatedServerProcess, serving, write_questions

SETTINGS: Mapping[str, Mapping[str, int]] = {"default": {}, "tuned": FAST_DETECTION}
CASES, OPEN, LATENCY_MS = 4000, 60, 1000.0
TIMES = 3
_LOOK_S, _LONGEST_S = 0.02, 120.0


def rows() -> list[dict[str, Any]]:
    """One row per setting and time."""
    found = []
    for name, config in SETTINGS.items():
        for number in range(TIMES):
            row = {"detection": name, "time": number, **_measured(config)}
            print(row, file=sys.stderr, flush=True)
            found.append(row)
    return found


def _measured(config: Mapping[str, int]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="moot-bench-") as scratch:
        task = write_questions(Path(scratch) / "made.jsonl", CASES)
        with (
            serving(task, 1, latency_ms=LATENCY_MS, jitter_ms=0.0) as server,
            nodes(0, [1] * 4, system_config=config) as ray,
        ):
            command = [sys.executable, "-m", "moot", "run", "--task", task, "--protocol", "single-agent", "--quiet"]
            command += ["--model", server.model, "--address", ray.address, "--max-open", str(OPEN)]
            command += ["--cluster", "moderators=1", "--cluster", "agent_processes=1", "--out", f"{scratch}/run"]
            driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                return _lost_and_found(ray, server, driver)
            finally:
                driver.kill()
                driver.wait(30)


def _lost_and_found(
    ray: LocalCluster, server: SimulatedServerProcess, driver: subprocess.Popen[bytes]
) -> dict[str, Any]:
    _until(lambda: server.totals()["calls"] > 2 * OPEN, driver)
    agent = next(actor for actor in ray.actors() if "-role-agent-" in actor.name)
    beside = sum(actor.node_id == agent.node_id for actor in ray.actors()) - 1
    node = next(node for node in ray.workers if node.node_id == agent.node_id)
    in_flight = server.totals()["in_flight"]
    began = time.monotonic()
    ray.lose(node)
    _until(lambda: server.totals()["in_flight"] == 0, driver)
    noticed_s = _until(lambda: not _alive(ray, agent.node_id), driver) - began
    restarted_s = _until(lambda: any(a.name == agent.name and a.node_id != agent.node_id for a in ray.actors()), driver)
    called_s = _until(lambda: server.totals()["in_flight"] > 0, driver) - began
    return {
        "in_flight": in_flight,
        "actors_beside": beside,
        "noticed_s": noticed_s,
        "restarted_s": restarted_s - began,
        "called_s": called_s,
    }


def _alive(ray: LocalCluster, node_id: str) -> bool:
    return any(node["NodeID"] == node_id and node["Alive"] for node in ray.cluster.global_state.node_table())


def _until(true: Callable[[], bool], driver: subprocess.Popen[bytes]) -> float:
    """When it became true."""
    end = time.monotonic() + _LONGEST_S
    while not true():
        if driver.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the run ended or hangs")
        time.sleep(_LOOK_S)
    return time.monotonic()
