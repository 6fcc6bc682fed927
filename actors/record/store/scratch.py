"""Folders of this process alone, below the machine's folder for temporary files; gone with the process.

A process that is killed leaves its folder; the next one that makes one on the machine takes it away.
"""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path

from moot.actors.folder_lock import LOCK, FolderLock, take_away_the_dead

_PREFIX = "moot-scratch-"


class Scratch:
    """A new folder, removed by `remove`, when nothing refers to it any more, or at the end of the process.

    Attributes:
        path: the folder, absolute.
    """

    def __init__(self) -> None:
        take_away_the_dead(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{LOCK}"))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._gone = weakref.finalize(self, FolderLock(self.path).remove)

    def remove(self) -> None:
        """Remove the folder now."""
        self._gone()
