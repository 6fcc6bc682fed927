"""Folders that belong to a process: a killed process leaves its own, and the next process removes that."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO

LOCK = ".moot-lock"
"""The file that a process keeps locked in a folder of its own."""


class FolderLock:
    """Lock of a folder that this process uses, until it is removed or the process ends, in whatever way.

    Args:
        folder: this process's alone.

    Raises:
        OSError: it is gone, or being removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        making = folder / f"{LOCK}.{os.getpid()}"
        self._lock = _locked(making)
        making.rename(folder / LOCK)  # never there unlocked: unlocked means stale

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.close()


def remove_stale_folders(locks: Iterable[Path]) -> None:
    """Removes the folders of those locks whose processes have ended without doing so."""
    for lock in locks:
        try:
            if lock.stat().st_uid == os.getuid():
                with _locked(lock):
                    shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:  # held, or gone meanwhile
            continue


def _locked(path: Path) -> IO[bytes]:
    """Raises OSError when another process holds it."""
    file = open(path, "ab")  # noqa: SIM115 - held as long as the folder
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file
