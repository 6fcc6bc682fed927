"""Thread offloading for event loops, and resources per event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from moot.protocols.long_texts import is_long

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One resource per event loop, created by `make`: HTTP clients may not be shared between loops.

    Args:
        make: called in the loop that will own the resource.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """Resource of the running loop, created on first use. Raises `RuntimeError` outside a loop."""
        loop = asyncio.get_running_loop()
        resource = self._made.get(loop)
        if resource is None:
            resource = self._made[loop] = self._make()
        return resource

    def take(self) -> T | None:
        """Remove and return the running loop's resource, for the caller to close; None when there is none."""
        return self._made.pop(asyncio.get_running_loop(), None)


_AT_ONCE = 2
"""Most threads for long texts: they compete with the loop, and keep their texts in memory."""

_PLACES = PerLoop(lambda: asyncio.Semaphore(_AT_ONCE))


async def off_loop_if_long(texts: object, function: Callable[..., T], *args: object) -> T:
    """Calls a function, in a thread when its texts are long.

    Args:
        texts: decide on the thread; see `is_long`.
    """
    if not is_long(texts):
        return function(*args)
    async with _PLACES.get():
        return await asyncio.to_thread(function, *args)


async def to_thread_shielded(work: Callable[[], T]) -> T:
    """As `asyncio.to_thread`; a cancellation takes effect when the thread has ended, because it cannot be stopped.

    So a lock around the call is not released while the thread still works under it.
    """
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        while not doing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([doing])
        if not doing.cancelled():
            doing.exception()  # mark as retrieved: the caller is gone
        raise
