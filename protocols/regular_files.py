"""Regular files of untrusted folders: opened without waiting, and read within a bound.

A named pipe, a socket or a device in a data set or a record would block whoever opens it, or never end.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
from pathlib import Path
from typing import BinaryIO

MOST_TEXT_BYTES = 16 * 2**20
"""Most bytes of a file that a person writes: a configuration, a template, facts."""

_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def open_regular(file: str | Path) -> BinaryIO:
    """Opens a regular file for reading, or the one behind a link. It never waits.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    _check(os.stat(file), file)  # opening a device may already have an effect
    descriptor = os.open(file, _FLAGS)
    try:
        _check(os.fstat(descriptor), file)
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def read_regular(file: str | Path, most_bytes: int) -> bytes:
    """Content of a regular file; a larger one is refused before it is read.

    Raises:
        OSError: see `open_regular`, or it is larger.
    """
    with open_regular(file) as stream:
        content = b"" if os.fstat(stream.fileno()).st_size > most_bytes else stream.read(most_bytes + 1)
        if len(content) > most_bytes or os.fstat(stream.fileno()).st_size > most_bytes:
            raise OSError(errno.EFBIG, f"larger than {_size(most_bytes)}", str(file))
    return content


def read_regular_text(file: str | Path) -> str:
    """UTF-8 text of a regular file of at most `MOST_TEXT_BYTES`, with its line ends as line feeds.

    Raises:
        OSError: see `read_regular`.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_regular(file, MOST_TEXT_BYTES).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def map_regular(file: str | Path) -> mmap.mmap | bytes:
    """Content of a regular file, mapped into memory: it takes memory only where it is read.

    Raises:
        OSError: see `open_regular`.
    """
    with open_regular(file) as stream:
        empty = os.fstat(stream.fileno()).st_size == 0
        return b"" if empty else mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)


def cause(error: OSError) -> str:
    """Cause of an error on a file, for the end of a sentence.

    >>> cause(FileNotFoundError(2, "No such file or directory"))
    'no such file or directory'
    """
    text = error.strerror or str(error) or "cannot be read"
    return text[0].lower() + text[1:]


def _size(count: int) -> str:
    return f"{count >> 20:,} MiB" if count >= 2**20 else f"{count:,} bytes"


def _check(status: os.stat_result, file: str | Path) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"expected a regular file, found {_KINDS.get(kind, 'another kind')}", str(file))
