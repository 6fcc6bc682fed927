"""What `--docs` names, opened: documents that are cut into chunks, or a library that was made before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moot.actors.retrieval.library import LibraryChunk, LibraryFolder, digest_of
from moot.deploy.documents.chunked import chunked
from moot.deploy.documents.document import Document
from moot.deploy.documents.read import documents_of_texts, read_documents
from moot.protocols.errors import ConfigError


@dataclass(frozen=True)
class Docs:
    """Documents that can be made a library, or one that is at hand.

    Attributes:
        digest: of the chunks.
        size: how many chunks there are.
        documents: how many documents they are of; None for a library that is at hand.
        chunks: in order; empty for a library that is at hand.
        library: the folder of a library that is at hand, absolute; None when it has to be built.
    """

    digest: str
    size: int
    documents: int | None = None
    chunks: Sequence[LibraryChunk] = field(default=(), repr=False)
    library: Path | None = None


def open_docs(named: Sequence[str], encoder: str) -> Docs:
    """Read and cut the documents behind paths, or look at the library behind the only one.

    Args:
        named: files, folders of them, or the folder of a finished library alone.
        encoder: identity of the encoder that searches.

    Raises:
        ConfigError: naming the file and what is wrong with it, or the library and why it cannot be searched.
    """
    libraries = [each for each in named if _is_library(each)]
    if not libraries:
        return _docs(read_documents(named))
    if len(named) > 1:
        raise ConfigError(f"--docs {libraries[0]}: a library is searched alone; name it, or documents")
    folder = Path(libraries[0]).expanduser().absolute()
    note = LibraryFolder(folder).check(encoder)
    return Docs(note.digest, note.chunks, library=folder)


def _is_library(named: str) -> bool:
    """Whether a path is that of a library. Raises ConfigError when it can be nobody's."""
    try:
        return LibraryFolder(Path(named).expanduser()).exists()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"--docs {named[:60]}: {reason.rstrip('.').lower()}") from None


def docs_of_texts(texts: Mapping[str, str]) -> Docs:
    """Documents from texts by name. Raises ConfigError when one is none."""
    return _docs(documents_of_texts(texts))


def _docs(documents: Sequence[Document]) -> Docs:
    chunks = chunked(documents)
    return Docs(digest_of(chunks), len(chunks), len(documents), chunks)
