"""How a server's process is told to stop: by SIGINT or SIGTERM, once, twice, three times."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from types import FrameType
from typing import Any, Self

from moot.deploy.running.outcome import EXIT_INTERRUPTED

_STARTING = b"stopping, once what is being started is up (Ctrl-C again: at once)\n"

_TICK_S = 0.05
_TOGETHER_S = 0.5
"""Signals that come so soon after the first one are that one again: from a wrapper such as `timeout`, which passes on
what the terminal has sent to both."""


class Stopping:
    """While this is entered the first signal asks for a drain, the second breaks off whatever goes on by a
    `KeyboardInterrupt`, and the third one ends the process, with nothing taken down."""

    def __init__(self) -> None:
        self._starting, self._drained = True, False
        self._asked = threading.Event()
        self._asked_at = 0.0
        self._broken_off = False
        self._before: dict[int, Any] = {}

    def wait(self, seconds: float) -> bool:
        """Whether a signal has come, after so many seconds at most."""
        return self._asked.wait(seconds)

    def __enter__(self) -> Self:
        self._before = self._take()
        return self

    def take_back(self) -> None:
        """Ray takes SIGTERM for itself when it starts: now it is up."""
        self._take()

    def meanwhile(self, work: Callable[[], None]) -> None:
        """Do something in a thread: when Ray leaves it gives SIGTERM to the system, and this takes it back at once."""
        with ThreadPoolExecutor(1) as pool:
            doing = pool.submit(work)
            while not doing.done():
                self._take()
                wait([doing], timeout=_TICK_S)
        doing.result()

    def started(self) -> None:
        """There is something to drain now."""
        self._starting = False

    def drained(self) -> None:
        """What is left to do takes seconds and leaves nothing behind: the next signal does not break it off."""
        self._drained = True

    def _take(self) -> dict[int, Any]:
        return {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._asked.is_set():
            self._asked.set()
            self._asked_at = time.monotonic()
            if self._starting:
                os.write(2, _STARTING)  # no print: this may have come in the middle of one
        elif not self._broken_off:
            if time.monotonic() - self._asked_at < _TOGETHER_S:
                return
            self._broken_off = True
            if not self._drained:
                raise KeyboardInterrupt
        else:
            os._exit(EXIT_INTERRUPTED)
