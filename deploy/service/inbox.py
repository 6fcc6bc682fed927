"""Durable queue of accepted requests: a server that was killed resumes them when it restarts.

The record has a debate's replies; the request itself, pictures included, is stored here from its acceptance until its
verdict is recorded. One SQLite file per server, whose only user is the owner of the record.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import NamedTuple

import structlog

from moot.protocols.errors import RecordError

_log = structlog.get_logger(__name__)
_MAKE = (
    # Exclusive: no shared memory beside the file, so that it works on a shared file system.
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    """
    CREATE TABLE IF NOT EXISTS requests (
        number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, cancelled INTEGER NOT NULL, body BLOB,
        UNIQUE (kind, id)
    )
    """,
    "CREATE INDEX IF NOT EXISTS cancelled_ones ON requests (kind, number) WHERE cancelled = 1",
)
_PUT = """
INSERT INTO requests (kind, id, cancelled, body) VALUES (?, ?, 0, ?)
ON CONFLICT (kind, id) DO UPDATE SET cancelled = 0, body = excluded.body
"""
_FORGET = "DELETE FROM requests WHERE kind = ? AND id = ?"
_CANCEL = "UPDATE requests SET cancelled = 1, body = NULL WHERE kind = ? AND id = ?"
_TRIM = """
DELETE FROM requests WHERE kind = ?1 AND cancelled = 1 AND number <= (
    SELECT number FROM requests WHERE kind = ?1 AND cancelled = 1 ORDER BY number DESC LIMIT 1 OFFSET ?2
)
"""
MAX_CANCELLED = 10_000
"""Cancelled requests kept per kind: the most recently accepted ones."""


class _Change(NamedTuple):
    statement: str
    values: tuple[str | bytes, ...]
    done: asyncio.Future[None]


class Inbox:
    """Accepted requests by kind and id. Lives in one event loop; changes during a write share the next one.

    Args:
        file: created if missing.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._turn = asyncio.Lock()
        self._changes: list[_Change] = []
        self._writing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the file.

        Raises:
            RecordError: it cannot be opened, or another process has it open.
        """
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        connection: sqlite3.Connection | None = None
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._file, timeout=1.0, check_same_thread=False, isolation_level=None)
            for statement in _MAKE:
                connection.execute(statement).fetchall()
        except (OSError, sqlite3.Error) as error:
            if connection is not None:
                connection.close()
            raise RecordError(f"{self._file} cannot be opened: {error}") from None
        self._connection = connection

    def accept(self, kind: str, case_id: str, body: bytes) -> asyncio.Future[None]:
        """Store a request; the returned future completes when it is durable, or raises `RecordError`."""
        return self._change(_PUT, kind, case_id, body)

    def acknowledge(self, kind: str, case_id: str) -> asyncio.Future[None]:
        """Remove a request that has ended and is recorded."""
        return self._change(_FORGET, kind, case_id)

    def cancel(self, kind: str, case_id: str) -> asyncio.Future[None]:
        """Mark a request as cancelled, among the last `MAX_CANCELLED`, and delete its body."""
        return self._change(_CANCEL, kind, case_id)

    def _change(self, statement: str, *values: str | bytes) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(lambda done: done.cancelled() or done.exception())  # there may be no waiter
        self._changes.append(_Change(statement, values, done))
        if len(self._changes) == 1:
            self._writing = asyncio.create_task(self._write())
        return done

    async def pending(self, kind: str) -> list[tuple[str, bytes]]:
        """Id and body of the pending requests, oldest first."""
        return await self._read("SELECT id, body FROM requests WHERE kind = ? AND cancelled = 0 ORDER BY number", kind)

    async def find(self, kind: str, case_id: str) -> tuple[bool, bytes] | None:
        """Whether a request is cancelled, else its body; None when it has ended."""
        found = await self._read("SELECT cancelled, body FROM requests WHERE kind = ? AND id = ?", kind, case_id)
        return next(((bool(cancelled), body or b"") for cancelled, body in found), None)

    async def _read(self, wanted: str, *values: str) -> list[tuple[str, bytes]]:
        await self._written()
        async with self._turn:
            return await asyncio.to_thread(lambda: self._use().execute(wanted, values).fetchall())

    async def _written(self) -> None:
        while self._changes and self._writing is not None:
            await self._writing

    async def _write(self) -> None:
        """Commit all changes in one transaction; a failure goes to their waiters, and later writes may succeed."""
        async with self._turn:
            batch, self._changes = self._changes, []
            failed: RecordError | None = None
            try:
                await asyncio.to_thread(self._commit, batch)
            except Exception as error:
                _log.error("accepted requests cannot be stored", error=repr(error))
                failed = RecordError(f"{self._file} cannot be written")
        for change in batch:
            if not change.done.done():
                change.done.set_result(None) if failed is None else change.done.set_exception(failed)

    def _commit(self, batch: list[_Change]) -> None:
        connection = self._use()
        connection.execute("BEGIN")
        try:
            for change in batch:
                connection.execute(change.statement, change.values)
            for kind in {change.values[0] for change in batch if change.statement == _CANCEL}:
                connection.execute(_TRIM, (kind, MAX_CANCELLED))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _use(self) -> sqlite3.Connection:
        if self._connection is None:
            raise RecordError(f"{self._file} is not open")
        return self._connection

    async def close(self) -> None:
        """Flush and close the file. Idempotent."""
        await self._written()
        async with self._turn:
            if self._connection is not None:
                await asyncio.to_thread(self._connection.close)
            self._connection = None
