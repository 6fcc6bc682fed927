"""Messages of Arrow's IPC format: what they take decompressed, before anything is decompressed.

Each compressed buffer begins with its length, and the decoder allocates what is written there. The positions of the
buffers are in the message's header, a table of the FlatBuffers format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

_DICTIONARIES, _ROWS = 2, 3
_HEADER_KIND, _HEADER = 1, 2
_ROWS_OF_DICTIONARY = 1
_BUFFERS, _COMPRESSION = 2, 3
_IN_FILE = 8
"""Bytes before the messages of the file format: `ARROW1` and two of padding."""


def check_messages(content: Any, most_bytes: int) -> None:
    """Checks the sizes of an Arrow stream or file, without decompressing it.

    Args:
        content: Arrow buffer.
        most_bytes: of one batch, and of all dictionaries together, when decompressed.

    Raises:
        ValueError: one is larger, or a message is damaged.
        pyarrow.ArrowException: it is no Arrow stream.
    """
    import pyarrow as pa

    dictionaries = 0
    for message in pa.ipc.MessageReader.open_stream(stream_of(content)):
        kind, size = _decompressed(message)
        dictionaries += size if kind == _DICTIONARIES else 0
        if max(size, dictionaries) > most_bytes:
            raise ValueError(
                f"expected at most {most_bytes >> 20:,} MiB in a batch, decompressed: write smaller ones"
                if most_bytes
                else "expected a file without compression"
            )


def stream_of(content: Any) -> Any:
    """Reader of the messages of an Arrow stream or file, in order; of a file, the table at its end is not used.

    Raises:
        pyarrow.ArrowException: it is no Arrow stream.
    """
    import pyarrow as pa

    return pa.BufferReader(content.slice(_IN_FILE) if content.slice(0, 6).to_pybytes() == b"ARROW1" else content)


def decompressed_bytes(message: Any) -> int:
    """Bytes that the compressed buffers of a message take when decompressed; 0 without compression.

    Raises:
        ValueError: its header is damaged.
    """
    return _decompressed(message)[1]


def _decompressed(message: Any) -> tuple[int, int]:
    """Kind of a message, and its bytes."""
    raw = memoryview(message.metadata)
    try:
        (root,) = struct.unpack_from("<I", raw, 0)
        place = _field(raw, root, _HEADER_KIND)
        kind = raw[place] if place else 0
        header = _table(raw, root, _HEADER)
        if kind == _DICTIONARIES and header:
            header = _table(raw, header, _ROWS_OF_DICTIONARY)
        if kind not in (_DICTIONARIES, _ROWS) or not header or not _field(raw, header, _COMPRESSION):
            return kind, 0
        return kind, sum(_sizes(raw, header, message.body))
    except (struct.error, IndexError):
        raise ValueError("the header of a message is damaged") from None


def _sizes(raw: memoryview, rows: int, body: Any) -> Iterator[int]:
    """Decompressed size of each compressed buffer of a batch."""
    buffers = _table(raw, rows, _BUFFERS)
    content = memoryview(b"" if body is None else body)
    (count,) = struct.unpack_from("<I", raw, buffers) if buffers else (0,)
    for number in range(count):
        at, length = struct.unpack_from("<qq", raw, buffers + 4 + 16 * number)
        if length >= 8:
            (size,) = struct.unpack_from("<q", content, at)
            yield max(0, size)  # -1: it is not compressed


def _table(raw: memoryview, table: int, number: int) -> int:
    """Position of what a field refers to; 0 without it."""
    place = _field(raw, table, number)
    return place + struct.unpack_from("<I", raw, place)[0] if place else 0


def _field(raw: memoryview, table: int, number: int) -> int:
    """Position of a field of a table; 0 without it."""
    (back,) = struct.unpack_from("<i", raw, table)
    (length,) = struct.unpack_from("<H", raw, table - back)
    if 4 + 2 * number >= length:
        return 0
    (offset,) = struct.unpack_from("<H", raw, table - back + 4 + 2 * number)
    return table + offset if offset else 0
