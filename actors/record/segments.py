"""Journal segments: Arrow IPC streams that are only appended to, and whose torn tail is cut on reading."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from moot.actors.failpoints import about_to_fail, failpoint


class SegmentWriter:
    """Appends record batches to one file, opened when the first batch comes.

    Args:
        path: the file; it must not exist yet.
        schema: of every batch.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self._schema = schema
        self._file: BinaryIO | None = None
        self._stream: pa.RecordBatchStreamWriter | None = None
        self._synced = 0

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._file.tell() if self._file else 0

    def append(self, batch: pa.RecordBatch) -> None:
        """Write a batch; it outlives this process after `flush`, and the machine after `sync`."""
        if self._stream is None:
            self._file = open(self.path, "xb")  # noqa: SIM115 - lives as long as the segment
            self._stream = pa.ipc.new_stream(self._file, self._schema)
        assert self._file is not None
        if about_to_fail("segment.torn"):
            whole = batch.serialize().to_pybytes()
            self._file.write(whole[: len(whole) // 2])
            self._file.flush()
        failpoint("segment.torn")
        self._stream.write_batch(batch)

    def flush(self) -> None:
        """Hand what was appended to the operating system."""
        if self._file is not None:
            self._file.flush()

    def sync(self) -> None:
        """Force what was appended to the disk."""
        if self._file is not None and self._file.tell() > self._synced:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._synced = self._file.tell()

    def close(self) -> None:
        """End the stream; nothing can be appended afterwards."""
        if self._stream is not None and self._file is not None:
            self._stream.close()
            self.sync()
            self._file.close()

    def let_go(self) -> None:
        """Close the file as it is; what cannot be ended any more is read up to its last whole batch."""
        if self._file is not None:
            self._file.close()


def read_segment(path: Path, valid_bytes: int | None = None) -> Iterator[pa.RecordBatch]:
    """The whole batches of a segment, in order; a torn tail is left out.

    Args:
        valid_bytes: read only this much; what an older owner appended after a takeover lies behind it.
    """
    size = path.stat().st_size
    limit = size if valid_bytes is None else min(size, valid_bytes)
    if limit == 0:
        return
    with pa.memory_map(str(path)) as source:
        buffer = pa.BufferReader(source.read_buffer(limit))
        try:
            reader = pa.ipc.open_stream(buffer)
        except (pa.ArrowInvalid, OSError):
            return
        while True:
            try:
                batch = reader.read_next_batch()
                batch.validate()
            except (StopIteration, pa.ArrowInvalid, OSError):
                return
            yield batch
