"""The Ray engine as its driver sees it, where no Ray is needed."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from houses import make_spec, same_for_all
from tiny_debate import TinyDebate

from moot.actors.remote.runtime import RayRuntime


async def test_a_start_that_is_cancelled_twice_is_waited_for(tmp_path: Path) -> None:
    """What it goes on to create after everything was taken down would outlive the run."""
    runtime = RayRuntime(make_spec(tmp_path, same_for_all("simulated")), TinyDebate())
    began, go_on, joined = threading.Event(), threading.Event(), threading.Event()

    def join() -> None:
        began.set()
        go_on.wait(10)
        joined.set()

    runtime._membership.join = join  # type: ignore[method-assign]
    starting = asyncio.create_task(runtime.start())
    await asyncio.to_thread(began.wait, 10)
    for _ in range(2):
        starting.cancel()
        await asyncio.wait([starting], timeout=0.05)
    assert not starting.done()
    go_on.set()
    await asyncio.wait([starting], timeout=10)
    assert starting.cancelled()
    assert joined.is_set()
