"""Flush log of a roll: how many bytes of each of its segments were flushed, in a file outside the journal.

parts/ROLL.flushes has one frame per flush (see `frames`), written after the data of the segments. It stays when the
roll becomes a part. So a segment that was cut, even between two batches, and a part that was lost are noticed. A log
that was cut or lost loses nothing but this protection.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec
import pyarrow as pa

from moot.actors.record.files import reading
from moot.actors.record.frames import frame_header, frames_until_damage, whole_frames
from moot.protocols.regular_files import map_regular, open_regular

SUFFIX = ".flushes"
_TAIL_BYTES = 8 * 2**10
"""Bytes at the end of a log in which its last entry is looked for: an entry has some hundred."""

Length = Annotated[int, msgspec.Meta(ge=0)]


class Flushed(msgspec.Struct, array_like=True):
    """Entry of a flush log: lengths in bytes by stream.

    Attributes:
        boot: id of the writing machine's start; empty if unknown.
        written: passed to the operating system; a killed process loses none of them.
        synced: synced to the disk; a power failure loses none of them.
    """

    boot: str
    written: dict[str, Length]
    synced: dict[str, Length]

    def least(self) -> dict[str, int]:
        """Lengths that must be there still. After the machine has started again, those beyond the last sync may have
        been lost in a power failure."""
        return self.written if self.boot and self.boot == boot_id() else self.synced


def append_flush(path: Path, written: Mapping[str, int], synced: Mapping[str, int], *, ends: bool = False) -> None:
    """Append an entry to a flush log, and pass it to the operating system.

    Args:
        written, synced: see `Flushed`.
        ends: whether it is the last one, which is also synced to the disk.

    Raises:
        OSError: it cannot be written.
    """
    payload = msgspec.msgpack.encode(Flushed(boot_id(), dict(written), dict(synced)))
    path.parent.mkdir(exist_ok=True)
    with open(path, "ab") as file:
        file.write(frame_header(payload) + payload)
        if ends:
            file.flush()
            os.fsync(file.fileno())


def last_flush(path: Path) -> Flushed | None:
    """Last entry of a flush log; None without one. What is torn or damaged is skipped: `check_flush_log` reports it.

    Raises:
        RecordError: the file cannot be read.
    """
    try:
        with reading(path), open_regular(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            content = pa.py_buffer(file.read())
    except FileNotFoundError:
        return None
    last = None
    for frame in whole_frames(content):
        try:
            last = msgspec.msgpack.decode(frame.payload, type=Flushed)
        except (ValueError, RecursionError):  # also of bytes with a correct checksum that no writer made
            continue
    return last


def check_flush_log(path: Path) -> None:
    """Checks each entry of a flush log.

    Raises:
        RecordError: it is damaged, or cannot be read.
    """
    with reading(path):
        content = pa.py_buffer(map_regular(path))
    for _ in frames_until_damage(path, content):
        pass


@cache
def boot_id() -> str:
    """Id of this machine's start; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
