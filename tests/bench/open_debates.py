"""Memory: bytes per open debate, and growth over many debates.

    python tests/bench/open_debates.py [--json FILE] [--open 2000] [--debates 20000] [--only open|growth]

Figures are summed PSS (`/proc/PID/smaps_rollup`) of this process and every actor; raylet, GCS and idle workers are
apart. Each is the least of several samples, so that a buffer or a collector that is about to run does not count.

- Per open debate: the actors idle after a few debates; then N debates wait for their third reply (two turns said),
  because the server holds it back. Bar: 60 KB without log-probabilities.
- Growth: the runtime holds debates at 0 ms; at rest after debate 2,000 and after debate 20,000. Bar: 5 %. The server's
  count is checked too: a record can be whole although calls were paid for twice on the way.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from itertools import islice
from typing import Any, cast

from bench_runs import MockServer, MootRun, ProcessTree, ray_session
from debate7 import CALLS, task
from harness import ReportRows, finish, options, parsed

from moot.actors.debate.run_spec import Placement

OPEN_BAR_KB = 60.0
GROWTH_BAR_PERCENT = 5.0
_WARM_UP = 50
_HELD = "Round 2 of 3, debater A"
_AT_ONCE = 200
_NO_MORE_AFTER_S = 10.0


async def least(read: Callable[[], dict[str, int]], samples: int = 12, apart_s: float = 0.5) -> dict[str, int]:
    """The sample with the least `ours`."""
    found = []
    for _ in range(samples):
        await asyncio.sleep(apart_s)
        found.append(read())
    return min(found, key=lambda sample: sample["ours"])


async def waiting_debates(
    run: MootRun, server: MockServer, processes: ProcessTree, open_: int
) -> tuple[int, float, dict[str, int], dict[str, int]]:
    """Debates that wait for their third reply, the seconds until all did, and the PSS then, in sum and by process."""
    server.set(hold=_HELD)
    started = time.perf_counter()
    # Some more: a moderator may be handed a little above its share, and what is beyond its places only waits.
    holding = asyncio.create_task(run.hold(open_ + open_ // 8))
    opened, opening_s = 0, 0.0
    while opened < open_ and time.perf_counter() - started < opening_s + _NO_MORE_AFTER_S:
        await asyncio.sleep(0.1)
        if (waiting := int(server.stats()["inflight"])) > opened:
            opened, opening_s = waiting, time.perf_counter() - started
    full, by_title = await least(processes.pss, samples=8), processes.pss_by_title()
    server.set()
    await holding
    return opened, opening_s, full, by_title


async def per_open_debate(server: MockServer, placement: Placement, logprobs: bool, open_: int) -> dict[str, Any]:
    """KB per debate that waits for its third reply."""
    processes = ProcessTree(server.pid)
    server.set()
    run = MootRun(server.model, placement, logprobs, open_)
    await run.start()
    await run.hold(_WARM_UP)
    idle, idle_by_title = await least(processes.pss), processes.pss_by_title()
    opened, opening_s, full, full_by_title = await waiting_debates(run, server, processes, open_)
    await run.checked_stop()
    by_title = {title: (pss - idle_by_title.get(title, 0)) / opened / 1024 for title, pss in full_by_title.items()}
    kb_per_open = (full["ours"] - idle["ours"]) / opened / 1024
    return {
        "placement": placement,
        "logprobs": logprobs,
        "open": opened,
        "opening_s": opening_s,
        "idle_mb": idle["ours"] / 2**20,
        "full_mb": full["ours"] / 2**20,
        "kb_per_open": kb_per_open,
        "ok": logprobs or kb_per_open <= OPEN_BAR_KB,
        "kb_per_open_by_process": {title: round(kb, 1) for title, kb in by_title.items()},
        "ray_mb": full["ray"] / 2**20,
    }


async def growth(server: MockServer, placement: Placement, logprobs: bool, first: int, total: int) -> dict[str, Any]:
    """Summed PSS at rest after `first` and after `total` debates of one runtime."""
    processes = ProcessTree(server.pid)
    server.set()
    run = MootRun(server.model, placement, logprobs, _AT_ONCE)
    cases = task(total, "growth").cases()
    await run.start()
    await run.hold_cases(islice(cases, first), first)
    early, early_by_title = await least(processes.pss), processes.pss_by_title()
    await run.hold_cases(cases, total - first)
    late, late_by_title = await least(processes.pss), processes.pss_by_title()
    calls_beyond = int(server.stats()["requests"]) - CALLS * total
    await run.checked_stop()
    growth_percent = (late["ours"] / early["ours"] - 1) * 100
    return {
        "placement": placement,
        "logprobs": logprobs,
        "debates": [first, total],
        "pss_mb": [early["ours"] / 2**20, late["ours"] / 2**20],
        "growth_percent": growth_percent,
        "ok": growth_percent <= GROWTH_BAR_PERCENT,
        "growth_mb_by_process": {
            title: round((pss - early_by_title.get(title, 0)) / 2**20, 1) for title, pss in late_by_title.items()
        },
        "calls_beyond": calls_beyond,
        "ray_mb": [early["ray"] / 2**20, late["ray"] / 2**20],
    }


def main() -> int:
    """Run the bench; 1 when a bar is missed."""
    parser = options(__doc__)
    parser.add_argument("--open", type=int, default=2000, help="debates that wait at once")
    parser.add_argument("--debates", type=int, default=20_000, help="debates of the growth test")
    parser.add_argument("--first", type=int, default=2000, help="where the growth test takes its first sample")
    parser.add_argument("--placements", default="actors,packed")
    parser.add_argument("--only", choices=("open", "growth"))
    given = parsed(parser)
    placements = [cast(Placement, name) for name in given.placements.split(",")]
    open_, grown = ReportRows(), ReportRows()
    with MockServer() as server, ray_session():
        if given.only != "growth":
            for placement in placements:
                for logprobs in (False, True):
                    open_.add(asyncio.run(per_open_debate(server, placement, logprobs, given.open)))
        if given.only != "open":
            for placement in placements:
                grown.add(asyncio.run(growth(server, placement, False, given.first, given.debates)))
    return finish(given, open=open_, growth=grown)


if __name__ == "__main__":
    sys.exit(main())
