"""Journal in a store: one object per flush, with the bytes appended to the segments of a roll.

journal/ROLL/begun          put by the writer before anything else: its next incarnation takes another roll
journal/ROLL/000000.delta   what the first flush appended, and so on
journal/ROLL/ended          put by the writer at its end: there are so many deltas
journal/ROLL/sealed         put by the writer's next incarnation: so many deltas count
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count, takewhile
from pathlib import Path
from zlib import crc32

import msgspec
import pyarrow as pa

from moot.actors.record.files import decode_file, encode_file
from moot.actors.record.roll_files import is_roll_name, is_segment_name
from moot.actors.record.store.store import Store
from moot.actors.telemetry.failpoints import failpoint
from moot.protocols.errors import RecordError
from moot.protocols.regular_files import open_regular

AT_ONCE = 16
"""Objects read at the same time."""

_AHEAD = 4 * AT_ONCE
"""Most deltas in memory."""

_BEGUN, _ENDED, _SEALED = "begun", "ended", "sealed"
_MOST_DIGITS = 12
_DELTA = re.compile(rf"([0-9]{{6,{_MOST_DIGITS}}})\.delta")
_MOST_BYTES = 2**30
"""Most bytes of an unpacked flush: a larger one was not written by a journal."""


class Delta(msgspec.Struct, array_like=True):
    """One flush: bytes by segment, with their offsets.

    Attributes:
        crc: of `packed`.
        size: of the unpacked content.
        packed: (offset, bytes) by segment's name, as msgpack, compressed.
    """

    crc: int
    size: int
    packed: bytes


def encode_delta(appended: Mapping[str, tuple[int, bytes]]) -> bytes:
    """Encodes a delta."""
    raw = msgspec.msgpack.encode(appended)
    packed = pa.compress(raw, "zstd", asbytes=True)
    return msgspec.msgpack.encode(Delta(crc32(packed), len(raw), packed))


def decode_delta(data: bytes | None) -> dict[str, tuple[int, bytes]] | None:
    """Decodes a delta; None for one that is torn, damaged or missing."""
    try:
        delta = msgspec.msgpack.decode(data or b"", type=Delta)
        if crc32(delta.packed) != delta.crc or not 0 <= delta.size <= _MOST_BYTES:
            return None
        raw = pa.decompress(delta.packed, delta.size, "zstd", asbytes=True)
        return msgspec.msgpack.decode(raw, type=dict[str, tuple[int, bytes]])
    except (msgspec.DecodeError, pa.ArrowException, OSError, ValueError, OverflowError, RecursionError):
        return None


class DeltaWriter:
    """Writer of what is appended to the segments of one roll.

    Args:
        store: the store.
        roll: the roll's name.

    Raises:
        RecordError: the store cannot be written.
    """

    def __init__(self, store: Store, roll: str) -> None:
        self._store, self._roll = store, roll
        self._count = 0
        self._done: dict[str, int] = {}
        store.put(f"journal/{roll}/{_BEGUN}", b"")

    def put(self, segments: Iterable[Path]) -> None:
        """Make the content of the segments durable: one request, none when nothing was appended.

        Raises:
            RecordError: it cannot be written; what was appended is not durable, and nothing may follow it.
        """
        appended = {path.name: (start, data) for path, start, data in map(self._rest, segments) if data}
        if not appended:
            return
        self._store.put(f"journal/{self._roll}/{self._count:06d}.delta", encode_delta(appended))
        failpoint("store.delta_put")
        self._count += 1
        for name, (start, data) in appended.items():
            self._done[name] = start + len(data)

    def end(self) -> None:
        """State the number of deltas, so that a missing last one is noticed. Raises as `put`."""
        self._store.put(f"journal/{self._roll}/{_ENDED}", encode_file([self._count]))

    def _rest(self, path: Path) -> tuple[Path, int, bytes]:
        start = self._done.get(path.name, 0)
        with open_regular(path) as file:
            file.seek(start)
            return path, start, file.read()

    def check(self) -> None:
        """Check that no later incarnation of this writer has taken over.

        Raises:
            RecordError: one has.
        """
        if self._store.get(f"journal/{self._roll}/{_SEALED}") is not None:
            raise RecordError(f"{self._store.uri}: another incarnation of this writer has taken over")


def rolls_of(store: Store) -> dict[str, list[str]]:
    """Names of the objects of every roll in the store's journal, in order.

    Raises:
        RecordError: the store cannot be read.
    """
    found: dict[str, list[str]] = {}
    for name in store.sizes("journal"):
        match name.split("/"):
            case ["journal", roll, _] if is_roll_name(roll):
                found.setdefault(roll, []).append(name)
    return found


def seal(store: Store, rolls: Mapping[str, list[str]]) -> None:
    """Seals rolls whose writer has a new incarnation: later deltas do not count. Raises as `rolls_of`."""
    for roll, names in rolls.items():
        if f"journal/{roll}/{_SEALED}" not in names:
            deltas = sum(name.endswith(".delta") for name in names)
            store.put(f"journal/{roll}/{_SEALED}", encode_file([deltas]))


def replay(store: Store, roll: str, names: Iterable[str], journal: Path) -> None:
    """Append a roll's deltas to its segments, up to a seal.

    Segments that already have the beginning are continued.

    Args:
        names: the roll's objects.
        journal: the folder of the segments.

    Raises:
        RecordError: the store cannot be read, or a delta is missing or damaged, or names something other than a segment
            of the roll. An object is there whole or not at all: none is torn.
    """
    names = set(names)
    numbered = (f"journal/{roll}/{number:06d}.delta" for number in count())
    wanted, most = list(takewhile(names.__contains__, numbered)), _expected(store, roll, names)
    if len(wanted) < most:
        missing = f"journal/{roll}/{len(wanted):06d}.delta"
        raise RecordError(f"{store.uri}: {missing} is missing: restore it from a copy, or delete all behind it")
    wanted = wanted[:most]
    for name, data in zip(wanted, _read(store, wanted), strict=True):
        delta = decode_delta(data)
        if delta is None:
            raise RecordError(f"{store.uri}: {name} is damaged: restore it from a copy, or delete it and all behind it")
        for segment in delta:
            if not (is_segment_name(segment) and segment.startswith(f"{roll}-")):
                raise RecordError(f"{store.uri}: {name} is damaged: {segment!r} is no segment of its roll")
        if not all(_append(journal / segment, *piece) for segment, piece in delta.items()):
            return


def _expected(store: Store, roll: str, names: set[str]) -> int:
    """Number of a roll's deltas that count: all, unless it is sealed."""
    if (sealed := f"journal/{roll}/{_SEALED}") in names:
        return _count(store, sealed)
    ended = f"journal/{roll}/{_ENDED}"
    found = (_DELTA.fullmatch(name.rpartition("/")[2]) for name in names)
    behind = max((int(each[1]) + 1 for each in found if each is not None), default=0)
    return max(behind, _count(store, ended) if ended in names else 0)


def _count(store: Store, name: str) -> int:
    """Number of deltas that an object states; a plain number was put by earlier versions."""
    content = store.get(name) or b""
    if content.isdigit() and len(content) <= _MOST_DIGITS:
        return int(content)
    return sum(decode_file(f"{store.uri}: {name}", content, list[int]))


def _read(store: Store, names: list[str]) -> Iterator[bytes | None]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for start in range(0, len(names), _AHEAD):
            yield from threads.map(store.get, names[start : start + _AHEAD])


def _append(segment: Path, start: int, data: bytes) -> bool:
    """Append data at an offset; False when something is missing before it."""
    with open(segment, "ab") as file:
        size = file.tell()
        if not 0 <= start <= size:
            return False
        file.write(data[size - start :])
    return True
