"""Documents from what a user names: files, folders of them, or texts by name."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from moot.deploy.documents.bounds import MOST_BYTES, MOST_CHARACTERS
from moot.deploy.documents.document import Document
from moot.deploy.documents.found import Found, find
from moot.deploy.documents.plain_text import read_plain_text
from moot.deploy.documents.reading import Reading
from moot.protocols.errors import ConfigError


def read_documents(named: Sequence[str]) -> list[Document]:
    """The documents in files and folders, in the order in which they are named, those of a folder by path.

    A file is called by its name, one of a folder by its path in there; where two would be called the same, every
    document is called by its path from the nearest folder that holds them all. A file that is named twice is read once.
    See `moot.deploy.documents.found` for which files are taken, and `moot.deploy.documents.bounds` for what reading one
    may take.

    Raises:
        ConfigError: naming the file and what is wrong with it.
    """
    found: dict[Path, Found] = {}
    for each in named:
        for one in find(each):
            found.setdefault(one.path, one)
    files = _told_apart(list(found.values()))
    with Reading() as reading:
        return [_read(each, reading) for each in files]


def _told_apart(files: Sequence[Found]) -> list[Found]:
    if max(Counter(each.name for each in files).values(), default=0) <= 1:
        return list(files)
    common = Path(os.path.commonpath([each.path.parent for each in files]))
    return [each._replace(name=each.path.relative_to(common).as_posix()) for each in files]


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


def _read(found: Found, reading: Reading) -> Document:
    where = f"document {found.name!r}"
    try:
        with found.path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {(error.strerror or 'unknown reason').lower()}") from None
    if len(raw) > MOST_BYTES:
        raise ConfigError(f"{where} is larger than {MOST_BYTES >> 20} MiB: split it")
    if not raw.strip():
        raise ConfigError(f"{where} is empty")
    try:
        pages = (read_plain_text(raw),) if found.kind == ".txt" else reading.pages(found.kind, raw)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    paged = found.kind == ".pdf"
    _check_text(where, pages, scanned=paged)
    return Document(found.name, pages, paged=paged)


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
