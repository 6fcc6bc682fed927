"""Virtual-time event loops: when all tasks sleep, the loop's clock advances to the next timer at once."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")


class _Selector(selectors.DefaultSelector):
    """Poll for events, and advance the clock instead of waiting; without timers it waits like any other selector."""

    ahead_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self.ahead_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """For what happens in this loop alone: of threads, processes and connections it does not see that they work."""

    def __init__(self) -> None:
        self._leaps = _Selector()
        super().__init__(self._leaps)

    def time(self) -> float:
        """Seconds leapt so far: work takes no time here, so that a busy machine changes no duration."""
        return self._leaps.ahead_s


def run_in_virtual_time(work: Coroutine[Any, Any, None]) -> None:
    """`asyncio.run` in a virtual-time loop."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(work)


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in a virtual-time loop."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_in_virtual_time(test(*args, **kwargs))

    return run
