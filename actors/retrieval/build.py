"""Library build: chunks are embedded in batches, each appended to disk, so that a killed build can resume."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
import numpy as np
import structlog

from moot.actors.encoders.interface import Encoder, Rows
from moot.actors.record.files import checksum, write_whole
from moot.actors.retrieval.library import LibraryChunk, digest_of, write_chunks
from moot.actors.retrieval.library_folder import LibraryFolder, LibraryManifest
from moot.actors.retrieval.row_checksums import CHECKSUM_BYTES, checksums_of_file, row_checksums
from moot.actors.telemetry.failpoints import failpoint
from moot.protocols.errors import ConfigError, EncoderFailed, ModelUnavailable, RecordError, RunFolderBusy

T = TypeVar("T")

_log = structlog.get_logger(__name__)
_BATCH = 256
"""Batch size in texts: as many as a served encoder has in flight."""

_OWN = frozenset({"library.json", "chunks.arrow", "vectors.f32", "vectors.crc32"})


async def build_library(
    folder: str | Path,
    chunks: Sequence[LibraryChunk],
    encoder: Encoder,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Build a library, or resume an interrupted build: stored chunks are not embedded again unless their vector is
    damaged, and a repeated text is embedded once. May be cancelled at any await.

    Args:
        folder: created if missing; empty, or with a library of the same chunks and encoder.
        chunks: at least one.
        encoder: of the run.
        on_progress: called after each batch with the numbers of embedded chunks and of all chunks.

    Raises:
        ConfigError: the folder holds something else, or a library of other documents or of another encoder.
        ModelUnavailable: the encoder fails, after retries.
        RunFolderBusy: another process is building it.
        RecordError: the disk is full, or cannot be written.
    """
    files = LibraryFolder(folder)
    digest = await asyncio.to_thread(digest_of, chunks)
    wanted = LibraryManifest(encoder=encoder.name, digest=digest, chunks=len(chunks))
    with _locked(files) as vectors:
        note = await _in_thread(files, _start_build, files, chunks, wanted)
        await _Build(files, note, vectors, chunks, encoder).run(on_progress)


def _start_build(files: LibraryFolder, chunks: Sequence[LibraryChunk], wanted: LibraryManifest) -> LibraryManifest:
    """Manifest of a library whose build starts or resumes, with its chunks and a checksum of each vector."""
    note = files.manifest() if files.exists() else wanted
    if note.encoder != wanted.encoder:
        raise ConfigError(f"{files.path} holds a library of the encoder {note.encoder}, not {wanted.encoder}")
    if note.digest != wanted.digest:
        raise ConfigError(f"{files.path} holds a library of other documents: name another folder, or delete it")
    if note.chunks_crc32 is None:
        # Vectors of an earlier version: what is there is trusted from now on.
        is_begun = note.dimension is not None
        found = checksums_of_file(files.vectors_file, note.row_bytes) if is_begun else b""
        write_whole(files.checksums_file, found)
    elif not files.checksums_file.exists():
        files.checksums_file.touch()
    if note.chunks_crc32 is None or not files.has_intact_chunks(note):
        if note.chunks_crc32 is not None:
            _log.warning("damaged chunks are written again", library=str(files.path))
        write_chunks(files.chunks_file, chunks)
        note = msgspec.structs.replace(note, chunks_crc32=checksum(files.chunks_file))
        files.write_manifest(note)
    return note


@contextmanager
def _locked(files: LibraryFolder) -> Iterator[BinaryIO]:
    """Opens the vectors' file with an exclusive lock."""
    try:
        files.path.mkdir(parents=True, exist_ok=True)
        foreign = {path.name for path in files.path.iterdir() if not path.name.startswith(".")} - _OWN
        if foreign:
            raise ConfigError(f"{files.path} holds other files ({min(foreign)}): a library needs a folder of its own")
        opened = os.fdopen(os.open(files.vectors_file, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
    except OSError as error:
        raise ConfigError(f"{files.path}: {(error.strerror or 'cannot be written').lower()}") from None
    with opened as vectors:
        try:
            fcntl.flock(vectors, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFolderBusy(f"{files.path} is being built by another process; wait for it or stop it") from None
        yield vectors


class _Build:
    """One session of a library build."""

    def __init__(
        self,
        files: LibraryFolder,
        note: LibraryManifest,
        vectors: BinaryIO,
        chunks: Sequence[LibraryChunk],
        encoder: Encoder,
    ) -> None:
        self._files, self._note, self._vectors, self._encoder = files, note, vectors, encoder
        self._texts = [chunk.text for chunk in chunks]
        self._first: dict[str, int] = {}
        for place, text in enumerate(self._texts):
            self._first.setdefault(text, place)

    async def run(self, on_progress: Callable[[int, int], None]) -> None:
        total = len(self._texts)
        missing = await _in_thread(self._files, self._missing)
        done = total - len(missing)
        for start in range(0, len(missing), _BATCH):
            places = missing[start : start + _BATCH]
            fresh = [place for place in places if self._first[self._texts[place]] == place]
            try:
                new = await self._encoder.encode([self._texts[place] for place in fresh]) if fresh else None
            except EncoderFailed as error:
                raise ModelUnavailable(
                    f"encoder {error.encoder}: {error.message}; {done:,} of {total:,} chunks are embedded, and "
                    "run the same command again to resume from there"
                ) from None
            paid = {} if new is None else dict(zip(fresh, new, strict=True))
            await _in_thread(self._files, self._append, places, paid)
            done += len(places)
            on_progress(done, total)
        await _in_thread(self._files, self._end)

    def _missing(self) -> list[int]:
        """Chunks without an intact vector; damaged ones are logged."""
        intact = self._files.intact_vectors(self._note)
        if damaged := int((~intact)[: self._files.written(self._note)].sum()):
            _log.warning("damaged vectors are embedded again", library=str(self._files.path), count=damaged)
        return [int(place) for place in np.flatnonzero(~intact)]

    def _append(self, places: Sequence[int], new: Mapping[int, Rows]) -> None:
        """Write the vectors of chunks, new ones and those of repeated texts, and then their checksums."""
        for row in new.values():
            self._learn_dimension(len(row))
        size = self._note.row_bytes
        with open(self._files.checksums_file, "r+b") as checksums:
            found: dict[int, bytes] = {}
            for place in places:
                found[place] = self._row(self._first[self._texts[place]], new, size)
                self._vectors.seek(place * size)
                self._vectors.write(found[place])
            self._vectors.flush()
            os.fsync(self._vectors.fileno())
            for place, vector in found.items():
                checksums.seek(place * CHECKSUM_BYTES)
                checksums.write(row_checksums(vector, size))
            checksums.flush()
            os.fsync(checksums.fileno())
        failpoint("library.appended")

    def _row(self, place: int, new: Mapping[int, Rows], size: int) -> bytes:
        if place in new:
            return new[place].astype(np.float32).tobytes()
        self._vectors.seek(place * size)
        return self._vectors.read(size)

    def _end(self) -> None:
        """Remove what does not belong to the vectors, such as from a damaged file system."""
        os.truncate(self._files.vectors_file, self._note.row_bytes * len(self._texts))
        os.truncate(self._files.checksums_file, CHECKSUM_BYTES * len(self._texts))

    def _learn_dimension(self, dimension: int) -> None:
        """Record the dimension before the first vector, so that a resumed build knows the row length."""
        if self._note.dimension is None:
            self._note = msgspec.structs.replace(self._note, dimension=dimension)
            self._files.write_manifest(self._note)
        elif self._note.dimension != dimension:
            raise ModelUnavailable(
                f"encoder {self._encoder.name} gives vectors of {dimension} numbers after vectors of "
                f"{self._note.dimension}: it serves another model now"
            )


async def _in_thread(files: LibraryFolder, work: Callable[..., T], *args: object) -> T:
    """Runs work in a thread; when cancelled, waits for its end first, so that no open file is closed meanwhile."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
    except OSError as error:
        raise RecordError(f"library {files.path} cannot be read or written: {error.strerror}") from error
