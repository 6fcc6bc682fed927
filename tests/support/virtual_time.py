"""Virtual-time event loops: when all tasks sleep, the loop's clock advances to the next timer at once."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")


class _Selector(selectors.DefaultSelector):
    """Selector that polls for events and advances the clock instead of waiting; without timers it waits like any
    other."""

    ahead_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self.ahead_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Event loop for work in this loop alone: it does not wait for the work of threads, processes and connections."""

    def __init__(self) -> None:
        self._leaps = _Selector()
        super().__init__(self._leaps)

    def time(self) -> float:
        """Virtual seconds so far: computation takes none, so that durations do not depend on the machine's load."""
        return self._leaps.ahead_s


def run_in_virtual_time(work: Coroutine[Any, Any, None]) -> None:
    """`asyncio.run` in a virtual-time loop."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(work)


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Decorator that runs a test in a virtual-time loop."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_in_virtual_time(test(*args, **kwargs))

    return run
