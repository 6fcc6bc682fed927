"""Work on long texts in a thread beside the event loop, a few pieces at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from moot.actors.models.per_loop import PerLoop
from moot.protocols.long_texts import is_long

T = TypeVar("T")

_AT_ONCE = 2
"""Threads that are at it: they take turns with the loop, and hold what they work on in memory."""

_PLACES = PerLoop(lambda: asyncio.Semaphore(_AT_ONCE))


async def off_loop_if_long(texts: object, function: Callable[..., T], *args: object) -> T:
    """What a function of the arguments gives, from a thread where the texts that it works on are long.

    Args:
        texts: what decides that; see `is_long`.
    """
    if not is_long(texts):
        return function(*args)
    async with _PLACES.get():
        return await asyncio.to_thread(function, *args)
