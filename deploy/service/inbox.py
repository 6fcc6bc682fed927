"""Durable queue of accepted requests: a server that was killed resumes them when it restarts.

The record has a debate's replies; the request itself, pictures included, is stored here from its acceptance until its
verdict is recorded. See `inbox_files` for what is on the disk.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import structlog

from moot.deploy.service.inbox_store import InboxStore, StoredRequest, WantedChange
from moot.deploy.service.request_queue import Key
from moot.protocols.errors import RecordError

_log = structlog.get_logger(__name__)


class _Waiting(NamedTuple):
    change: WantedChange
    done: asyncio.Future[None]


class Inbox:
    """Accepted requests by kind and id. Lives in one event loop; changes during a write share the next one.

    Args:
        folder: created if missing; its only user is the owner of the record.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store: InboxStore | None = None
        self._turn = asyncio.Lock()
        self._changes: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the files; what is damaged is logged, and left out.

        Raises:
            RecordError: they cannot be opened, or another process has them open.
        """
        self._store = await asyncio.to_thread(InboxStore, self._folder)

    def accept(self, kind: str, case_id: str, body: bytes) -> asyncio.Future[None]:
        """Store a request; the returned future completes when it is durable, or raises `RecordError`."""
        return self._change(WantedChange("accept", Key(kind, case_id), body))

    def acknowledge(self, kind: str, case_id: str) -> asyncio.Future[None]:
        """Remove a request that has ended and is recorded."""
        return self._change(WantedChange("end", Key(kind, case_id)))

    def cancel(self, kind: str, case_id: str) -> asyncio.Future[None]:
        """Mark a request as cancelled, among the last `MAX_CANCELLED`, and delete its body."""
        return self._change(WantedChange("cancel", Key(kind, case_id)))

    def _change(self, change: WantedChange) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(lambda done: done.cancelled() or done.exception())  # there may be no waiter
        self._changes.append(_Waiting(change, done))
        if len(self._changes) == 1:
            self._writing = asyncio.create_task(self._write())
        return done

    async def pending(self, kind: str) -> list[tuple[str, bytes]]:
        """Id and body of the pending requests, oldest first."""
        await self._written()
        async with self._turn:
            return await asyncio.to_thread(self._pending, kind)

    def _pending(self, kind: str) -> list[tuple[str, bytes]]:
        store = self._use()
        found = ((key, store.find(key)) for key in store.pending(kind))
        return [(key.id, stored.body) for key, stored in found if stored is not None and stored.state == "pending"]

    async def find(self, kind: str, case_id: str) -> StoredRequest | None:
        """A request that has not ended; None for an unknown one."""
        await self._written()
        async with self._turn:
            return await asyncio.to_thread(lambda: self._use().find(Key(kind, case_id)))

    def lost(self, kind: str) -> int:
        """Number of lost requests: accepted, damaged on the disk, and not sent again."""
        return 0 if self._store is None else self._store.lost(kind)

    @property
    def has_lost_ids(self) -> bool:
        """Whether ids of accepted requests were lost too, so that an unknown id may be one of them."""
        return self._store is not None and self._store.lost_ids

    async def _written(self) -> None:
        while self._changes and self._writing is not None:
            await self._writing

    async def _write(self) -> None:
        """Commit all changes in one write; a failure goes to their waiters, and later writes may succeed."""
        async with self._turn:
            batch, self._changes = self._changes, []
            failed: RecordError | None = None
            try:
                await asyncio.to_thread(self._commit, batch)
            except Exception as error:
                _log.error("accepted requests cannot be stored", error=repr(error))
                failed = RecordError(f"{self._folder} cannot be written")
        for change in batch:
            if not change.done.done():
                change.done.set_result(None) if failed is None else change.done.set_exception(failed)

    def _commit(self, batch: list[_Waiting]) -> None:
        self._use().commit([waiting.change for waiting in batch])

    def _use(self) -> InboxStore:
        if self._store is None:
            raise RecordError(f"{self._folder} is not open")
        return self._store

    async def close(self) -> None:
        """Flush and close the files. Idempotent."""
        await self._written()
        async with self._turn:
            if self._store is not None:
                await asyncio.to_thread(self._store.close)
            self._store = None
