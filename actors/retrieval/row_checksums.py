"""Checksums of the rows of a file of vectors: what is damaged is known row by row, and only that is embedded again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import numpy as np
import numpy.typing as npt

from moot.protocols.regular_files import open_regular

_READ_BYTES = 8 * 2**20
CHECKSUM_BYTES = 4
"""Bytes of a row's checksum, a little-endian CRC-32."""


def row_checksums(rows: bytes, row_bytes: int) -> bytes:
    """Checksums of the whole rows in some bytes, in their order."""
    view = memoryview(rows)
    found = [crc32(view[at : at + row_bytes]) for at in range(0, len(rows) - row_bytes + 1, row_bytes)]
    return np.array(found, "<u4").tobytes()


def checksums_of_file(vectors: Path, row_bytes: int) -> bytes:
    """Checksums of the whole rows of a file.

    Raises:
        OSError: it cannot be read.
    """
    return b"".join(row_checksums(piece, row_bytes) for piece in _pieces(vectors, row_bytes))


def intact_rows(vectors: Path, checksums: Path, row_bytes: int, count: int) -> npt.NDArray[np.bool_]:
    """Which of the first `count` rows have their checksum; a missing row or checksum has none.

    Raises:
        OSError: a file cannot be read.
    """
    found = np.frombuffer(checksums_of_file(vectors, row_bytes), "<u4")[:count] if vectors.is_file() else _NONE
    wanted = np.fromfile(checksums, "<u4", count) if checksums.is_file() else _NONE
    both = min(len(found), len(wanted))
    intact = np.zeros(count, np.bool_)
    intact[:both] = found[:both] == wanted[:both]
    return intact


_NONE = np.empty(0, "<u4")


def _pieces(file: Path, row_bytes: int) -> Iterator[bytes]:
    size = max(1, _READ_BYTES // row_bytes) * row_bytes
    with open_regular(file) as content:
        while piece := content.read(size):
            yield piece
