"""Files of a record: JSON with checksums, written atomically, and a check that no link leads out of its folder."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import msgspec

from moot.protocols.errors import RecordError
from moot.protocols.regular_files import cause, open_regular, read_regular

T = TypeVar("T")

MOST_FILE_BYTES = 64 * 2**20
"""Most bytes of a JSON file of a record: the names of two million segments."""

_SEAL = b"\ncrc32 "
_READ_BYTES = 8 * 2**20


def encode_file(content: object) -> bytes:
    """Encodes a JSON file of a record: one line, and a line with its CRC-32."""
    line = msgspec.json.encode(content)
    return line + _SEAL + b"%08x" % crc32(line)


def decode_file(file: str | Path, data: bytes, what: type[T]) -> T:
    """Decodes a JSON file of a record. Files of earlier versions have no checksum.

    Args:
        file: name for error messages.

    Raises:
        RecordError: the data cannot be parsed, or its checksum differs.
    """
    line, seal, wanted = data.partition(_SEAL)
    if seal and wanted != b"%08x" % crc32(line):
        raise RecordError(f"{file} is damaged: its checksum is not the one it was written with")
    try:
        return msgspec.json.decode(line, type=what)
    except (ValueError, RecursionError) as error:  # msgspec raises UnicodeDecodeError, too
        raise RecordError(f"{file} cannot be read: {error}") from error


def read_file(file: Path, what: type[T]) -> T:
    """Reads a JSON file of a record.

    Raises:
        FileNotFoundError: there is none.
        RecordError: it is no regular file, is larger than `MOST_FILE_BYTES`, or see `decode_file`.
    """
    return decode_file(file, file_content(file), what)


def file_content(file: Path) -> bytes:
    """Content of a file of a record that is read whole. Raises like `read_file`."""
    with reading(file):
        return read_regular(file, MOST_FILE_BYTES)


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Converts errors on a file of a record to RecordError, except FileNotFoundError: a live run deletes files."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordError(f"{file} cannot be read: {cause(error)}") from error


def repair_advice(run: Path) -> str:
    """Advice for a damaged Parquet file or segment of a run's folder."""
    return (
        "Restore the file from a copy, or keep what is intact: "
        f"`moot verify {shlex.quote(str(run))} --salvage`, which loses what the damaged part held"
    )


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file atomically: it is absent, old or complete (temporary name, sync, rename).

    Raises:
        RecordError: it cannot be written; no part of it then remains.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise RecordError(f"cannot write {path}: {error.strerror}") from error


def checksum(file: Path) -> int:
    """CRC-32 of a file's content.

    Raises:
        OSError: the file cannot be read.
    """
    found = 0
    with open_regular(file) as content:
        while piece := content.read(_READ_BYTES):
            found = crc32(piece, found)
    return found


def file_bytes(file: Path) -> int:
    """Length of a file in bytes: a network file system states the present one of an opened file only.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    with open_regular(file) as opened:
        return os.fstat(opened.fileno()).st_size


def names_in(folder: Path, ending: str = "") -> list[str]:
    """Sorted names in a folder that end so; none where it is missing. A record has thousands, and `glob` is slow."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(ending))
    except FileNotFoundError:
        return []


def refuse_links(folder: Path) -> None:
    """Checks that everything written below a folder lies in it: a folder from elsewhere may contain links and pipes.

    Raises:
        RecordError: a link leads out of the folder, or something in it is neither a file nor a folder.
    """
    home = folder.resolve()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            if path.is_symlink() and not path.resolve().is_relative_to(home):
                raise RecordError(f"{path} is a link that leads out of the run's folder: nothing is written there")
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise RecordError(f"{path} is neither a file nor a folder: remove it")
