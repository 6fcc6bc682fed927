"""Waits for other processes or threads, and a search for child processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import psutil

T = TypeVar("T")


def wait_until(what: Callable[[], T], seconds: float = 90.0, said: Callable[[], str] = str) -> T:
    """Wait until `what()` is true; returns its result. A missing file or server counts as false.

    Args:
        said: text for the error if the wait times out.
    """
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        with suppress(OSError):
            if found := what():
                return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds:g} s {said()[-2000:]}")


def processes_titled(*titles: str) -> list[psutil.Process]:
    """Descendant processes whose title begins with one of these, such as `ray::StageActor`."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if (process.cmdline() or [""])[0].startswith(titles):
                found.append(process)
    return found
