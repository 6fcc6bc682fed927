"""Loader for `--docs`: documents, which are split into chunks, or an existing library."""

from __future__ import annotations

import errno
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from moot.actors.retrieval.documents.parser_client import MOST_BYTES, MOST_CHARACTERS, DocumentParser, read_plain_text
from moot.actors.retrieval.library import LibraryChunk, digest_of
from moot.actors.retrieval.library_folder import LibraryFolder
from moot.protocols.errors import ConfigError
from moot.protocols.near_paths import near_path
from moot.protocols.regular_files import cause, read_regular
from moot.protocols.text.chunking import PAGE_BREAK, located_chunks


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """Text of one source document.

    Attributes:
        name: unique among the documents of a library.
        pages: its text, page by page; one for a document without pages. Some may be empty, not all.
        paged: whether its pages have numbers.
    """

    name: str
    pages: tuple[str, ...]
    paged: bool = False


def chunk_documents(documents: Iterable[SourceDocument]) -> list[LibraryChunk]:
    """Splits documents into chunks, in order; a chunk over a page break counts to the page on which it begins."""
    return [chunk for document in documents for chunk in _chunks(document)]


def _chunks(document: SourceDocument) -> list[LibraryChunk]:
    text = PAGE_BREAK.join(document.pages)
    begins = [0, *accumulate(len(page) + 1 for page in document.pages[:-1])]
    return [
        LibraryChunk(
            document=document.name,
            chunk=number,
            page=bisect_right(begins, chunk.start) if document.paged else None,
            text=chunk.text,
        )
        for number, chunk in enumerate(located_chunks(text))
    ]


KINDS = frozenset({".txt", ".md", ".markdown", ".html", ".htm", ".pdf"})
"""Supported suffixes."""

_SHOWN = ".txt, .md, .html or .pdf"


class DocumentFile(NamedTuple):
    """Document file.

    Attributes:
        path: its resolved path.
        name: the document's name.
        kind: one of `KINDS`, by the suffix in the user's path; the target of a link may have any name.
    """

    path: Path
    name: str
    kind: str


def find_documents(named: str) -> Iterator[DocumentFile]:
    """Finds the document files of a path: a file, or the files of a folder, at any depth, sorted by path.

    Of a folder, hidden files, other kinds, and links that lead out of it are skipped: who can write to the folder could
    otherwise choose files outside of it. A file named directly may be a link to anywhere.

    Raises:
        ConfigError: the path does not exist, or has no readable document.
    """
    path = Path(named).expanduser()
    if path.is_dir():
        yield from _files_in_folder(named, path)
        return
    if not path.exists():
        raise ConfigError(f"--docs {named}: no such file or folder{near_path(named)}")
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise ConfigError(f"--docs {named}: expected {_SHOWN}, found {path.suffix or 'a name without a kind'!r}")
    if not path.is_file():
        raise ConfigError(f"--docs {named}: expected a file, found a pipe or a device")
    yield DocumentFile(path.resolve(), path.name, kind)


def _files_in_folder(named: str, folder: Path) -> list[DocumentFile]:
    names = [file.relative_to(folder) for file in sorted(folder.rglob("*")) if file.is_file()]
    names = [n for n in names if n.suffix.lower() in KINDS and not any(part.startswith(".") for part in n.parts)]
    files = [DocumentFile((folder / name).resolve(), name.as_posix(), name.suffix.lower()) for name in names]
    inside = [each for each in files if each.path.is_relative_to(folder.resolve())]
    if not inside:
        why = "; links that lead out of a folder are passed over: name the files themselves" if files else ""
        raise ConfigError(f"--docs {named}: the folder holds no document ({_SHOWN}){why}")
    return inside


def read_documents(named: Sequence[str]) -> list[SourceDocument]:
    """Reads the documents in files and folders, in the given order, those of a folder sorted by path.

    A document is named after its file, in a folder by its path there; if two names collide, all documents are named by
    their paths from the nearest common folder. A file that is named twice is read once. `find_documents` selects the
    files; `moot.actors.retrieval.documents.parser_client` sets the bounds of parsing.

    Raises:
        ConfigError: naming the file and what is wrong with it.
    """
    found: dict[Path, DocumentFile] = {}
    for each in named:
        for one in find_documents(each):
            found.setdefault(one.path, one)
    files = _unique_names(list(found.values()))
    with DocumentParser() as reading:
        return [_read(each, reading) for each in files]


def _unique_names(files: Sequence[DocumentFile]) -> list[DocumentFile]:
    if max(Counter(each.name for each in files).values(), default=0) <= 1:
        return list(files)
    common = Path(os.path.commonpath([each.path.parent for each in files]))
    return [each._replace(name=each.path.relative_to(common).as_posix()) for each in files]


def _read(found: DocumentFile, reading: DocumentParser) -> SourceDocument:
    where = f"document {found.name!r}"
    try:
        raw = read_regular(found.path, MOST_BYTES)
    except OSError as error:
        advice = ": split it" if error.errno == errno.EFBIG else ""
        raise ConfigError(f"{where} cannot be read: {cause(error)}{advice}") from None
    if not raw.strip():
        raise ConfigError(f"{where} is empty")
    try:
        pages = (read_plain_text(raw),) if found.kind == ".txt" else reading.pages(found.kind, raw)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    paged = found.kind == ".pdf"
    _check_text(where, pages, scanned=paged)
    return SourceDocument(found.name, pages, paged=paged)


def _check_text(where: str, pages: Sequence[str], *, scanned: bool = False) -> None:
    if not any(character.isalnum() for page in pages for character in page):
        hint = ": a scanned PDF has to be put through text recognition first" if scanned else ""
        raise ConfigError(f"{where} has no text in it{hint}")
    if sum(map(len, pages)) > MOST_CHARACTERS:
        raise ConfigError(f"{where} is longer than {MOST_CHARACTERS:,} characters: split it")
    try:
        "".join(pages).encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{where} holds a lone surrogate, which is not Unicode text") from None


@dataclass(frozen=True)
class DocumentSet:
    """Set of documents to build a library from, or an existing library.

    Attributes:
        digest: of the chunks.
        size: number of chunks.
        documents: number of documents; None for an existing library.
        chunks: in order; empty for an existing library.
        library: absolute folder of an existing library; None when one has to be built.
    """

    digest: str
    size: int
    documents: int | None = None
    chunks: Sequence[LibraryChunk] = field(default=(), repr=False)
    library: Path | None = None


def open_documents(named: Sequence[str], encoder: str) -> DocumentSet:
    """Opens paths: reads and chunks documents, or validates the library behind a single path.

    Args:
        named: files, folders of files, or the folder of a single finished library.
        encoder: identity of the encoder for searches.

    Raises:
        ConfigError: naming the file and what is wrong with it, or the library and why it cannot be searched.
        RecordError: a file of the library is damaged.
    """
    libraries = [each for each in named if _is_library(each)]
    if not libraries:
        return _docs(read_documents(named))
    if len(named) > 1:
        raise ConfigError(f"--docs {libraries[0]}: a library is searched alone; name it, or documents")
    folder = Path(libraries[0]).expanduser().absolute()
    note = LibraryFolder(folder).check(encoder)
    return DocumentSet(note.digest, note.chunks, library=folder)


def _is_library(named: str) -> bool:
    """Whether a path is that of a library. Raises ConfigError for an invalid path."""
    try:
        return LibraryFolder(Path(named).expanduser()).exists()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"--docs {named[:60]}: {reason.rstrip('.').lower()}") from None


def documents_from_texts(texts: Mapping[str, str]) -> DocumentSet:
    """Document set from texts by name.

    Raises:
        ConfigError: the mapping is empty, or a name or a text is invalid.
    """
    if not texts:
        raise ConfigError("`docs`: expected at least one document")
    for name, text in texts.items():
        if not (isinstance(name, str) and isinstance(text, str) and name.strip()):
            raise ConfigError(f"`docs`: expected texts by name, found {name!r}: {type(text).__name__}")
        _check_text(f"document {name!r}", (text,))
    return _docs([SourceDocument(name, (text,)) for name, text in texts.items()])


def _docs(documents: Sequence[SourceDocument]) -> DocumentSet:
    chunks = chunk_documents(documents)
    return DocumentSet(digest_of(chunks), len(chunks), len(documents), chunks)
