"""Folder of a library on disk: its files, and what is known of them before they are read.

FOLDER/
    library.json    encoder, dimension, number of chunks, their digest and their file's checksum
    chunks.arrow    document, chunk, page and text of each chunk (an Arrow IPC file)
    vectors.f32     a unit row of float32 per chunk, in their order; shorter while it is being built
    vectors.crc32   the checksum of each row, written after it; see `row_checksums`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from moot.actors.record.files import checksum, decode_file, encode_file, write_whole
from moot.actors.retrieval.row_checksums import CHECKSUM_BYTES, intact_rows
from moot.protocols.errors import ConfigError, RecordError
from moot.protocols.regular_files import MOST_TEXT_BYTES, read_regular

_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
_Chunks = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
_Dimension = Annotated[int, msgspec.Meta(ge=1, le=2**16)]


class LibraryManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Manifest of the library, from `library.json`.

    Attributes:
        encoder: its identity.
        digest: of the chunks; see `digest_of`.
        chunks: number of chunks, at least 1.
        dimension: of the vectors, up to 65,536; None until the first vector.
        chunks_crc32: checksum of the chunks' file; None in a library of an earlier version, whose vectors have no
            checksums either.
        format: version of the folder's format.
    """

    encoder: str
    digest: _Digest
    chunks: _Chunks
    dimension: _Dimension | None = None
    chunks_crc32: int | None = None
    format: Literal[1] = 1

    @property
    def row_bytes(self) -> int:
        """Bytes of a vector; 0 before the first."""
        return 4 * (self.dimension or 0)


class LibraryFolder:
    """Folder of a library and its files.

    Args:
        path: the folder; it need not exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.note_file = self.path / "library.json"
        self.chunks_file = self.path / "chunks.arrow"
        self.vectors_file = self.path / "vectors.f32"
        self.checksums_file = self.path / "vectors.crc32"

    def exists(self) -> bool:
        """Whether a library has been started here."""
        return self.note_file.is_file()

    def manifest(self) -> LibraryManifest:
        """Manifest of the library, from `library.json`.

        Raises:
            ConfigError: the file cannot be read, is damaged, or was not written by this version of moot.
        """
        try:
            return decode_file(self.note_file, read_regular(self.note_file, MOST_TEXT_BYTES), LibraryManifest)
        except (OSError, RecordError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.note_file} is not of a library: {' '.join(str(error).split())}") from None

    def write_manifest(self, note: LibraryManifest) -> None:
        """Write library.json. Raises `RecordError`."""
        write_whole(self.note_file, encode_file(note))

    def embedded(self, note: LibraryManifest) -> int:
        """Number of chunks with a complete vector and its checksum."""
        if note.dimension is None or not self.vectors_file.is_file():
            return 0
        rows = self.vectors_file.stat().st_size // note.row_bytes
        if note.chunks_crc32 is None:
            return rows
        size = self.checksums_file.stat().st_size if self.checksums_file.is_file() else 0
        return min(rows, size // CHECKSUM_BYTES)

    def has_intact_chunks(self, note: LibraryManifest) -> bool:
        """Whether the chunks' file is there, with its checksum if it has one. Raises `OSError`."""
        if not self.chunks_file.is_file():
            return False
        return note.chunks_crc32 is None or checksum(self.chunks_file) == note.chunks_crc32

    def intact_vectors(self, note: LibraryManifest) -> npt.NDArray[np.bool_]:
        """Which chunks have a complete vector with its checksum, if the library has checksums. Raises `OSError`."""
        if note.dimension is None or note.chunks_crc32 is None:
            return np.arange(note.chunks) < self.embedded(note)
        return intact_rows(self.vectors_file, self.checksums_file, note.row_bytes, note.chunks)

    def check(self, encoder: str) -> LibraryManifest:
        """Manifest of a library, checked to be searchable with an encoder. Checksums are compared once per process.

        Args:
            encoder: its identity.

        Raises:
            ConfigError: the library was made with another encoder, is not finished, or a file is missing or has another
                size.
            RecordError: a file is damaged.
        """
        note = self.manifest()
        if note.encoder != encoder:
            raise ConfigError(
                f"library {self.path} was made with the encoder {note.encoder}, not {encoder}: "
                f"take --encoder {note.encoder}, or build it again from the documents"
            )
        if (done := self.embedded(note)) < note.chunks:
            raise ConfigError(
                f"library {self.path} is not finished ({done:,} of {note.chunks:,} chunks): "
                "run the command that built it again to resume"
            )
        size, wanted = self.vectors_file.stat().st_size, note.chunks * note.row_bytes
        if size != wanted:
            raise ConfigError(f"{self.vectors_file} has {size:,} bytes, expected {wanted:,}: build the library again")
        if not self.chunks_file.is_file():
            raise ConfigError(f"library {self.path} has no {self.chunks_file.name}: build it again from the documents")
        self._check_content(note)
        return note

    def _check_content(self, note: LibraryManifest) -> None:
        try:
            files = [self.vectors_file, self.chunks_file] + [self.checksums_file] * (note.chunks_crc32 is not None)
            seen = (note, *((status.st_size, status.st_mtime_ns) for status in map(Path.stat, files)))
            if _VERIFIED.get(self.path) == seen:
                return
            if damage := self.damage(note):
                raise RecordError(f"{damage[0]}. {self.advice}")
            _VERIFIED[self.path] = seen
        except OSError as error:
            raise RecordError(f"library {self.path} cannot be read: {error.strerror}") from None

    def damage(self, note: LibraryManifest) -> list[str]:
        """One line for each damaged file of a library, finished or not. Raises `OSError`."""
        found = []
        if not self.has_intact_chunks(note):
            found.append(f"{self.chunks_file} is damaged: its checksum is not the one it was written with")
        if damaged := int((~self.intact_vectors(note)[: self.written(note)]).sum()):
            found.append(f"{self.vectors_file} is damaged: {damaged:,} of {note.chunks:,} vectors")
        return found

    def written(self, note: LibraryManifest) -> int:
        """Number of chunks whose vector was written, intact or not; a checksum is written after its vector."""
        if note.chunks_crc32 is None or not self.checksums_file.is_file():
            return self.embedded(note)
        return min(note.chunks, self.checksums_file.stat().st_size // CHECKSUM_BYTES)

    @property
    def advice(self) -> str:
        """How to repair a damaged library."""
        return (
            "Build it again from the same documents, with the command of a run that has cases left or "
            f"`moot.index(DOCS, encoder=ENCODER, out={str(self.path)!r})`: only what is damaged is embedded again"
        )


_VERIFIED: dict[Path, tuple[object, ...]] = {}
"""Libraries whose checksums this process has compared, each with its manifest, and sizes and times of its files."""
