"""Folders of this process alone, below the machine's folder for temporary files; gone with the process.

A process that is killed leaves its folder; the next one that makes one on the machine takes it away.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import IO

_PREFIX = "moot-scratch-"
_LOCK = ".lock"


class Scratch:
    """A new folder, removed by `remove`, when nothing refers to it any more, or at the end of the process.

    Attributes:
        path: the folder, absolute.
    """

    def __init__(self) -> None:
        _take_away_the_dead()
        self.path, lock = _made()
        self._gone = weakref.finalize(self, _remove, self.path, lock)

    def remove(self) -> None:
        """Remove the folder now."""
        self._gone()


def _made() -> tuple[Path, IO[bytes]]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = open(path / _LOCK, "wb")  # noqa: SIM115 - held as long as the folder
        if _locked(lock) and path.exists():
            return path, lock
        lock.close()


def _locked(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(path: Path, lock: IO[bytes]) -> None:
    shutil.rmtree(path, ignore_errors=True)
    lock.close()


def _take_away_the_dead() -> None:
    """Folders whose process has let go of their lock without removing them."""
    for found in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            if found.stat().st_uid != os.getuid():
                continue
            with open(found, "r+b") as lock:
                if _locked(lock):
                    shutil.rmtree(found.parent, ignore_errors=True)
        except OSError:
            continue
