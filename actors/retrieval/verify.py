"""Verification of a library, without changing anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from moot.actors.record.files import file_bytes
from moot.actors.retrieval.library import StoredChunks, digest_of
from moot.actors.retrieval.library_folder import LibraryFolder, LibraryManifest
from moot.protocols.errors import ConfigError, RecordError


@dataclass
class LibraryReport:
    """Report of a verification.

    Attributes:
        faults: one line per fault; empty if there are none.
        advice: how to repair it; empty if nothing is damaged.
        files: number of files compared with their checksums.
        unchecked: number of files of an earlier version without checksums.
        chunks: number of chunks.
        embedded: number of chunks with a vector; fewer while the library is being built.
    """

    faults: list[str] = field(default_factory=list)
    advice: str = ""
    files: int = 0
    unchecked: int = 0
    chunks: int = 0
    embedded: int = 0


def verify_library(path: Path) -> LibraryReport:
    """Verifies every byte of a library, finished or not, that no process is building."""
    files, report = LibraryFolder(path), LibraryReport()
    try:
        note = files.manifest()
        report.chunks, report.embedded = note.chunks, files.embedded(note)
        report.faults = [*files.damage(note), *_lost_checksums(files, note)]
        if note.chunks_crc32 is None:
            report.unchecked = 2
            chunks = StoredChunks(files.chunks_file, is_verified=False)
            if digest_of(chunks[place] for place in range(len(chunks))) != note.digest:
                report.faults.append(f"{files.chunks_file} is damaged: it holds other chunks than were written")
        else:
            report.files = 3
    except (ConfigError, RecordError) as error:
        report.faults.append(str(error))
    except OSError as error:
        report.faults.append(f"{path} cannot be read: {error.strerror}")
    report.advice = files.advice if report.faults else ""
    return report


def _lost_checksums(files: LibraryFolder, note: LibraryManifest) -> Iterator[str]:
    """A fault if vectors are there whose checksums are not."""
    if note.chunks_crc32 is None or note.dimension is None or not files.vectors_file.is_file():
        return
    vectors, known = file_bytes(files.vectors_file) // (4 * note.dimension), files.embedded(note)
    if vectors > known:
        yield f"{files.checksums_file}: it has the checksums of {known:,} of {vectors:,} vectors"
