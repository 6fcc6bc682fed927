"""Store of accepted requests on disk: recovered when it is opened, rewritten when most of it has ended."""

from __future__ import annotations

import fcntl
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import structlog

from moot.deploy.service.earlier_inbox import EarlierInbox
from moot.deploy.service.inbox_files import (
    ASIDE,
    IDS,
    REQUESTS,
    Begin,
    Change,
    ChangeFile,
    Span,
    What,
    decode,
    encode,
    merge,
    read_changes,
    write_draft,
)
from moot.deploy.service.request_queue import Entry, Key, RequestQueue, State
from moot.protocols.errors import RecordError

_log = structlog.get_logger(__name__)
_SPARE_BYTES = 8 * 2**20
"""Bytes of ended requests that `requests.log` may hold beside as many bytes as the pending ones have."""
_BUSY_S = 1.0
_SHOWN = 20
_BATCH_BYTES, _BATCH_CHANGES = 8 * 2**20, 1000


class WantedChange(NamedTuple):
    """Change before it has a number; `what` as in `Change`."""

    what: What
    key: Key
    body: bytes = b""


class StoredRequest(NamedTuple):
    """Request that has not ended.

    Attributes:
        state: `pending` has a body; `lost` was accepted, and its body is damaged.
        body: empty unless it is pending.
    """

    state: State
    body: bytes


class InboxStore:
    """Files of an inbox, opened by their only writer. Not thread-safe.

    Args:
        folder: created if missing. An inbox of an earlier version beside it, `inbox.sqlite`, is moved into it.

    Attributes:
        lost_ids: whether ids of accepted requests were lost, so that an unknown id may be one of them.

    Raises:
        RecordError: it cannot be read or written, or another process has it open.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._queue = RequestQueue()
        self._next = 1
        self.lost_ids = False
        self._rewrite_at = 0
        self._files: list[ChangeFile] = []
        self._syncing = ThreadPoolExecutor(1, "inbox")  # two syncs at once take no longer than one
        self._lock: BinaryIO | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder / "owner.lock")
            self._recover()
            self._take_earlier(EarlierInbox(folder.with_name("inbox.sqlite")))
        except OSError as error:
            self.close()
            raise RecordError(f"{folder} cannot be opened: {error.strerror}") from None
        except BaseException:
            self.close()
            raise

    def _recover(self) -> None:
        """Read both files, say what is lost, and write anew what differs or is damaged."""
        requests, ids = read_changes(self._folder / REQUESTS), read_changes(self._folder / IDS)
        merged = merge(requests, ids)
        self._queue = RequestQueue(merged.changes)
        self._next, self.lost_ids = merged.next, merged.lost_ids
        damage = requests.damage + ids.damage
        if requests.begin is not None or requests.changes:
            self._open_files([(REQUESTS, requests.end)])
        if not damage and requests.begin == ids.begin is not None and requests.changes.keys() == ids.changes.keys():
            self._open_files([(REQUESTS, requests.end), (IDS, ids.end)])
            self._rewrite_at = 2 * self._queue.pending_bytes + _SPARE_BYTES
            return
        for line in damage:
            _log.warning("a file of accepted requests is damaged", error=line)
        _say_lost([key for key, entry in self._queue.entries.items() if entry.is_newly_lost])
        if merged.newly_lost_ids:
            _log.error("accepted requests are lost, and neither file has their ids")
        for name, content in ((REQUESTS, requests), (IDS, ids)):
            if content.damage:
                self._keep_copy(self._folder / name)
        self._rewrite()

    def _open_files(self, sizes: Sequence[tuple[str, int]]) -> None:
        self._close_files()
        self._files = [ChangeFile(self._folder / name, size) for name, size in sizes]

    def _keep_copy(self, damaged: Path) -> None:
        with suppress(OSError):  # the disk may be full, and the loss is logged all the same
            (self._folder / ASIDE).mkdir(exist_ok=True)
            shutil.copyfile(damaged, self._folder / ASIDE / f"{self._next}-{damaged.name}")

    def _take_earlier(self, earlier: EarlierInbox) -> None:
        """Move the requests of an earlier version's inbox into this one."""
        if not earlier.exists():
            return
        wanted: list[WantedChange] = []
        size = 0
        for row in earlier.rows():
            key = Key(row.kind, row.id)
            if key in self._queue.entries:
                continue  # this was interrupted before
            wanted.append(WantedChange("accept", key, row.body))
            wanted += [WantedChange("cancel", key)] if row.is_cancelled else []
            size += len(row.body)
            if size > _BATCH_BYTES or len(wanted) > _BATCH_CHANGES:
                self.commit(wanted)
                wanted, size = [], 0
        self.commit(wanted)
        if earlier.damage:
            _log.error("accepted requests of an earlier version may be lost", error=earlier.damage)
            self.lost_ids = True
            self._rewrite()
        earlier.remove(self._folder / ASIDE if earlier.damage else None)

    def commit(self, wanted: Sequence[WantedChange]) -> None:
        """Store changes; they are on the disk when this returns. A change of an unknown request is left out.

        Raises:
            OSError: they cannot be written, and none of them is stored.
        """
        requests, ids = self._files
        new: list[tuple[Change, Span]] = []
        bodies, names = bytearray(), bytearray()
        present: dict[Key, bool] = {}
        for what, key, body in wanted:
            if what != "accept" and not present.get(key, key in self._queue.entries):
                continue
            present[key] = what != "end"
            change = Change(self._next + len(new), what, key.kind, key.id)
            frame = encode(change, body)
            new.append((change, Span(requests.size + len(bodies), len(frame))))
            bodies += frame
            names += encode(change)
        if not new:
            return
        try:
            requests.append(bodies)
            ids.append(names)  # only now: whatever kills this process, what it names was written
            other = self._syncing.submit(ids.sync)
            requests.sync()
            other.result()
        except BaseException:
            for file in (ids, requests):
                with suppress(OSError):  # the next change tries again
                    file.undo()
            raise
        for file in self._files:
            file.keep()
        self._next += len(new)
        for change, span in new:
            self._queue.apply(change, span)
        if requests.size > self._rewrite_at:
            self._shrink()

    def _shrink(self) -> None:
        """Rewrite the files without what has ended. The changes before it are stored, even if it fails."""
        try:
            self._rewrite()
        except OSError as error:
            _log.warning("the inbox cannot be made smaller", error=repr(error))
            self._rewrite_at += _SPARE_BYTES

    def _rewrite(self) -> None:
        """Write both files anew, with what has not ended.

        A crash between the two leaves an older `ids.log`, whose changes give the same state.
        """
        begin = Begin(self._next, len(self._queue.entries), self.lost_ids)
        kept: list[tuple[Change, Span | None]] = []
        requests = write_draft(self._folder / REQUESTS, self._frames(begin, kept))
        names: list[Begin | Change] = [begin, *(change for change, _ in kept)]
        ids = write_draft(self._folder / IDS, map(encode, names))
        sizes = [(REQUESTS, requests()), (IDS, ids())]
        self._queue = RequestQueue(kept)
        self._open_files(sizes)
        self._rewrite_at = self._files[0].size + self._queue.pending_bytes + _SPARE_BYTES

    def _frames(self, begin: Begin, kept: list[tuple[Change, Span | None]]) -> Iterator[bytes]:
        """Frames of what has not ended; adds each change with its new place to `kept`."""
        frame = encode(begin)
        at = len(frame)
        yield frame
        for entry in self._queue.entries.values():
            body = self._body(entry) if entry.state == "pending" else None
            lost = entry.change.what == "accept" and body is None
            change = msgspec.structs.replace(entry.change, what="lose") if lost else entry.change
            frame = encode(change, body or b"")
            kept.append((change, Span(at, len(frame))))
            yield frame
            at += len(frame)

    def find(self, key: Key) -> StoredRequest | None:
        """A request; None when it is unknown, or has ended.

        Raises:
            OSError: it cannot be read.
        """
        entry = self._queue.entries.get(key)
        if entry is None or entry.state != "pending":
            return None if entry is None else StoredRequest(entry.state, b"")
        body = self._body(entry)
        if body is not None:
            return StoredRequest("pending", body)
        _say_lost([key])
        self._queue.apply(entry.change, None)
        return StoredRequest("lost", b"")

    def _body(self, entry: Entry) -> bytes | None:
        """Body of a pending request; None when it was damaged since the file was opened."""
        frame = None if entry.span is None else self._files[0].frame(entry.span)
        if frame is None:
            return None
        change, body = decode(frame)
        return bytes(memoryview(body)) if change == entry.change else None

    def pending(self, kind: str) -> list[Key]:
        """Pending requests of a kind, oldest first."""
        return self._queue.pending(kind)

    def lost(self, kind: str) -> int:
        """Number of lost requests of a kind."""
        return self._queue.lost[kind]

    def close(self) -> None:
        """Close the files."""
        self._syncing.shutdown()
        self._close_files()
        if self._lock is not None:
            self._lock.close()

    def _close_files(self) -> None:
        for file in self._files:
            file.close()
        self._files = []


def _say_lost(keys: Sequence[Key]) -> None:
    if keys:
        shown = [f"{key.kind}/{key.id}" for key in keys[:_SHOWN]]
        _log.error("accepted requests are lost, and can be sent again", count=len(keys), requests=shown)


def _locked(path: Path) -> BinaryIO:
    """Lock a file, once a server that is just stopping has released it.

    Raises:
        RecordError: another process has it locked.
    """
    file = open(path, "a+b")  # noqa: SIM115 - held as long as the inbox
    deadline = time.monotonic() + _BUSY_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except OSError as error:
            if not isinstance(error, BlockingIOError) or time.monotonic() > deadline:
                file.close()
                raise RecordError(f"{path.parent} cannot be opened: another server writes it") from None
        time.sleep(0.05)
