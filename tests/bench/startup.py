"""A fresh process that holds one debate, and prints when each part of its start-up was over; see `seven_call.py`.

python startup.py MODEL actors|packed
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from bench_runs import MootRun, ray_session


async def run_one(model: str, placement: str) -> dict[str, float]:
    """One debate; seconds that bringing the actors up took, and the time when they were."""
    run = MootRun(model, "packed" if placement == "packed" else "actors", logprobs=False, open_=1)
    started = time.time()
    await run.start()
    up = time.time()
    await run.hold(1)
    await run.stop()
    run.remove()
    return {"actors": up - started, "at": up}


def main() -> None:
    """`python and imports` is the time of day when all was imported: the parent knows when it began."""
    imported = time.time()
    with ray_session():
        joined = time.time()
        parts = asyncio.run(run_one(*sys.argv[1:3]))
        print(json.dumps({"python and imports": imported, "ray.init": joined - imported, **parts}), flush=True)


if __name__ == "__main__":
    main()
