"""Source of a task's bytes: a file, a pipe, standard input or the package itself."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from moot.protocols.errors import TaskFileError
from moot.protocols.near_paths import near_path
from moot.protocols.regular_files import open_regular

MAX_LINE = 64 * 2**20
"""Most bytes of a line, so that a file without line breaks cannot fill the memory."""

MOST_COLUMNS = 10_000
"""Most columns of a table, and keys of an object."""


class Source:
    """Source of bytes.

    Args:
        file: its name as the user gave it, for error messages.
        opener: opens it.
        replayable: whether it can be read twice.
    """

    def __init__(
        self, file: str, opener: Callable[[], AbstractContextManager[IO[bytes]]], replayable: bool = True
    ) -> None:
        self.file, self.replayable = file, replayable
        self._opener = opener
        self._opened = False

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Opens the source for one pass.

        Raises:
            TaskFileError: it cannot be opened or read, or it was read before and cannot be read twice.
        """
        if self._opened and not self.replayable:
            raise TaskFileError(self.file, 0, "", "can be read only once, and it was read before")
        self._opened = True
        try:
            with self._opener() as stream:
                yield stream
        except OSError as error:
            raise TaskFileError(self.file, 0, "", f"cannot be read: {_reason(error)}") from error


def locate(file: str) -> Source:
    """Source of a path that a user names; `-` is standard input, and pipes are read once.

    Raises:
        TaskFileError: there is no such file, or it is a folder, a socket or a device.
    """
    if file == "-":
        return Source(file, _stdin, replayable=False)
    try:
        path = Path(file).expanduser().absolute()
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise TaskFileError(file, 0, "", f"no such file{near_path(file)}") from None
    except (OSError, ValueError, RuntimeError) as error:
        raise TaskFileError(file, 0, "", f"cannot be read: {_reason(error)}") from None
    if stat.S_ISDIR(mode):
        raise TaskFileError(file, 0, "", "expected a file, found a folder")
    if stat.S_ISFIFO(mode):
        return Source(file, partial(_pipe, path), replayable=False)
    return Source(file, partial(open_regular, path))


def locate_within(folder: str, name: str) -> Source | None:
    """File `name` of a folder in its original format; None when it is missing.

    Raises:
        TaskFileError: there is no such folder, or it is a file.
    """
    try:
        place = Path(folder).expanduser()
        if not place.is_dir():
            raise TaskFileError(
                folder,
                0,
                "",
                "expected a folder, found a file" if place.exists() else f"no such folder{near_path(folder)}",
            )
        file = place / name
        return Source(str(file), partial(open_regular, file)) if file.exists() else None
    except (OSError, ValueError, RuntimeError) as error:
        raise TaskFileError(folder, 0, "", f"cannot be read: {_reason(error)}") from None


def _pipe(path: Path) -> IO[bytes]:
    return path.open("rb")


@contextmanager
def _stdin() -> Iterator[IO[bytes]]:
    yield sys.stdin.buffer


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class Lines:
    """Lines of a byte stream as text, split at line feeds only, without a byte-order mark.

    Invalid UTF-8 does not stop the reading: `bad` then has the line's number until it is popped.

    Args:
        stream: the bytes.
        file: their name, for errors.
        decode: decodes a line; a UnicodeDecodeError marks it as bad.

    Attributes:
        number: 1-based number of the last line; 0 before the first.
    """

    def __init__(self, stream: IO[bytes], file: str, decode: Callable[[bytes], str] = bytes.decode) -> None:
        self.number = 0
        self._stream, self._file, self._decode = stream, file, decode
        self._bad = 0
        self._ahead: bytes | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        raw, self._ahead = self._read() if self._ahead is None else self._ahead, None
        if not raw:
            raise StopIteration
        self.number += 1
        try:
            return self._decode(raw)
        except UnicodeDecodeError:
            self._bad = self._bad or self.number
            return raw.decode("utf-8", "surrogateescape")

    def peek(self) -> bytes:
        """Peeks at the next line's bytes, blank lines skipped; empty at the end.

        Raises:
            TaskFileError: the line is longer than `MAX_LINE`.
        """
        if self._ahead is None:
            self._ahead = self._read()
        while self._ahead and not self._ahead.strip():
            self.number += 1
            self._ahead = self._read()
        return self._ahead

    def take_bad(self) -> int:
        """First line with invalid UTF-8 since the last call; 0 for none."""
        bad, self._bad = self._bad, 0
        return bad

    def _read(self) -> bytes:
        raw = self._stream.readline(MAX_LINE + 1)
        if len(raw) > MAX_LINE:
            raise TaskFileError(self._file, self.number + 1, "", f"expected lines of at most {MAX_LINE >> 20} MiB")
        return raw.removeprefix(b"\xef\xbb\xbf") if self.number == 0 else raw
