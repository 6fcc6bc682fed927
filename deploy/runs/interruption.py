"""Signal handling: runs a session in its own thread, so that the main thread can receive signals.

The first Ctrl-C (or SIGTERM) drains the session, the second ends the process immediately, even while the session's
thread hangs in a native call.
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

_DUPLICATE_WITHIN_S = 0.5
"""Signals within this many seconds of the first are duplicates: a wrapper such as `timeout` forwards a signal that the
terminal sent to both."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class StoppableTask(Protocol[T_co]):
    """Task that runs on an event loop until it ends or is stopped, such as a `Session`."""

    async def run(self) -> T_co:
        """Run the task; returns its result."""

    def stop(self) -> None:
        """Start draining. Thread-safe."""


def run_in_thread(
    session: StoppableTask[T],
    *,
    on_signals: Callable[[], None] | None = None,
    attend: Callable[[float], None] | None = None,
) -> T:
    """Run a session on an event loop in a new thread, and wait for its end.

    Args:
        session: the task.
        on_signals: for a command that owns its process: handles SIGINT and SIGTERM, is called at the first of them, and
            the second one ends the process with exit code 130. None: the first `KeyboardInterrupt` drains the session
            and is raised afterwards; the second one is raised at once.
        attend: work of the calling thread meanwhile, such as a dialogue with a person: called repeatedly with the
            seconds after which it should return if idle.
    """
    future: Future[T] = Future()
    thread = threading.Thread(target=_run_session, args=(session, future), name="moot-session", daemon=True)
    interrupted = False
    with _handle_signals(session, on_signals) as reinstall:
        thread.start()
        while True:
            try:
                reinstall()
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
    """Install the signal handlers; yields a function that installs them again, because Ray replaces the handler of
    SIGTERM when it starts in this process, and resets it to the default when it shuts down."""
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
        elif time.monotonic() - first > _DUPLICATE_WITHIN_S:
            sys.stderr.flush()
            os._exit(EXIT_INTERRUPTED)

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: _install(handle)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _install(handle: Callable[[int, FrameType | None], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
