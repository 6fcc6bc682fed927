"""Folders owned by a process: a killed process leaves its folder, and the next process removes it."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO

LOCK = ".moot-lock"
"""File that a process keeps locked in its folder."""


class FolderLock:
    """Lock of a folder of this process, until it is removed or the process ends, in whatever way.

    Args:
        folder: exclusive to this process.

    Raises:
        OSError: it does not exist, or is being removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        making = folder / f"{LOCK}.{os.getpid()}"
        self._lock = _locked(making)
        making.rename(folder / LOCK)  # never visible unlocked: unlocked means stale

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.close()


def remove_stale_folders(locks: Iterable[Path]) -> None:
    """Removes the folders of locks whose processes have ended."""
    for lock in locks:
        try:
            if lock.stat().st_uid == os.getuid():
                with _locked(lock):
                    shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:  # locked, or removed meanwhile
            continue


def _locked(path: Path) -> IO[bytes]:
    """Lock a file. Raises OSError when another process has it locked."""
    file = open(path, "ab")  # noqa: SIM115 - held as long as the folder
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file
