"""Throughput on 1, 2 and 4 nodes: worker nodes of one core each on this machine, one moderator per node.

SELENE with the embedded simulated model at 1 s per reply; `OPEN` debates open per node, so that a node's share of
the work stays the same. The rate is taken between the first and the third quarter of the verdicts, when every place
is taken. `efficiency` is the rate over that of one node times the nodes: at least 0.9 until the cores are busy, which
the share of CPU shows; the machine's cores are shared by every node.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from typing import Any

import psutil
import ray
from bench_runs import ProcessTree, lamp, spent
from ray.cluster_utils import Cluster

import moot
from moot.actors.record.tables import read_table

NODES = (1, 2, 4)
OPEN, PER_PLACE = 40, 10
LATENCY_MS = 1000.0
BAR, BUSY = 0.9, 0.85


def rows() -> list[dict[str, Any]]:
    """One row per number of nodes."""
    found: list[dict[str, Any]] = []
    for nodes in NODES:
        row = asyncio.run(_measured(nodes))
        first = found[0] if found else row
        row["efficiency"] = row["debates_per_s"] / (first["debates_per_s"] * nodes)
        row["ok"] = row["efficiency"] >= BAR or row["cpu_share"] >= BUSY
        print(row, file=sys.stderr, flush=True)
        found.append(row)
    return found


async def _measured(nodes: int) -> dict[str, Any]:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 * 2**20})
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        with tempfile.TemporaryDirectory(prefix="moot-bench-") as scratch:
            return await _held(nodes, f"{scratch}/run")
    finally:
        ray.shutdown()
        cluster.shutdown()


async def _held(nodes: int, out: str) -> dict[str, Any]:
    count = OPEN * PER_PLACE * nodes
    holding = asyncio.create_task(
        moot.arun(
            task=[{**lamp(number), "gold": ("Yes", "No")[number % 3 == 0]} for number in range(count)],
            model=f"simulated?latency_ms={LATENCY_MS:g}",
            placement="packed",
            max_open=OPEN * nodes,
            out=out,
        )
    )
    processes, readings, raylets = ProcessTree(), [], set[int]()
    while not holding.done():
        await asyncio.wait([holding], timeout=0.5)
        readings.append((time.time(), processes.cpu()))
        raylets |= _raylets_of_moderators(processes)
    run = await holding
    at = sorted(row["at"] for row in read_table(run.path, "verdicts", ["at"]).to_pylist())
    assert len(at) == count
    begin, end = at[count // 4], at[3 * count // 4]
    inside = [reading for reading in readings if begin <= reading[0] <= end]
    cpu_s = spent(inside[0][1], inside[-1][1])
    return {
        "nodes": nodes,
        "with_moderators": len(raylets),
        "open": OPEN * nodes,
        "debates": count,
        "debates_per_s": (3 * count // 4 - count // 4) / (end - begin),
        "cpu_share": cpu_s / (inside[-1][0] - inside[0][0]) / (os.cpu_count() or 1),
    }


def _raylets_of_moderators(processes: ProcessTree) -> set[int]:
    """The nodes that moderators run on, each by the process id of its raylet."""
    found = set()
    for pid, title in processes.actors().items():
        if title.startswith("ModeratorActor"):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.add(psutil.Process(pid).ppid())
    return found
