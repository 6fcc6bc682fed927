"""Owning a record, wherever it lies, for as long as some work on it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.folder import Ownership, RunFolder, begin_epoch
from moot.actors.record.store.lease import Lease
from moot.actors.record.store.mirror import pull

T = TypeVar("T")


class Owner:
    """The right to write a record, from `take` to the end of `hold`; both are called once.

    Args:
        folder: the record.
        held: what keeps others away.
    """

    def __init__(self, folder: RunFolder, held: Ownership | Lease) -> None:
        self._folder, self._held = folder, held

    @classmethod
    async def take(cls, folder: RunFolder) -> Owner:
        """Become the owner. In a store this waits until an owner that was killed has lost its lease.

        Raises:
            RunFolderBusy: another live process owns the record.
            RecordError: it cannot be written.
        """
        return cls(folder, await Lease.take(folder.store) if folder.store is not None else Ownership.take(folder))

    async def hold(self, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
        """Do the work with this owner's number, and give the record up.

        Raises:
            RecordError: somebody else has taken the record over; the work was cancelled.
        """
        held = self._held
        if isinstance(held, Ownership):
            try:
                return await work(held.epoch)
            finally:
                held.release()
        try:
            return await held.hold(self._begun(held, work))
        finally:
            await held.release()

    async def _begun(self, lease: Lease, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
        return await work(await asyncio.to_thread(self._take_over, lease))

    def _take_over(self, lease: Lease) -> int:
        """What a killed owner has left is compacted at once: whatever it may still do, it can take nothing away."""
        folder = self._folder
        assert folder.store is not None
        pull(folder.store, folder.path)
        for made in (folder.journal, folder.parts):
            made.mkdir(exist_ok=True)
        number = begin_epoch(folder)
        if not lease.in_order:
            compact_leftovers(folder, number)
        return number
