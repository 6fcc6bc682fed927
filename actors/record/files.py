"""Files of a record: JSON with checksums, written atomically, and a check that no link leads out of its folder."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import msgspec

from moot.protocols.errors import RecordError

T = TypeVar("T")

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
    with open(file, "rb") as content:
        while piece := content.read(_READ_BYTES):
            found = crc32(piece, found)
    return found


def refuse_links(folder: Path) -> None:
    """Checks that everything written below a folder lies in it: a folder from elsewhere may contain links.

    Raises:
        RecordError: a link leads out of the folder.
    """
    home = folder.resolve()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            if path.is_symlink() and not path.resolve().is_relative_to(home):
                raise RecordError(f"{path} is a link that leads out of the run's folder: nothing is written there")
