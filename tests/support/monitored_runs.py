"""Ray for monitored runs: `python monitored_runs.py`, with a line of JSON per batch of runs on standard input.

Prints the file in which Ray lists the scrape targets and, for each batch, the status of its runs. Ends when standard
input is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import ray
from ray._private.metrics_agent import PrometheusServiceDiscoveryWriter

import moot
from moot.actors.remote.ray_session import without_idle_processes
from moot.actors.remote.run_actor import LimiterActor


async def _run(runs: list[dict[str, Any]]) -> list[str]:
    killing = asyncio.create_task(_kill_a_limiter())
    held = await asyncio.gather(*(moot.arun(engine="ray", **run) for run in runs))
    await killing
    return [each.status for each in held]


async def _kill_a_limiter() -> None:
    """Kill a limiter process, which is restarted and has no metrics of its own."""
    limiters: list[psutil.Process] = []
    while not limiters:
        await asyncio.sleep(0.5)
        limiters = [process for process in psutil.Process().children(recursive=True) if _is_limiter(process)]
    await asyncio.sleep(2.0)
    limiters[0].kill()


def _is_limiter(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.cmdline()[:1] == [f"ray::{LimiterActor.__name__}"]
    return False


def main() -> None:
    """See the module."""
    told, sys.stdout = sys.stdout, sys.stderr  # Ray prints which processes have died
    with without_idle_processes():
        context = ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            object_store_memory=100 * 2**20,
            _system_config={"metrics_report_interval_ms": 1000},
        )
    try:
        folder = Path(context.address_info["session_dir"])
        # The dashboard would write this file, and start ten processes.
        PrometheusServiceDiscoveryWriter(context.address_info["gcs_address"], str(folder)).write()
        print(json.dumps({"discovery": str(folder / "prom_metrics_service_discovery.json")}), file=told, flush=True)
        for line in sys.stdin:
            print(json.dumps({"ended": asyncio.run(_run(json.loads(line)))}), file=told, flush=True)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
