"""One resource per event loop, made on first use: HTTP clients may not be shared between loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Holds what `make` gives for each running event loop.

    Args:
        make: called in the loop that will own the resource.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """The running loop's resource. Raises `RuntimeError` outside a loop."""
        loop = asyncio.get_running_loop()
        resource = self._made.get(loop)
        if resource is None:
            resource = self._made[loop] = self._make()
        return resource

    def take(self) -> T | None:
        """Give up the running loop's resource, for the caller to close; None when there is none."""
        return self._made.pop(asyncio.get_running_loop(), None)
