"""Where the CPU of a packed moderator goes: the seven-call debate on the inline engine and uvloop, under cProfile.

    python tests/bench/profile_inline.py [--debates 1600] [--open 200] [--logprobs]

The inline engine holds what a packed moderator holds, and the record's writer besides (in `packed` that is a process
of its own, fed by `actors/remote.py`). A profiler slows small functions most; read shares, not seconds.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from pathlib import Path

from debate7 import SevenCalls, task
from rig import MockServer, bench_spec

from moot.actors.arena import Arena, Past
from moot.actors.inline import InlineRuntime


async def hold(model: str, debates: int, open_: int, logprobs: bool, profile: cProfile.Profile | None) -> float:
    """CPU seconds of `debates` debates, after one wave."""
    with tempfile.TemporaryDirectory(prefix="moot-bench-") as path:
        _, ownership, spec = bench_spec(Path(path), model, logprobs)
        runtime = InlineRuntime(spec, SevenCalls())
        await runtime.start()
        await Arena(runtime, task(open_, "warm").cases(), Past({}, {}), open_).run()
        if profile is not None:
            profile.enable()
        started = time.process_time()
        await Arena(runtime, task(debates, "bench").cases(), Past({}, {}), open_).run()
        spent = time.process_time() - started
        if profile is not None:
            profile.disable()
        await runtime.stop()
        ownership.release()
        return spent


def main() -> None:
    """Profile one run, and time another without the profiler."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--debates", type=int, default=1600)
    parser.add_argument("--open", type=int, default=200)
    parser.add_argument("--logprobs", action="store_true")
    given = parser.parse_args()
    import uvloop

    profile = cProfile.Profile()
    with MockServer() as server:
        for profiler in (None, profile):
            server.set()
            cpu = uvloop.run(hold(server.model, given.debates, given.open, given.logprobs, profiler))
            print(f"{'with' if profiler else 'without'} profiler: {cpu / given.debates * 1000:.2f} ms CPU per debate")
    stats = pstats.Stats(profile)
    stats.sort_stats("tottime").print_stats(40)
    stats.sort_stats("cumtime").print_stats(30)


if __name__ == "__main__":
    main()
