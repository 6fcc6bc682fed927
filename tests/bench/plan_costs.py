"""What `moot plan` takes for granted of the engine: CPU per call, memory per process and per open debate.

    python tests/bench/plan_costs.py [--open 1000] [--json FILE]

The seven-call debate on the mock server of `seven_call.py`, with 100 ms plus a uniform 0 to 60 ms, for each placement,
with and without log-probabilities. CPU is user and system time of the driver and every actor; memory is summed PSS,
each the least of several samples. The figures stand in `deploy/studies/planning/costs.py`, with the machine and the
day.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, defaultdict
from typing import Any, get_args

from bench_runs import MockServer, MootRun, ProcessTree, ray_session, spent
from debate7 import CALLS
from harness import ReportRows, finish, options, parsed
from open_debates import least, waiting_debates

from moot.actors.debate.run_spec import Placement

_WARM_UP, _DEBATES, _AT_ONCE = 200, 2000, 200


async def costs(server: MockServer, placement: Placement, logprobs: bool, open_: int) -> dict[str, Any]:
    """The figures of one placement."""
    processes = ProcessTree(server.pid)
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
    waiting, _, full, _ = await waiting_debates(run, server, processes, open_)
    await run.checked_stop()
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


def main() -> int:
    """Measure, print and write down."""
    parser = options(__doc__)
    parser.add_argument("--open", type=int, default=1000)
    given = parsed(parser)
    rows = ReportRows()
    with MockServer() as server, ray_session():
        for placement in get_args(Placement):
            for logprobs in (False, True):
                rows.add(asyncio.run(costs(server, placement, logprobs, given.open)))
    return finish(given, costs=rows)


if __name__ == "__main__":
    sys.exit(main())
