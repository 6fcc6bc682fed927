"""Ownership of a run's folder: a lock on this machine, and an epoch that ends those of older owners."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO

from moot.actors.record.files import encode_file, refuse_links
from moot.actors.record.folder import Epoch, RunFolder
from moot.protocols.errors import RecordError, RunFolderBusy


class Ownership:
    """Ownership of a run's folder: the right to write, from `acquire` to `release`; lost with the process."""

    def __init__(self, folder: RunFolder, lock: IO[bytes], epoch: int) -> None:
        self.folder = folder
        self.epoch = epoch
        self._lock = lock

    @classmethod
    def acquire(cls, folder: RunFolder) -> Ownership:
        """Acquire the folder: a new epoch begins, and later additions of older owners do not count.

        Raises:
            RunFolderBusy: another live process owns the folder.
            RecordError: the folder cannot be written, or contains a link that leads out of it.
        """
        refuse_links(folder.path)
        try:
            folder.journal.mkdir(parents=True, exist_ok=True)
            folder.parts.mkdir(exist_ok=True)
            lock = open(folder.path / "owner.lock", "a+b")  # noqa: SIM115 - held for the run
        except OSError as error:
            raise RecordError(f"cannot write to {folder.path}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.read().decode(errors="replace").strip()
            lock.close()
            raise RunFolderBusy(
                f"{folder.path} is being written by another process ({owner or 'unknown'}); wait for it or stop it"
            ) from None
        try:
            lock.seek(0)
            lock.truncate()
            lock.write(f"pid {os.getpid()}".encode())
            lock.flush()
            return cls(folder, lock, begin_epoch(folder))
        except OSError as error:
            lock.close()
            raise RecordError(f"cannot write to {folder.path}: {error.strerror}") from error
        except RecordError:
            lock.close()
            raise

    def release(self) -> None:
        """Release the folder."""
        self._lock.close()


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

    Raises:
        RecordError: the folder cannot be written.
    """
    epochs = folder.epochs()
    known = {name for epoch in epochs for name in epoch.valid_bytes}
    sizes = {p.name: p.stat().st_size for p in folder.journal.glob("e*.arrows") if p.name not in known}
    parts = None if folder.store is None else sorted(p.stem for p in folder.parts.glob("*.json"))
    number = max((epoch.number for epoch in epochs), default=0) + 1
    epochs.append(Epoch(number, time.time(), sizes, parts))
    folder.put("epochs.json", encode_file(epochs))
    return number
