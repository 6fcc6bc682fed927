"""Mirror: a local copy of a record in a store, for code that reads paths."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from weakref import WeakValueDictionary

from moot.actors.record.flush_log import SUFFIX
from moot.actors.record.process_folder import LOCK, FolderLock, remove_stale_folders
from moot.actors.record.roll_files import decode_part, roll_of
from moot.actors.record.store.deltas import AT_ONCE, replay, rolls_of
from moot.actors.record.store.store import Store
from moot.actors.record.store.uri import is_uri, local_path
from moot.protocols.errors import RecordError


class Mirror:
    """Mirror of a store in a folder of this process.

    Args:
        store: the store.

    Attributes:
        folder: the record, as it was at the last `pull`.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._scratch = Scratch()
        self.folder = self._scratch.path / "run"
        self.folder.mkdir()
        _MIRRORS[self.folder] = self

    def pull(self) -> None:
        """Fetch what is missing here.

        Raises:
            RecordError: the store cannot be read, or changes faster than it can be read.
        """
        pull(self.store, self.folder)

    def remove(self) -> None:
        """Remove the folder."""
        _MIRRORS.pop(self.folder, None)
        self._scratch.remove()


_MIRRORS: WeakValueDictionary[Path, Mirror] = WeakValueDictionary()
_WITHIN = re.compile(r"(?:\w[\w.-]*/)*\w[\w.-]*")
"""Name that stays below its folder. Other names are not files of a run, and are ignored."""
_READ: dict[str, Mirror] = {}


def pull(store: Store, folder: Path) -> None:
    """Copies a store to a folder: segments as far as their deltas go, and every other object of the run.

    The journal comes first: what becomes a part meanwhile is read twice, never missed, and what is missing in it does
    not matter if it is in a part by then.

    Raises:
        RecordError: the store cannot be read or parsed.
    """
    (folder / "journal").mkdir(exist_ok=True)
    faults: dict[str, RecordError] = {}
    for roll, names in rolls_of(store).items():
        try:
            replay(store, roll, names, folder / "journal")
        except RecordError as error:
            faults[roll] = error
    listed = [name for name in store.sizes() if _WITHIN.fullmatch(name) and not name.startswith("journal/")]
    parts = [name for name in listed if name.startswith("parts/") and name.endswith((".json", SUFFIX))]
    _fetch(store, folder, (name for name in parts if not (folder / name).exists()))
    committed = [decode_part(folder / name) for name in parts if name.endswith(".json") and (folder / name).exists()]
    replaced = {roll_of(name) for part in committed for name in part.covers}
    for roll, fault in faults.items():
        if roll not in replaced:
            raise fault
    tables = {name for part in committed for name in part.tables.values()}
    missing = [name for name in tables if not (folder / name).exists()]
    others = [
        name for name in listed if _changes(name) or (name.startswith("prompts/") and not (folder / name).exists())
    ]
    _fetch(store, folder, [*missing, *others])


def _changes(name: str) -> bool:
    """Whether an object is a file of the run that may be rewritten."""
    return "/" not in name and name != "owner.json"


def _fetch(store: Store, folder: Path, names: Iterable[str]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda name: store.get_file(name, folder / name), names))


def display_name(folder: str | Path) -> str:
    """Name of a run's folder for users: the URI of a mirror, else its path."""
    store = store_of(folder)
    return str(folder) if store is None else store.uri


def store_of(folder: str | Path) -> Store | None:
    """The store that a folder mirrors; None when it is no mirror."""
    mirror = _MIRRORS.get(Path(folder))
    return None if mirror is None else mirror.store


def with_uris(text: str) -> str:
    """Replaces the folders of this process's mirrors in a text by their URIs."""
    for folder, mirror in _MIRRORS.items():
        text = text.replace(str(folder), mirror.store.uri)
    return text


def record_path(named: str | os.PathLike[str]) -> Path:
    """Folder for reading a run: for a URI a current copy of the store, which lasts as long as this process.

    An unfinished run's copy from a bucket is read as the bucket would be.

    Raises:
        ConfigError: the URI is invalid for pyarrow, or the store cannot be reached.
        RecordError: the store cannot be read.
    """
    text = os.fspath(named)
    if is_uri(text):
        return _read(text, None)
    path = local_path(text)
    if is_copy(path):
        return _read(text, path)
    return path if text.lower().startswith("file:") else Path(text)


def is_copy(folder: Path) -> bool:
    """Whether a folder contains the journal of a store."""
    return next(folder.glob("journal/*/begun"), None) is not None


def _read(name: str, copied: Path | None) -> Path:
    mirror = _READ.get(name)
    if mirror is None:
        store = Store.of(name) if copied is None else _store_of_folder(copied, name)
        store.check()
        mirror = _READ[name] = Mirror(store)
    mirror.pull()
    if not (mirror.folder / "run.yaml").exists():
        raise RecordError(f"{name}: no run there (no run.yaml)")
    return mirror.folder


def _store_of_folder(folder: Path, name: str) -> Store:
    from pyarrow.fs import LocalFileSystem

    return Store(LocalFileSystem(), str(folder), name)


_PREFIX = "moot-scratch-"


class Scratch:
    """Temporary folder, removed by `remove`, when nothing refers to it any more, or at the end of the process.

    Attributes:
        path: the folder, absolute.
    """

    def __init__(self) -> None:
        remove_stale_folders(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{LOCK}"))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._finalizer = weakref.finalize(self, FolderLock(self.path).remove)

    def remove(self) -> None:
        """Remove the folder now."""
        self._finalizer()
