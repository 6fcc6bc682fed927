"""What reading one document may take, whatever it holds."""

from __future__ import annotations

MOST_BYTES = 64 * 2**20
"""Bytes of one file at most."""

MOST_CHARACTERS = 64 * 2**20
"""Characters of one document's text at most: a small file can unpack to any length."""

MOST_PAGES = 20_000
"""Pages of one document at most."""

MOST_MEMORY_BYTES = 2 * 2**30
"""Memory of the process that reads documents, as addresses."""

_SECONDS, _SECONDS_PER_MIB = 20, 10


def most_seconds(size_bytes: int) -> int:
    """Seconds of computing that a document may take: several times what honest files of its size do.

    >>> most_seconds(6_000), most_seconds(64 * 2**20)
    (21, 660)
    """
    return _SECONDS + -(-size_bytes * _SECONDS_PER_MIB // 2**20)
