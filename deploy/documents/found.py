"""Which files a user means by a path: one that is named, or those of a folder that can be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from moot.protocols.errors import ConfigError

KINDS = frozenset({".txt", ".md", ".markdown", ".html", ".htm", ".pdf"})
"""Suffixes of what can be read."""

_SHOWN = ".txt, .md, .html or .pdf"


class Found(NamedTuple):
    """A file.

    Attributes:
        path: where it lies, links followed.
        name: what its document is called.
        kind: one of `KINDS`, by the name that was given: what a link leads to may be called anything.
    """

    path: Path
    name: str
    kind: str


def find(named: str) -> Iterator[Found]:
    """The file behind a path, or the files of a folder, at any depth, by path.

    Left out of a folder are hidden files, other kinds, and links that lead out of it: whoever fills a folder would else
    say what is read beyond it. A file that is named may be a link to anywhere.

    Raises:
        ConfigError: nothing is there, or nothing that can be read.
    """
    path = Path(named).expanduser()
    if path.is_dir():
        yield from _within(named, path)
        return
    if not path.exists():
        raise ConfigError(f"--docs {named}: no such file or folder")
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise ConfigError(f"--docs {named}: expected {_SHOWN}, found {path.suffix or 'a name without a kind'!r}")
    if not path.is_file():
        raise ConfigError(f"--docs {named}: expected a file, found a pipe or a device")
    yield Found(path.resolve(), path.name, kind)


def _within(named: str, folder: Path) -> list[Found]:
    names = [file.relative_to(folder) for file in sorted(folder.rglob("*")) if file.is_file()]
    names = [name for name in names if name.suffix.lower() in KINDS and not any(map(_is_hidden, name.parts))]
    files = [Found((folder / name).resolve(), name.as_posix(), name.suffix.lower()) for name in names]
    inside = [each for each in files if each.path.is_relative_to(folder.resolve())]
    if not inside:
        why = "; links that lead out of a folder are passed over: name the files themselves" if files else ""
        raise ConfigError(f"--docs {named}: the folder holds no document ({_SHOWN}){why}")
    return inside


def _is_hidden(part: str) -> bool:
    return part.startswith(".")
