"""Library build: chunks are embedded in batches, each appended to disk, so that a killed build can resume."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from moot.actors.encoders.interface import Encoder, Rows
from moot.actors.retrieval.library import LibraryChunk, LibraryFolder, LibraryManifest, digest_of, write_chunks
from moot.actors.telemetry.failpoints import failpoint
from moot.protocols.errors import ConfigError, EncoderFailed, ModelUnavailable, RecordError, RunFolderBusy

_BATCH = 256
"""Batch size in texts: as many as a served encoder has in flight."""

_OWN = frozenset({"library.json", "chunks.arrow", "vectors.f32"})


async def build_library(
    folder: str | Path,
    chunks: Sequence[LibraryChunk],
    encoder: Encoder,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Build a library, or resume an interrupted build: stored chunks are not embedded again, and a repeated text is
    embedded once. May be cancelled at any await.

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
        note = await asyncio.to_thread(_start_build, files, chunks, wanted)
        await _Build(files, note, vectors, chunks, encoder).run(on_progress)


def _start_build(files: LibraryFolder, chunks: Sequence[LibraryChunk], wanted: LibraryManifest) -> LibraryManifest:
    """Manifest of a library whose build starts or resumes."""
    if not files.exists():
        write_chunks(files.chunks_file, chunks)
        files.write_manifest(wanted)
        return wanted
    note = files.manifest()
    if note.encoder != wanted.encoder:
        raise ConfigError(f"{files.path} holds a library of the encoder {note.encoder}, not {wanted.encoder}")
    if note.digest != wanted.digest:
        raise ConfigError(f"{files.path} holds a library of other documents: name another folder, or delete it")
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
        done = min(self._files.embedded(self._note), total)
        for start in range(done, total, _BATCH):
            places = range(start, min(start + _BATCH, total))
            fresh = [place for place in places if self._first[self._texts[place]] == place]
            try:
                new = await self._encoder.encode([self._texts[place] for place in fresh]) if fresh else None
            except EncoderFailed as error:
                raise ModelUnavailable(
                    f"encoder {error.encoder}: {error.message}; {places[0]:,} of {total:,} chunks are embedded, and "
                    "run the same command again to resume from there"
                ) from None
            try:
                await _finished(self._append, places, {} if new is None else dict(zip(fresh, new, strict=True)))
            except OSError as error:
                raise RecordError(f"cannot write {self._files.vectors_file}: {error.strerror}") from error
            on_progress(places[-1] + 1, total)

    def _append(self, places: Sequence[int], new: Mapping[int, Rows]) -> None:
        """Append the vectors of consecutive chunks: new ones, and those of repeated texts."""
        for row in new.values():
            self._learn_dimension(len(row))
        size = 4 * (self._note.dimension or 0)
        rows = [self._row(self._first[self._texts[place]], new, size) for place in places]
        self._vectors.seek(places[0] * size)
        self._vectors.truncate()  # remove a torn row of a killed build
        self._vectors.write(b"".join(rows))
        self._vectors.flush()
        os.fsync(self._vectors.fileno())
        failpoint("library.appended")

    def _row(self, place: int, new: Mapping[int, Rows], size: int) -> bytes:
        if place in new:
            return new[place].astype(np.float32).tobytes()
        self._vectors.seek(place * size)
        return self._vectors.read(size)

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


async def _finished(work: Callable[..., None], *args: object) -> None:
    """Runs work in a thread; when cancelled, waits for its end first, so that no open file is closed meanwhile."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
