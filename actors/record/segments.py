"""Journal segments: checksummed record batches that are only appended; a torn tail is cut on reading.

A segment is a sequence of frames, see `frames`: the first payload is the Arrow schema, each further one a record batch,
as Arrow IPC messages. A frame without a payload ends a segment that was closed.

Arrow reads nothing before its checksum was verified. Segments of earlier versions are plain Arrow IPC streams without
checksums; they stay readable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from moot.actors.record.files import reading, repair_advice
from moot.actors.record.frames import (
    HEADER_BYTES,
    Frame,
    frame_at,
    frame_header,
    frames_until_damage,
    header_at,
    whole_frames,
)
from moot.actors.telemetry.failpoints import about_to_fail, failpoint
from moot.protocols.arrow_messages import decompressed_bytes
from moot.protocols.errors import RecordError
from moot.protocols.regular_files import map_regular, open_regular

_PLAIN_STREAM = b"\xff\xff\xff\xff"


class SegmentWriter:
    """Writer of one segment file, opened for the first batch.

    Args:
        path: the file; it must not exist yet.
        schema: of every batch; without dictionary types.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self._schema = schema
        self._file: BinaryIO | None = None
        self._synced = 0

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._file.tell() if self._file else 0

    @property
    def synced(self) -> int:
        """Bytes synced to the disk."""
        return self._synced

    def append(self, batch: pa.RecordBatch) -> None:
        """Write a batch; it survives this process after `flush`, and a power failure after `sync`."""
        if self._file is None:
            self._file = open(self.path, "xb")  # noqa: SIM115 - lives as long as the segment
            self._write(self._file, self._schema.serialize())
        payload = batch.serialize()
        if about_to_fail("segment.torn"):
            self._file.write(frame_header(payload) + payload.to_pybytes()[: payload.size // 2])
            self._file.flush()
        failpoint("segment.torn")
        self._write(self._file, payload)

    @staticmethod
    def _write(file: BinaryIO, payload: pa.Buffer) -> None:
        file.write(frame_header(payload))
        file.write(payload)

    def flush(self) -> None:
        """Pass appended data to the operating system."""
        if self._file is not None:
            self._file.flush()

    def sync(self) -> None:
        """Sync appended data to the disk."""
        if self._file is not None and self._file.tell() > self._synced:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._synced = self._file.tell()

    def close(self) -> int:
        """End the segment, and return its length in bytes; nothing can be appended afterwards."""
        if self._file is not None:
            self._file.write(frame_header(b""))
            self.sync()
            self._file.close()
        return self._synced

    def abandon(self) -> None:
        """Close the file without its end; it can then be read up to its last whole batch."""
        if self._file is not None:
            with suppress(OSError):  # it is closed all the same, and the error of the write is the one that counts
                self._file.close()


def read_segment(path: Path, valid_bytes: int | None = None, least_bytes: int = 0) -> Iterator[pa.RecordBatch]:
    """Reads the batches of a segment, in order; a torn tail is skipped.

    Args:
        valid_bytes: valid length; bytes behind it were appended by an older owner after a takeover.
        least_bytes: length that was flushed: a tail that is torn before it is damage.

    Raises:
        RecordError: it is damaged or truncated; the batches before the damage were yielded.
    """
    content = _content(path, valid_bytes)
    if bytes(memoryview(content)[: len(_PLAIN_STREAM)]) == _PLAIN_STREAM:
        yield from _plain_batches(content)
    else:
        yield from _batches(path, frames_until_damage(path, content, least_bytes))
    if content.size < (valid_bytes or 0):
        raise RecordError(
            f"{path}: {content.size:,} bytes are left of {valid_bytes:,}. {repair_advice(path.parent.parent)}"
        )


class SegmentFollower:
    """Reads a segment while its writer appends to it, each batch once. The file stays open: a segment that becomes a
    part meanwhile is deleted, and still read to its end.

    Args:
        path: the file.
        valid_bytes: see `read_segment`.

    Raises:
        FileNotFoundError: a live run has just turned it into a part.
        RecordError: it is no regular file.
    """

    def __init__(self, path: Path, valid_bytes: int | None = None) -> None:
        self._path, self._valid = path, valid_bytes
        with reading(path):
            self._file = open_regular(path)
        self._at = 0
        self._schema: pa.Schema | None = None

    def read(self, most_bytes: int) -> list[pa.RecordBatch]:
        """Batches appended since the last call, about `most_bytes` in total; empty when there are none.

        Raises:
            RecordError: a frame with a correct checksum is no record batch.
        """
        size = os.fstat(self._file.fileno()).st_size
        end = size if self._valid is None else min(size, self._valid)
        if end - self._at < HEADER_BYTES:
            return []
        content = pa.py_buffer(os.pread(self._file.fileno(), min(end - self._at, most_bytes), self._at))
        header = header_at(content, 0)
        if header is not None and HEADER_BYTES + header.length > content.size:  # one frame is larger than that
            wanted = min(end - self._at, HEADER_BYTES + header.length)
            content = pa.py_buffer(os.pread(self._file.fileno(), wanted, self._at))
        frames, at = [], 0
        while (frame := frame_at(content, at)) is not None:
            frames.append(frame)
            at = frame.end
        self._at += at
        return list(self._decoded(frames))

    def _decoded(self, frames: list[Frame]) -> Iterator[pa.RecordBatch]:
        for frame in frames:
            if self._schema is None and frame.payload.size:
                self._schema = pa.ipc.read_schema(frame.payload)
            elif frame.payload.size:
                yield _record_batch(frame.payload, self._schema)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def flushed_end(path: Path, least_bytes: int) -> int:
    """Length up to which a segment counts at the end of its writer: its whole batches.

    Args:
        least_bytes: length that was flushed, where a batch ends.

    A segment that is damaged behind it counts to its end, so that whoever reads it reports the damage.
    """
    content = _content(path, None)
    end = min(least_bytes, int(content.size))
    try:
        at = end
        for frame in frames_until_damage(path, content.slice(at)):
            end = at + frame.end
    except RecordError:
        return int(content.size)
    return end


def _content(path: Path, valid_bytes: int | None) -> pa.Buffer:
    with reading(path):
        content = pa.py_buffer(map_regular(path))
    return content if valid_bytes is None else content.slice(0, min(content.size, valid_bytes))


def _batches(path: Path, frames: Iterator[Frame]) -> Iterator[pa.RecordBatch]:
    """Record batches in frames, the first of which contains the schema.

    Raises:
        RecordError: a frame with a correct checksum is no record batch.
    """
    schema: pa.Schema | None = None
    for frame in frames:
        if not frame.payload.size:
            return
        try:
            if schema is None:
                schema = pa.ipc.read_schema(frame.payload)
                continue
            batch = _record_batch(frame.payload, schema)
            batch.validate()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise RecordError(f"{path}: the batch at byte {frame.at} is invalid: {error}") from error
        yield batch


def _plain_batches(content: pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Whole batches of an Arrow IPC stream; without checksums, damage and a torn tail look alike."""
    messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(content))
    schema: pa.Schema | None = None
    while True:
        try:
            message = messages.read_next_message()
            if schema is None:
                schema = pa.ipc.read_schema(message)
                continue
            batch = _record_batch(message, schema)
            batch.validate()
        except (StopIteration, pa.ArrowException, OSError, ValueError):
            return
        yield batch


def _record_batch(payload: pa.Buffer | pa.ipc.Message, schema: pa.Schema) -> pa.RecordBatch:
    """Batch of a message.

    Raises:
        ValueError: it is compressed: no segment is, and it may take any memory.
        pyarrow.ArrowException: it is no batch of the schema.
    """
    message = payload if isinstance(payload, pa.ipc.Message) else pa.ipc.read_message(payload)
    if decompressed_bytes(message):
        raise ValueError("it is compressed")
    return pa.ipc.read_record_batch(message, schema)


def has_checksums(path: Path) -> bool:
    """Whether a segment consists of frames, not of a plain Arrow stream of an earlier version."""
    with reading(path), open_regular(path) as file:
        return file.read(len(_PLAIN_STREAM)) != _PLAIN_STREAM


def intact_batches(path: Path, schema: pa.Schema, valid_bytes: int | None = None) -> Iterator[pa.RecordBatch]:
    """Reads the intact batches of a damaged segment.

    Args:
        schema: of the stream, for a segment without a readable one.
        valid_bytes: see `read_segment`.
    """
    payloads = [frame.payload for frame in whole_frames(_content(path, valid_bytes)) if frame.payload.size]
    own = next((pa.ipc.read_schema(payload) for payload in payloads if _is_schema(payload)), schema)
    for payload in payloads:
        with suppress(pa.ArrowException, OSError, ValueError):
            if not _is_schema(payload):
                batch = _record_batch(payload, own)
                batch.validate(full=True)
                yield batch


def salvage_segment(path: Path, target: Path, schema: pa.Schema, valid_bytes: int | None = None) -> int:
    """Copies the intact batches of a damaged segment; returns their number. Arguments as for `intact_batches`."""
    writer, kept = None, 0
    for batch in intact_batches(path, schema, valid_bytes):
        writer = writer or SegmentWriter(target, batch.schema)
        writer.append(batch)
        kept += 1
    if writer is not None:
        writer.close()
    return kept


def _is_schema(payload: pa.Buffer) -> bool:
    try:
        return str(pa.ipc.read_message(payload).type) == "schema"
    except (pa.ArrowException, OSError):
        return False
