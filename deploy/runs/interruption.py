"""A session in a thread of its own, so that the main thread is always free to take a signal.

The first Ctrl-C (or SIGTERM) drains, the second stops at once, even while the session's thread hangs in a native call.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol, TypeVar

from moot.deploy.runs.outcome import EXIT_INTERRUPTED

_TICK_S = 0.1

_TOGETHER_S = 0.5
"""Signals that come so soon after the first one are that one again: from a wrapper such as `timeout`, which passes on
what the terminal has sent to both."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class StoppableTask(Protocol[T_co]):
    """What is held on an event loop until it ends, or is stopped: a `Session`, for one."""

    async def run(self) -> T_co:
        """Hold it; gives what came of it."""

    def stop(self) -> None:
        """Drain it. From any thread."""


def run_in_thread(
    session: StoppableTask[T],
    *,
    on_signals: Callable[[], None] | None = None,
    attend: Callable[[float], None] | None = None,
) -> T:
    """Hold a session on an event loop in a new thread, and wait for its end.

    Args:
        on_signals: given by a command that owns its process: SIGINT and SIGTERM are taken, this is called at the
            first of them, and the second one ends the process with 130. None: the first `KeyboardInterrupt` drains
            the session and is raised when that is done; the second one is raised at once.
        attend: what this thread does meanwhile, such as talking with a person: called over and over with the seconds
            after which it should return when there is nothing to do.
    """
    future: Future[T] = Future()
    thread = threading.Thread(target=_run_session, args=(session, future), name="moot-session", daemon=True)
    interrupted = False
    with _handle_signals(session, on_signals) as take_back:
        thread.start()
        while True:
            try:
                take_back()
                if attend is None:
                    wait([future], timeout=_TICK_S)
                else:
                    attend(_TICK_S)
                if future.done():
                    break
            except KeyboardInterrupt:
                session.stop()
                if interrupted:
                    raise
                interrupted = True
    result = future.result()
    if interrupted:
        raise KeyboardInterrupt
    return result


def _run_session(session: StoppableTask[T], future: Future[T]) -> None:
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            result = runner.run(session.run())
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


@contextmanager
def _handle_signals(session: StoppableTask[Any], on_first: Callable[[], None] | None) -> Iterator[Callable[[], None]]:
    """Gives what takes them once more: when Ray starts in this process it takes SIGTERM for itself, which would end the
    process with a stack of its own; when it leaves it gives it to the system, which would do so without a word."""
    if on_first is None or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    first: float | None = None

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if first is None:
            first = time.monotonic()
            session.stop()
            on_first()
        elif time.monotonic() - first > _TOGETHER_S:
            sys.stderr.flush()
            os._exit(EXIT_INTERRUPTED)

    old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: _take(handle)
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _take(handle: Callable[[int, FrameType | None], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
