"""Documents from what a user names: files, folders of them, or texts by name."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from moot.deploy.documents.document import Document
from moot.deploy.documents.markdown import read_markdown
from moot.deploy.documents.pdf import read_pdf
from moot.deploy.documents.plain_text import read_plain_text
from moot.deploy.documents.web_page import read_web_page
from moot.protocols.errors import ConfigError

MOST_BYTES = 64 * 2**20
"""Bytes of one file at most."""

_READERS: dict[str, Callable[[bytes], str | tuple[str, ...]]] = {
    ".txt": read_plain_text,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_web_page,
    ".htm": read_web_page,
    ".pdf": read_pdf,
}
_KINDS = ".txt, .md, .html or .pdf"


def read_documents(named: Sequence[str]) -> list[Document]:
    """The documents in files and folders, in the order in which they are named, those of a folder by path.

    A folder gives the files in it that can be read, at any depth, hidden ones and other kinds left out. A file is
    called by its name, one of a folder by its path in there; where two would be called the same, every document is
    called by its path from the nearest folder that holds them all. A file that is named twice is read once.

    Raises:
        ConfigError: naming the file and what is wrong with it.
    """
    calls: dict[Path, str] = {}
    for each in named:
        for path, name in _found(each):
            calls.setdefault(path, name)
    if max(Counter(calls.values()).values(), default=0) > 1:
        common = Path(os.path.commonpath([path.parent for path in calls]))
        calls = {path: path.relative_to(common).as_posix() for path in calls}
    return [_read(path, name) for path, name in calls.items()]


def documents_of_texts(texts: Mapping[str, str]) -> list[Document]:
    """Documents from texts by name.

    Raises:
        ConfigError: there are none, or a name or a text is none.
    """
    if not texts:
        raise ConfigError("`docs`: expected at least one document")
    for name, text in texts.items():
        if not (isinstance(name, str) and isinstance(text, str) and name.strip()):
            raise ConfigError(f"`docs`: expected texts by name, found {name!r}: {type(text).__name__}")
        _check_text(f"document {name!r}", (text,))
    return [Document(name, (text,)) for name, text in texts.items()]


def _found(named: str) -> Iterator[tuple[Path, str]]:
    """Files behind a path, absolute, with what each is called."""
    path = Path(named).expanduser()
    if not path.exists():
        raise ConfigError(f"--docs {named}: no such file or folder")
    if not path.is_dir():
        if path.suffix.lower() not in _READERS:
            raise ConfigError(f"--docs {named}: expected {_KINDS}, found {path.suffix or 'a name without a kind'!r}")
        yield path.resolve(), path.name
        return
    files = documents_in(path)
    if not files:
        raise ConfigError(f"--docs {named}: the folder holds no document ({_KINDS})")
    for file in files:
        yield file.resolve(), file.relative_to(path).as_posix()


def documents_in(folder: Path) -> list[Path]:
    """The files of a folder that are read, at any depth, by path."""
    return [file for file in sorted(folder.rglob("*")) if _is_wanted(file, folder)]


def _is_wanted(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return not hidden and file.suffix.lower() in _READERS and file.is_file()


def _read(path: Path, name: str) -> Document:
    where = f"document {name!r}"
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {(error.strerror or 'unknown reason').lower()}") from None
    if len(raw) > MOST_BYTES:
        raise ConfigError(f"{where} is larger than {MOST_BYTES >> 20} MiB: split it")
    if not raw.strip():
        raise ConfigError(f"{where} is empty")
    try:
        text = _READERS[path.suffix.lower()](raw)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    pages = (text,) if isinstance(text, str) else text
    _check_text(where, pages, scanned=path.suffix.lower() == ".pdf")
    return Document(name, pages, paged=not isinstance(text, str))


def _check_text(where: str, pages: Sequence[str], *, scanned: bool = False) -> None:
    if not any(character.isalnum() for page in pages for character in page):
        hint = ": a scanned PDF has to be put through text recognition first" if scanned else ""
        raise ConfigError(f"{where} has no text in it{hint}")
    try:
        "".join(pages).encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{where} holds a lone surrogate, which is not Unicode text") from None
