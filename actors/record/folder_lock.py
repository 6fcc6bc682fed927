"""Folders that are gone with their process: one that is killed leaves its own, and the next process takes that away."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO

LOCK = ".moot-lock"
"""The file that a living process holds locked in a folder of its own."""


class FolderLock:
    """Says that this process uses a folder, until it is removed or the process ends, in whatever way.

    Args:
        folder: this process's alone.

    Raises:
        OSError: it is gone, or being taken away.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        making = folder / f"{LOCK}.{os.getpid()}"
        self._lock = _locked(making)
        making.rename(folder / LOCK)  # never there unlocked, which would be a dead one's

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.close()


def remove_stale_folders(locks: Iterable[Path]) -> None:
    """Remove the folders of those locks whose processes have ended without doing so."""
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
