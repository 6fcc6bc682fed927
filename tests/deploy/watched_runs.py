"""A Ray of its own for runs that are watched: `python watched_runs.py`, a line of JSON per batch of runs on stdin.

It says where Ray writes down what is to be scraped; of each batch, how its runs ended. It lives until stdin is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import ray

import moot


async def _hold(runs: list[dict[str, Any]]) -> list[str]:
    return [held.status for held in await asyncio.gather(*(moot.arun(engine="ray", **run) for run in runs))]


def main() -> None:
    """See the module."""
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=True,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=100 * 2**20,
        _system_config={"metrics_report_interval_ms": 1000},
    )
    try:
        session = Path(ray.get_runtime_context().get_session_name())
        folder = Path("/tmp/ray") / session
        print(json.dumps({"discovery": str(folder / "prom_metrics_service_discovery.json")}), flush=True)
        for line in sys.stdin:
            print(json.dumps({"ended": asyncio.run(_hold(json.loads(line)))}), flush=True)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
