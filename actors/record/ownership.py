"""Ownership of a record: a lock on its folder, or in a store a lease, and an epoch that ends those of older owners."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

import structlog

from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.completeness import check_complete
from moot.actors.record.files import encode_file, file_bytes, refuse_links
from moot.actors.record.flush_log import SUFFIX, last_flush
from moot.actors.record.folder import Epoch, RunFolder
from moot.actors.record.roll_files import epoch_of, roll_of, stream_of_segment
from moot.actors.record.segments import flushed_end
from moot.actors.record.store.lease import Lease
from moot.actors.record.store.mirror import pull
from moot.protocols.errors import RecordError, RunFolderBusy

_log = structlog.get_logger(__name__)
T = TypeVar("T")

_LOOKS, _LOOK_S = 20, 0.01
"""Attempts to lock a folder, and the seconds after each: longer than `RunFolder.is_owned` has the lock."""


class Ownership:
    """Ownership of a run's folder: the right to write, from `acquire` to `release`; lost with the process."""

    def __init__(self, folder: RunFolder, lock: IO[bytes], epoch: int) -> None:
        self.folder = folder
        self.epoch = epoch
        self._lock = lock

    @classmethod
    def acquire(cls, folder: RunFolder, first: Callable[[RunFolder], object] = check_complete) -> Ownership:
        """Acquire the folder: a new epoch begins, and later additions of older owners do not count.

        Args:
            first: done with the record once it is locked, before the epoch begins.

        Raises:
            RunFolderBusy: another live process owns the folder.
            RecordError: the folder cannot be written, contains a link that leads out of it, or is not complete.
        """
        refuse_links(folder.path)
        try:
            folder.journal.mkdir(parents=True, exist_ok=True)
            folder.parts.mkdir(exist_ok=True)
            lock = open(folder.path / "owner.lock", "a+b", buffering=0)  # noqa: SIM115 - held for the run
        except OSError as error:
            raise RecordError(f"cannot write to {folder.path}: {error.strerror}") from error
        try:
            if not _lock(lock):
                lock.seek(0)
                owner = lock.read().decode(errors="replace").strip()
                raise RunFolderBusy(
                    f"{folder.path} is being written by another process ({owner or 'unknown'}); wait for it or stop it"
                )
            lock.seek(0)
            lock.truncate()
            lock.write(f"pid {os.getpid()}".encode())
            first(folder)
            return cls(folder, lock, begin_epoch(folder))
        except OSError as error:
            lock.close()
            raise RecordError(f"cannot write to {folder.path}: {error.strerror}") from error
        except BaseException:
            lock.close()
            raise

    def release(self) -> None:
        """Release the folder."""
        self._lock.close()


def _lock(file: IO[bytes]) -> bool:
    """Lock a file; False while an owner has it. A process that looks whether there is one has it for a moment."""
    for _ in range(_LOOKS):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOOK_S)
        else:
            return True
    return False


class RecordOwner:
    """Owner of a record: the right to write it, from `acquire` to the end of `run`; each is called once.

    Args:
        folder: the record.
        lock: the lock or lease.
    """

    def __init__(self, folder: RunFolder, lock: Ownership | Lease) -> None:
        self._folder, self._lock = folder, lock

    @classmethod
    async def acquire(cls, folder: RunFolder) -> RecordOwner:
        """Become the owner. In a store this waits until the lease of a killed owner has expired.

        Raises:
            RunFolderBusy: another live process owns the record.
            RecordError: it cannot be written.
        """
        if folder.store is not None:
            return cls(folder, await Lease.acquire(folder.store))
        return cls(folder, await asyncio.to_thread(Ownership.acquire, folder))

    async def run(self, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
        """Run the work with this owner's number, and release the record.

        Raises:
            RecordError: another process has taken the record over; the work was cancelled.
        """
        lock = self._lock
        if isinstance(lock, Ownership):
            try:
                return await work(lock.epoch)
            finally:
                lock.release()
        try:
            return await lock.run(self._take_over_and_run(lock, work))
        finally:
            await lock.release()

    async def _take_over_and_run(self, lease: Lease, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
        return await work(await asyncio.to_thread(self._take_over, lease))

    def _take_over(self, lease: Lease) -> int:
        """Start the epoch. Leftovers of a killed owner are compacted at once, so that it can no longer remove
        anything."""
        folder = self._folder
        assert folder.store is not None
        pull(folder.store, folder.path)
        for made in (folder.journal, folder.parts):
            made.mkdir(exist_ok=True)
        check_complete(folder)
        number = begin_epoch(folder)
        if not lease.in_order:
            compact_leftovers(folder, number)
        return number


def owner_pid(folder: RunFolder) -> int | None:
    """Process id of the folder's live owner, if it runs on this machine.

    It is asked of the kernel: the lock's file was written by the last owner, here or elsewhere.
    """
    try:
        lock = (folder.path / "owner.lock").stat()
        locks = Path("/proc/locks").read_text()
    except OSError:
        return None
    place = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}:{lock.st_ino}"
    for fields in map(str.split, locks.splitlines()):
        if fields[1:4] == ["FLOCK", "ADVISORY", "WRITE"] and fields[5] == place:
            return int(fields[4]) if int(fields[4]) > 0 else None  # 0 is a process of another container
    return None


def begin_epoch(folder: RunFolder) -> int:
    """Starts the epoch of a new owner, so that later additions of older ones do not count; returns its number.

    The caller has checked that the record is complete: afterwards its segments count as they are.

    Raises:
        RecordError: the folder cannot be written.
    """
    epochs = folder.epochs()
    sizes = dict(_sizes(folder, {name for epoch in epochs for name in epoch.valid_bytes}))
    parts = None if folder.store is None else sorted(p.stem for p in folder.parts.glob("*.json"))
    known = {roll for epoch in epochs for roll in epoch.rolls}
    rolls = sorted({p.name.removesuffix(SUFFIX) for p in folder.parts.glob(f"*{SUFFIX}")} - known)
    files = [path.name for place in (folder.journal, folder.parts) for path in place.glob("e*")]
    number = max([*(epoch.number for epoch in epochs), *map(epoch_of, files)], default=0) + 1
    epochs.append(Epoch(number, time.time(), sizes, parts, rolls))
    folder.put("epochs.json", encode_file(epochs))
    return number


def _sizes(folder: RunFolder, known: set[str]) -> Iterator[tuple[str, int]]:
    """Segments that no earlier owner knew, with the lengths that count: where a flush log says what must be there, up
    to the last whole batch."""
    for path in sorted(folder.journal.glob("e*.arrows")):
        if path.name in known:
            continue
        flushed = last_flush(folder.flush_log(roll_of(path.name)))
        if flushed is None:
            yield path.name, file_bytes(path)
            continue
        stream = stream_of_segment(path.name)
        least = flushed.least().get(stream, 0)
        end = flushed_end(path, least)
        if (lost := flushed.written.get(stream, 0) - end) > 0 and end >= least:
            _log.warning(
                "this machine has started again since the run ended, and the last second of the run never reached its "
                "disk: what was lost is paid for again",
                segment=path.name,
                lost_bytes=lost,
            )
        yield path.name, end
