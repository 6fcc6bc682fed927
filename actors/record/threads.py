"""Threads that a cancellation waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def to_thread_shielded(work: Callable[[], T]) -> T:
    """As `asyncio.to_thread`; a cancellation takes effect when the thread has ended, for it cannot be stopped.

    So a lock around this is not released while the thread still works under it.
    """
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        while not doing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([doing])
        if not doing.cancelled():
            doing.exception()  # seen: the caller is gone
        raise
