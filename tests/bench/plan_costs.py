"""What `moot plan` takes for granted of the engine: CPU per call, memory per process and per open debate.

    python tests/bench/plan_costs.py [--open 1000] [--json FILE]

The seven-call debate on the mock server of `seven_call.py`, with 100 ms plus a uniform 0 to 60 ms, for each placement,
with and without log-probabilities. CPU is user and system time of the driver and every actor; memory is summed PSS,
each the least of several samples. The figures stand in `deploy/planning/costs.py`, with the machine and the day.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, get_args

import ray
from debate7 import CALLS
from open_debates import _HELD, least
from rig import MockServer, MootRun, OurProcesses, machine, spent, start_ray

from moot.actors.spec import Placement

_WARM_UP, _DEBATES, _AT_ONCE = 200, 2000, 200


async def costs(server: MockServer, placement: Placement, logprobs: bool, open_: int) -> dict[str, Any]:
    """The figures of one placement."""
    processes = OurProcesses(server.pid)
    server.set()
    run = MootRun(server.model, placement, logprobs, open_)
    await run.start()
    await run.hold(_WARM_UP)
    idle, idle_by_title = await least(processes.pss), processes.pss_by_title()
    server.set(latency_ms=100, jitter_ms=60)
    before = processes.cpu()
    await run.hold(_DEBATES)
    after, titles = processes.cpu(), processes.actors()
    cpu_s = spent(before, after)
    by_title: defaultdict[str, float] = defaultdict(float)
    for pid, seconds in after.items():
        by_title[titles.get(pid, "others")] += 1000 * (seconds - before.get(pid, 0.0)) / (_DEBATES * CALLS)
    server.set(hold=_HELD)
    holding = asyncio.create_task(run.hold(open_ + open_ // 8))
    waiting = 0
    while waiting < open_:
        await asyncio.sleep(0.2)
        waiting = int(server.stats()["inflight"])
    full = await least(processes.pss, samples=8)
    server.set()
    await holding
    await run.stop()
    run.check()
    run.remove()
    return {
        "placement": placement,
        "logprobs": logprobs,
        "cpu_ms_per_call": 1000 * cpu_s / (_DEBATES * CALLS),
        "kb_per_open_debate": (full["ours"] - idle["ours"]) / waiting / 1024,
        "idle_mb_by_process": {title: round(pss / 2**20) for title, pss in idle_by_title.items()},
        "cpu_ms_per_call_by_process": {title: round(ms, 3) for title, ms in by_title.items()},
        "processes": dict(Counter(titles.values())),
        "ray_mb": round(idle["ray"] / 2**20),
    }


async def _measure(open_: int) -> list[dict[str, Any]]:
    found = []
    with MockServer() as server:
        for placement in get_args(Placement):
            for logprobs in (False, True):
                found.append(await costs(server, placement, logprobs, open_))
                print(json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--open", type=int, default=1000, dest="open_")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    start_ray()
    try:
        found = asyncio.run(_measure(given.open_))
    finally:
        ray.shutdown()
    if given.json is not None:
        given.json.write_text(json.dumps({"machine": machine(), "costs": found}, indent=1))


if __name__ == "__main__":
    main()
