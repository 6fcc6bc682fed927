"""Two files of a server's accepted requests, each of which says what the other must contain.

inbox/
    requests.log    every change of the queue with the request's body: one checksummed frame each
    ids.log         the same changes without bodies, written after the former and synced together with it
    owner.lock      held (flock) by the one server that writes
    damaged/        copies of files that were damaged when a server opened them

Changes are numbered, and either file is read to its end whatever is damaged in between. What one file has lost, the
other one has: only a body has no second copy, and `ids.log` names its request.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import msgspec
import pyarrow as pa

from moot.actors.record.frames import Frame, frame_at, frame_header, frames_until_damage, whole_frames
from moot.protocols.errors import RecordError
from moot.protocols.regular_files import map_regular

REQUESTS, IDS = "requests.log", "ids.log"
ASIDE = "damaged"
_LONGEST_CHANGE = 4096
"""Most bytes of a change before its body."""
_GROWTH_BYTES = 2**18
"""Zeros by which a file grows: a write into them is on the disk several times sooner than one that makes it longer."""

What = Literal["accept", "end", "cancel", "lose"]


class Change(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Change of the queue.

    Attributes:
        number: from 1, consecutive.
        what: `accept` adds a request, `end` removes it, `cancel` and `lose` leave its id only.
        kind: of request.
        id: of its case.
    """

    number: int
    what: What
    kind: str
    id: str


class Begin(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """First frame of a file: what it holds of earlier changes, so that a missing one is noticed.

    Attributes:
        next: number of the first change that is appended.
        kept: number of earlier changes that it repeats, those that still matter.
        lost_ids: whether ids of accepted requests were lost earlier.
    """

    next: int
    kept: int
    lost_ids: bool = False


_DECODER = msgspec.json.Decoder(Change | Begin)


def encode(entry: Change | Begin, body: bytes = b"") -> bytes:
    """Frame of a change, with the request's body."""
    payload = msgspec.json.encode(entry) + b"\n" + body
    return frame_header(payload) + payload


def decode(frame: Frame) -> tuple[Change | Begin, pa.Buffer]:
    """Change and body in a frame.

    Raises:
        RecordError: a frame with a correct checksum holds something else.
    """
    line, end, _ = frame.payload.slice(0, min(_LONGEST_CHANGE, frame.payload.size)).to_pybytes().partition(b"\n")
    try:
        return _DECODER.decode(line), frame.payload.slice(len(line) + len(end))
    except msgspec.MsgspecError as error:
        raise RecordError(f"a frame holds no change of an inbox: {error}") from None


class Span(NamedTuple):
    """Place of a frame in `requests.log`, in bytes."""

    at: int
    length: int


@dataclass
class Content:
    """What a file of changes holds.

    Attributes:
        begin: its first frame; None when that is missing.
        changes: by number, each with its place.
        end: offset behind its last whole frame.
        damage: one line for each damaged place; an unfinished last write is none.
    """

    begin: Begin | None = None
    changes: dict[int, tuple[Change, Span]] = field(default_factory=dict)
    end: int = 0
    damage: list[str] = field(default_factory=list)


def read_changes(path: Path) -> Content:
    """Reads a file of changes, around its damage; a missing one is empty.

    Raises:
        RecordError: it cannot be read.
    """
    found = Content()
    try:
        if not path.exists():
            return found
        if not path.is_file():
            raise RecordError(f"{path} is not a file")
        content = pa.py_buffer(map_regular(path))
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from None
    for frame in whole_frames(content):
        if frame.at > found.end:
            found.damage.append(f"{path}: damaged from byte {found.end:,} to {frame.at:,}")
        found.end = frame.end
        try:
            entry, _ = decode(frame)
        except RecordError as error:
            found.damage.append(f"{path}: byte {frame.at:,}: {error}")
            continue
        if isinstance(entry, Begin):
            found.begin = entry
        else:
            found.changes[entry.number] = entry, Span(frame.at, frame.end - frame.at)
    try:
        for _ in frames_until_damage(path, content.slice(found.end)):
            pass
    except RecordError:
        found.damage.append(f"{path}: damaged from byte {found.end:,} to its end")
    if found.begin is None and found.changes and not found.damage:
        found.damage.append(f"{path}: its beginning is missing")
    return found


@dataclass
class Merged:
    """What the two files of an inbox hold together.

    Attributes:
        changes: in their order; None instead of a place for one that `requests.log` has lost.
        next: number of the next change.
        lost_ids: whether ids of accepted requests are lost.
        newly_lost_ids: whether some were lost since a server opened the files.
    """

    changes: list[tuple[Change, Span | None]]
    next: int
    lost_ids: bool
    newly_lost_ids: bool


def merge(requests: Content, ids: Content) -> Merged:
    """All changes that one of the two files has."""
    both: dict[int, tuple[Change, Span | None]] = {n: (change, None) for n, (change, _) in ids.changes.items()}
    both |= requests.changes
    begun = [content.begin for content in (requests, ids) if content.begin is not None]
    following = max([max(both, default=0) + 1, *(begin.next for begin in begun)])
    if begun:
        # The file that begins earlier has every change since; the other one may have been rewritten meanwhile.
        first = min(begun, key=lambda begin: begin.next)
        earlier = sum(number < first.next for number in both)
        missing = earlier < first.kept or len(both) - earlier < following - first.next
    else:
        missing = bool(requests.damage and ids.damage)
    lost = missing or any(begin.lost_ids for begin in begun)
    return Merged([both[number] for number in sorted(both)], following, lost, missing)


class ChangeFile:
    """File of changes, open for appending.

    Args:
        path: the file.
        size: offset behind its last whole frame; what lies behind is removed.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self._file: BinaryIO = open(path, "r+b", buffering=0)  # noqa: SIM115 - open as long as the inbox
        self._written = 0
        self._is_clean = False
        self._allocated = size

    def append(self, data: bytes | bytearray) -> None:
        """Write data, which is on the disk after `sync`, and counts from `keep` on.

        Raises:
            OSError: it cannot be written.
        """
        self.undo()
        self._is_clean = False
        end = self.size + len(data)
        if end > self._allocated:
            data = bytes(data) + bytes(_GROWTH_BYTES)
            self._allocated = end + _GROWTH_BYTES
        with memoryview(data) as rest:
            while self._written < len(rest):
                self._written += os.pwrite(self._file.fileno(), rest[self._written :], self.size + self._written)
        self._written = end - self.size

    def sync(self) -> None:
        """Sync what was appended to the disk.

        Raises:
            OSError: it cannot be written.
        """
        os.fdatasync(self._file.fileno())

    def keep(self) -> None:
        """Count what was appended last."""
        self.size += self._written
        self._written, self._is_clean = 0, True

    def undo(self) -> None:
        """Remove what was appended and not kept.

        Raises:
            OSError: it cannot be written.
        """
        self._written = 0
        if not self._is_clean:
            os.ftruncate(self._file.fileno(), self.size)
            self._allocated = self.size
            self._is_clean = True

    def frame(self, span: Span) -> Frame | None:
        """Frame at a place; None when it is damaged.

        Raises:
            OSError: it cannot be read.
        """
        return frame_at(pa.py_buffer(os.pread(self._file.fileno(), span.length, span.at)), 0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def write_draft(path: Path, frames: Iterator[bytes]) -> Callable[[], int]:
    """Writes a new version of a file beside it; the returned function replaces the file, and gives its size.

    Raises:
        OSError: it cannot be written; nothing of it then remains.
    """
    draft = path.with_name(f".{path.name}.tmp")
    try:
        with open(draft, "wb") as file:
            for frame in frames:
                file.write(frame)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise

    def replace() -> int:
        os.replace(draft, path)
        sync_folder(path.parent)
        return size

    return replace


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
