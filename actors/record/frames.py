"""Frames of a journal segment: checksummed payloads, one behind the other.

A frame is a header of 16 bytes and a payload. The header holds a marker, the payload's length, the payload's CRC-32 and
the CRC-32 of the header itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import pyarrow as pa

from moot.actors.record.files import repair_advice
from moot.protocols.errors import RecordError

_MARKER = b"moot"
_BEFORE_CRC = struct.Struct("<4sII")
_CRC = struct.Struct("<I")
HEADER_BYTES = _BEFORE_CRC.size + _CRC.size
_LOST_BYTES = 512
"""Length of a run of zeros at the end that marks bytes which never reached the disk."""


def frame_header(payload: pa.Buffer | bytes) -> bytes:
    """Header of a payload's frame."""
    header = _BEFORE_CRC.pack(_MARKER, len(memoryview(payload)), crc32(payload))
    return header + _CRC.pack(crc32(header))


@dataclass(frozen=True)
class Frame:
    """Complete frame of a segment.

    Attributes:
        at: offset of its first byte.
        end: offset behind its last byte.
        payload: with the length and checksum of its header; empty in the frame that ends a segment.
    """

    at: int
    end: int
    payload: pa.Buffer


def whole_frames(content: pa.Buffer) -> Iterator[Frame]:
    """Frames of a segment with correct checksums, whatever lies between them."""
    at = 0
    while (found := _next_frame(content, at)) is not None:
        yield found
        at = found.end


def frames_until_damage(path: Path, content: pa.Buffer, least_bytes: int = 0) -> Iterator[Frame]:
    """Frames of a segment up to a torn tail.

    Args:
        least_bytes: length that was flushed: no tail is torn before it.

    Raises:
        RecordError: the segment is damaged or truncated; the frames before the damage were yielded.
    """
    at = 0
    while at < content.size:
        frame = frame_at(content, at)
        if frame is None:
            behind = _next_frame(content, at + 1)
            if behind is None and at >= least_bytes and _is_torn(content, at):
                return
            rest = "to its end" if behind is None else f"whole again from byte {behind.at}"
            raise RecordError(f"{path}: damaged at byte {at}, {rest}. {repair_advice(path.parent.parent)}")
        yield frame
        at = frame.end
    if at < least_bytes:
        raise RecordError(f"{path}: {at:,} bytes are left of {least_bytes:,}. {repair_advice(path.parent.parent)}")


def _is_torn(content: pa.Buffer, at: int) -> bool:
    """Whether the data at a byte was not written to its end, as far as it shows.

    After a killed process the file ends within the frame; after a power failure it may end in zeros.
    """
    rest = memoryview(content)[at:]
    if not bytes(rest[-_LOST_BYTES:]).strip(b"\0"):
        return True
    if len(rest) < HEADER_BYTES:
        return bytes(rest[: len(_MARKER)]) == _MARKER[: len(rest)]
    header = header_at(content, at)
    return header is not None and len(rest) - HEADER_BYTES < header.length


class _Header(NamedTuple):
    """Header of a frame: length and checksum of its payload."""

    length: int
    checksum: int


def header_at(content: pa.Buffer, at: int) -> _Header | None:
    """Header at a byte; None if there is none."""
    if at + HEADER_BYTES > content.size:
        return None
    header = content.slice(at, HEADER_BYTES).to_pybytes()
    marker, length, checksum = _BEFORE_CRC.unpack_from(header)
    (of_header,) = _CRC.unpack_from(header, _BEFORE_CRC.size)
    whole = marker == _MARKER and of_header == crc32(header[: _BEFORE_CRC.size])
    return _Header(length, checksum) if whole else None


def frame_at(content: pa.Buffer, at: int) -> Frame | None:
    """Frame at a byte; None if there is no whole frame with a correct checksum."""
    header = header_at(content, at)
    begin = at + HEADER_BYTES
    if header is None or begin + header.length > content.size:
        return None
    payload = content.slice(begin, header.length)
    return Frame(at, begin + header.length, payload) if crc32(payload) == header.checksum else None


def _next_frame(content: pa.Buffer, at: int) -> Frame | None:
    """First whole frame at or behind a byte."""
    if (frame := frame_at(content, at)) is not None:
        return frame
    raw = memoryview(content)
    step = 1 << 20
    for start in range(at, content.size, step):
        piece = bytes(raw[start : start + step + len(_MARKER) - 1])
        found = piece.find(_MARKER)
        while found >= 0:
            if (frame := frame_at(content, start + found)) is not None:
                return frame
            found = piece.find(_MARKER, found + 1)
    return None
