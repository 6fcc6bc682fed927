"""Documents and library of a run: read the documents, locate the library, and build it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from moot.actors.encoders.resolve import make_encoder
from moot.actors.models.retry import RetryPolicy
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.retrieval.build import build_library
from moot.actors.retrieval.documents.docs import DocumentSet, open_documents
from moot.actors.retrieval.library_folder import LibraryFolder
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import ConfigError, RecordError

_NAME = "library"


class LibraryCache:
    """Cache of libraries that several runs share, such as the cells of a grid: documents are read once, and embedded
    once per encoder.

    Args:
        out: the parent folder of the runs' folders, as the user gave it.
    """

    def __init__(self, out: str | Path) -> None:
        self._folder = Path(out).expanduser().absolute() / _NAME
        self._opened: dict[tuple[Sequence[str], str], DocumentSet] = {}

    def docs(self, paths: Sequence[str], encoder: str) -> DocumentSet:
        """Documents as `moot.actors.retrieval.documents.docs.open_documents` returns them, read on first use."""
        key = (tuple(paths), encoder)
        if key not in self._opened:
            self._opened[key] = open_documents(paths, encoder)
        return self._opened[key]

    def library_path(self, digest: str, encoder: str) -> Path:
        """Absolute folder of the library of these chunks and this encoder; it need not exist.

        Args:
            digest: of the chunks.
            encoder: identity of the encoder.
        """
        return self._folder / blake2b(f"{digest} {encoder}".encode(), digest_size=6).hexdigest()


def run_documents(
    paths: Sequence[str], encoder: str, folder: Path, shared_libraries: LibraryCache | None
) -> tuple[DocumentSet, Path]:
    """Documents of a run and the absolute folder of their library.

    A run that has begun keeps its library, in any working folder. If that library is complete and documents are
    missing, the run continues without reading them.

    Args:
        paths: the values of `--docs`; at least one.
        encoder: identity of the run's encoder.
        folder: the run's folder, absolute.
        shared_libraries: the shared libraries of related runs; None for a run with a library of its own.

    Raises:
        ConfigError: a document cannot be read, or a library cannot be searched.
        RecordError: the folder's run.yaml cannot be read, or a library that is needed is damaged.
    """
    content = read_run_yaml(RunFolder(folder)) if RunFolder(folder).exists() else {}
    begun = recorded_library(content, folder)
    if begun is not None and content.get("docs") == list(paths) and is_missing(paths):
        digest, size = content.get("docs_digest"), _finished_size(begun, encoder, content.get("docs_digest"))
        if size is not None:
            return DocumentSet(str(digest), size, library=begun), begun
    docs = open_documents(paths, encoder) if shared_libraries is None else shared_libraries.docs(paths, encoder)
    if docs.library is not None:
        return docs, docs.library
    if begun is not None and _is_of(LibraryFolder(begun), docs.digest, encoder):
        return docs, begun
    return docs, default_library_folder(folder) if shared_libraries is None else shared_libraries.library_path(
        docs.digest, encoder
    )


def default_library_folder(folder: Path) -> Path:
    """Default library folder of a run without a shared library."""
    return folder / _NAME


def is_missing(paths: Sequence[str]) -> bool:
    """Whether one of the documents is missing."""
    return not all(Path(each).expanduser().exists() for each in paths)


def recorded_library_path(library: Path, folder: Path) -> str:
    """Path of the library for run.yaml: relative to the run's folder if inside or beside it, so that both can be moved
    together; else absolute."""
    return os.path.relpath(library, folder) if library.is_relative_to(folder.parent) else str(library)


def is_library_complete(library: Path, digest: str, encoder: str) -> bool:
    """Whether a library of these chunks is complete for an encoder, and none of its files is damaged."""
    try:
        return _finished_size(library, encoder, digest) is not None
    except RecordError:
        return False


def recorded_library(content: dict[str, Any], folder: Path) -> Path | None:
    """Folder of the library that a run's run.yaml records; None if there is none, or it does not exist.

    Args:
        content: of run.yaml.
        folder: of the run.
    """
    recorded = content.get(_NAME)
    library = Path(os.path.normpath(folder / recorded)) if isinstance(recorded, str) else None
    return library if library is not None and LibraryFolder(library).exists() else None


def _is_of(library: LibraryFolder, digest: str, encoder: str) -> bool:
    manifest = library.manifest()
    return (manifest.digest, manifest.encoder) == (digest, encoder)


def _finished_size(library: Path, encoder: str, digest: str | None) -> int | None:
    """Number of chunks of a complete library of these documents; None for any other library.

    Raises:
        RecordError: a file of the library is damaged.
    """
    try:
        manifest = LibraryFolder(library).check(encoder)
    except ConfigError:
        return None
    return manifest.chunks if manifest.digest == digest else None


async def build_run_library(
    docs: DocumentSet | None, library: Path | None, config: RunConfig, on_progress: Callable[[int, int], None]
) -> None:
    """Build the run's library, or resume building it; no-op without documents or with a complete library.

    Args:
        docs, library: see `moot.deploy.runs.prepare.Prepared`.
        config: of the prepared run: it names the encoder.
        on_progress: progress callback with the embedded and the total number of chunks.

    Raises:
        UserError: the encoder fails, or the folder contains a library of other documents.
        RecordError: the disk is full, or cannot be written.
    """
    if docs is None or docs.library is not None or library is None:
        return
    if is_library_complete(library, docs.digest, config.encoder):
        return
    encoder = make_encoder(config.encoder, RetryPolicy(), api_key_env=config.encoder_key_env)
    try:
        await build_library(library, docs.chunks, encoder, on_progress)
    finally:
        await encoder.close()
