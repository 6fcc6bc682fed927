"""Work in a thread that is waited for to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def to_thread_shielded(work: Callable[[], T]) -> T:
    """As `asyncio.to_thread`; a caller that is cancelled is so when the thread has ended, for it cannot be stopped.

    Whoever holds a lock around this lets go of it when nothing is done under it any more.
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
