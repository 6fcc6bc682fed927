"""Where the CPU of a packed moderator goes: the seven-call debate on the inline engine and uvloop, under cProfile.

    python tests/bench/profile_inline.py [--debates 1600] [--open 200] [--logprobs]

The inline engine holds what a packed moderator holds, and the record's writer besides (in `packed` that is a process
of its own, fed over `remote/scribe.py`). Three runs: as it is, with the garbage collector off, and under the profiler.
The profiler counts this thread's CPU, not wall time, so that neighbours do not show; the collector is off under it,
because its pauses would be charged to whichever function happened to allocate. A profiler slows small functions most:
read shares, not seconds.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import tempfile
import time
from pathlib import Path

from debate7 import SevenCalls, task
from rig import MockServer, bench_spec

from moot.actors.arena import Arena, Past
from moot.actors.inline import InlineRuntime


class CollectorTime:
    """CPU seconds that the garbage collector takes."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._began = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self.spent_s += time.thread_time() - self._began


async def hold(model: str, debates: int, open_: int, logprobs: bool, profile: cProfile.Profile | None) -> float:
    """CPU seconds of `debates` debates, after one wave."""
    with tempfile.TemporaryDirectory(prefix="moot-bench-") as path:
        _, ownership, spec = bench_spec(Path(path), model, logprobs, open_)
        runtime = InlineRuntime(spec, SevenCalls())
        await runtime.start()
        await Arena(runtime, task(open_, "warm").cases(), Past({}, {})).run()
        if profile is not None:
            profile.enable()
        started = time.process_time()
        await Arena(runtime, task(debates, "bench").cases(), Past({}, {})).run()
        spent = time.process_time() - started
        if profile is not None:
            profile.disable()
        await runtime.stop()
        ownership.release()
        return spent


def main() -> None:
    """Time two runs and profile a third."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--debates", type=int, default=1600)
    parser.add_argument("--open", type=int, default=200)
    parser.add_argument("--logprobs", action="store_true")
    given = parser.parse_args()
    import uvloop

    profile = cProfile.Profile(time.thread_time)
    collector = CollectorTime()
    with MockServer() as server:
        for told, collect, profiler in (
            ("as it is", True, None),
            ("collector off", False, None),
            ("collector off, profiler on", False, profile),
        ):
            (gc.enable if collect else gc.disable)()
            server.set()
            collector.spent_s = 0.0
            cpu = uvloop.run(hold(server.model, given.debates, given.open, given.logprobs, profiler))
            collected = collector.spent_s / (given.debates + given.open)
            print(f"{told}: {cpu / given.debates * 1000:.2f} ms CPU per debate, collector {collected * 1000:.2f} ms")
            gc.collect()
    stats = pstats.Stats(profile)
    stats.sort_stats("tottime").print_stats(40)
    stats.sort_stats("cumtime").print_stats(30)


if __name__ == "__main__":
    main()
