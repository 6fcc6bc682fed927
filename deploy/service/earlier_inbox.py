"""Inbox of an earlier version: an SQLite file without checksums of its own, read once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from moot.protocols.errors import RecordError

_ROWS = "SELECT kind, id, cancelled, body FROM requests ORDER BY number"


class EarlierRow(NamedTuple):
    """Accepted request of an earlier version; the body is empty when it is cancelled."""

    kind: str
    id: str
    is_cancelled: bool
    body: bytes


class EarlierInbox:
    """SQLite file of accepted requests and its write-ahead log.

    Args:
        file: need not exist.

    Attributes:
        damage: what is wrong with it, from the end of `rows` on; empty when nothing was noticed.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.damage = ""

    def exists(self) -> bool:
        """Whether there is such a file."""
        return self._file.is_file()

    def rows(self) -> Iterator[EarlierRow]:
        """Requests, oldest first, up to the first that cannot be read.

        Raises:
            RecordError: another process has the file open.
        """
        try:
            with closing(sqlite3.connect(self._file, timeout=1.0, isolation_level=None)) as connection:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
                for kind, case_id, cancelled, body in connection.execute(_ROWS):
                    yield msgspec.convert((kind, case_id, bool(cancelled), body or b""), EarlierRow)
                ((told,), *_) = connection.execute("PRAGMA integrity_check(1)").fetchall()
                self.damage = "" if told == "ok" else told
        except (sqlite3.Error, ValueError, msgspec.ValidationError) as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise RecordError(f"{self._file} cannot be opened: {error}") from None
            self.damage = f"{self._file}: {error}"

    def remove(self, aside: Path | None) -> None:
        """Remove its files, once their requests are stored elsewhere.

        Args:
            aside: folder to which they are moved instead; created if missing.

        Raises:
            OSError: they cannot be removed.
        """
        for suffix in ("-wal", "-shm", ""):  # the file itself last: while it is there, this is repeated
            file = self._file.with_name(self._file.name + suffix)
            if file.exists() and aside is not None:
                aside.mkdir(exist_ok=True)
                os.replace(file, aside / file.name)
            else:
                file.unlink(missing_ok=True)
