"""Event loops that wait for nothing: where all tasks sleep, the loop's clock leaps to the first that wakes."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")


class _Selector(selectors.DefaultSelector):
    """Looks whether anything is there, and leaps instead of waiting; without timers it waits as any other."""

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
    """As `asyncio.run`, in a loop that leaps."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(work)


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in a loop that leaps."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_in_virtual_time(test(*args, **kwargs))

    return run
