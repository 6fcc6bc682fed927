"""Small record in a store, written in this process; and a store that fails after a number of changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from journal_writer import resume
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from moot.actors.record import journal
from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import RecordOwner
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.store import lease
from moot.actors.record.store.mirror import Mirror
from moot.actors.record.store.store import Store
from moot.protocols.errors import RecordError

T = TypeVar("T")


def store_in(folder: Path) -> Store:
    """A store whose objects are files below a folder."""
    folder.mkdir(exist_ok=True)
    return Store(SubTreeFileSystem(str(folder), LocalFileSystem()), "run", f"test://{folder.name}")


class FailingStore(Store):
    """A store that accepts a number of changes and then fails; the last one may be lost."""

    def __init__(self, folder: Path, changes: int) -> None:
        alive = store_in(folder)
        super().__init__(alive._fs, alive._base, alive.uri)
        self.left, self.count = changes, 0

    def _changed(self, what: str, work: Callable[[], None]) -> None:
        if self.count >= self.left:
            raise RecordError(f"died before it {what}")
        self.count += 1
        super()._changed(what, work)


def no_waiting(patch: pytest.MonkeyPatch) -> None:
    """Disables waits for flushes and leases: the last owner is always considered dead."""
    patch.setattr(lease, "SETTLE_S", 0.0)
    patch.setattr(lease, "LEASE_S", 0.0)
    patch.setattr(journal, "FLUSH_S", 0.01)


async def write(store: Store, debates: int, *, ends: bool = True) -> list[str]:
    """Run every debate without a verdict; returns the ids of those whose verdict is durable.

    Args:
        ends: whether the run is finished, so that its journal is compacted; else it is stopped.
    """
    mirror, durable = Mirror(store), list[str]()
    record = RunFolder(mirror.folder, store)

    async def work(epoch: int) -> None:
        if not record.exists():
            record.put("run.yaml", b"schema_version: 4\n")
        writer = RecordWriter(record, epoch)
        await writer.load()
        try:
            async for case_id in resume(record, writer, debates, f"e{epoch}"):
                durable.append(case_id)
        finally:
            await writer.close(compact=ends)
        mirror.pull()
        if ends:
            compact_leftovers(record, epoch)

    try:
        await (await RecordOwner.acquire(record)).run(work)
    except RecordError as error:
        if "died" not in str(error):
            raise
    finally:
        mirror.remove()
    return durable


def read_remotely(store: Store, to: Path) -> Path:
    """The record as another machine reads it."""
    mirror = Mirror(store)
    mirror.pull()
    shutil.move(mirror.folder, to)
    mirror.remove()
    return to
