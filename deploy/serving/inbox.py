"""What was accepted and has not ended, kept on disk: a server that is killed goes on with it when it is back.

The record holds what a debate has said; the request itself, pictures and all, is here from before it is accepted until
its verdict is on record. One SQLite file per server, whose only user is the owner of the record.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from moot.actors.remote.mailbox import Mailbox
from moot.protocols.errors import RecordError

_log = structlog.get_logger(__name__)
_SPACING_S = 0.002
_TABLE = """
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, cancelled INTEGER NOT NULL, body BLOB,
    UNIQUE (kind, id)
)
"""
_PUT = """
INSERT INTO requests (kind, id, cancelled, body) VALUES (?, ?, 0, ?)
ON CONFLICT (kind, id) DO UPDATE SET cancelled = 0, body = excluded.body
"""


_INDEX = "CREATE INDEX IF NOT EXISTS cancelled_ones ON requests (kind, number) WHERE cancelled = 1"
_CANCEL = "UPDATE requests SET cancelled = 1, body = NULL WHERE kind = ? AND id = ?"
_TRIM = """
DELETE FROM requests WHERE kind = ?1 AND cancelled = 1 AND number <= (
    SELECT number FROM requests WHERE kind = ?1 AND cancelled = 1 ORDER BY number DESC LIMIT 1 OFFSET ?2
)
"""
KEPT_CANCELLED = 10_000
"""Cancelled requests that are remembered, of each kind: those that were accepted last."""


@dataclass(frozen=True)
class _Change:
    statement: str
    values: tuple[str | bytes, ...]
    done: asyncio.Future[None]


class Inbox:
    """Accepted requests by kind and id. Lives in one event loop; many changes share one write to the disk.

    Args:
        file: made when it is not there.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._turn = asyncio.Lock()
        self._changes: Mailbox[_Change] = Mailbox(self._write, spacing_s=_SPACING_S)

    async def open(self) -> None:
        """Open the file.

        Raises:
            RecordError: it cannot be opened, or another process has it open.
        """
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._file, timeout=1.0, check_same_thread=False, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise RecordError(f"{self._file} cannot be opened: {error}") from None
        try:
            # Exclusive: no shared memory beside the file, so that a shared file system will do.
            for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.execute(_TABLE)
            connection.execute(_INDEX)
        except sqlite3.Error as error:
            connection.close()
            raise RecordError(f"{self._file} cannot be opened: {error}") from None
        self._connection = connection

    def accept(self, kind: str, case_id: str, body: bytes) -> asyncio.Future[None]:
        """Keep a request; what is given back is done when it is on disk, or raises `RecordError`."""
        return self._change(_PUT, kind, case_id, body)

    def forget(self, kind: str, case_id: str) -> asyncio.Future[None]:
        """It has ended, and that is on record."""
        return self._change("DELETE FROM requests WHERE kind = ? AND id = ?", kind, case_id)

    def cancel(self, kind: str, case_id: str) -> asyncio.Future[None]:
        """It was cancelled: that is remembered, among the last `KEPT_CANCELLED`, and what was asked is not."""
        return self._change(_CANCEL, kind, case_id)

    def _change(self, statement: str, *values: str | bytes) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_told)
        self._changes.post(_Change(statement, values, done))
        return done

    async def pending(self, kind: str) -> list[tuple[str, bytes]]:
        """Id and body of what was accepted and has neither ended nor been cancelled, the oldest first."""
        wanted = "SELECT id, body FROM requests WHERE kind = ? AND cancelled = 0 ORDER BY number"
        return [(case_id, body) for case_id, body in await self._read(wanted, kind)]

    async def accepted(self, kind: str, case_id: str) -> bytes | None:
        """The body of a request that was accepted and has neither ended nor been cancelled; None for any other one."""
        wanted = "SELECT id, body FROM requests WHERE kind = ? AND id = ? AND cancelled = 0"
        return next((body for _, body in await self._read(wanted, kind, case_id)), None)

    async def was_cancelled(self, kind: str, case_id: str) -> bool:
        """Whether a request was cancelled, and not made again since."""
        wanted = "SELECT 1 FROM requests WHERE kind = ? AND id = ? AND cancelled = 1"
        return bool(await self._read(wanted, kind, case_id))

    async def _read(self, wanted: str, *values: str) -> list[tuple[str, bytes]]:
        return await self._work(lambda connection: connection.execute(wanted, values).fetchall())

    async def _write(self, batch: list[_Change]) -> None:
        """One transaction for all; what cannot be written is told to whoever waits for it, and later ones may be."""
        try:
            await self._work(lambda connection: _all_of(connection, batch))
        except Exception as error:
            _log.error("accepted requests cannot be kept", error=repr(error))
            for change in batch:
                if not change.done.done():
                    change.done.set_exception(RecordError(f"{self._file} cannot be written"))
            return
        for change in batch:
            if not change.done.done():
                change.done.set_result(None)

    async def _work(self, work: Callable[[sqlite3.Connection], list[tuple[str, bytes]]]) -> list[tuple[str, bytes]]:
        async with self._turn:
            if self._connection is None:
                raise RecordError(f"{self._file} is not open")
            return await asyncio.to_thread(work, self._connection)

    async def close(self) -> None:
        """Write what is left, and let go the file. Closing twice is harmless."""
        if self._connection is None:
            return
        await self._changes.drained()
        await self._changes.close()
        async with self._turn:
            connection, self._connection = self._connection, None
            await asyncio.to_thread(connection.close)


def _all_of(connection: sqlite3.Connection, batch: list[_Change]) -> list[tuple[str, bytes]]:
    connection.execute("BEGIN")
    try:
        for change in batch:
            connection.execute(change.statement, change.values)
        for kind in {change.values[0] for change in batch if change.statement == _CANCEL}:
            connection.execute(_TRIM, (kind, KEPT_CANCELLED))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return []


def _told(done: asyncio.Future[None]) -> None:
    """Nobody may be waiting for a change: that it failed has been logged."""
    if not done.cancelled():
        done.exception()
