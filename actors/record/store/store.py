"""Object store: a folder in a bucket or another filesystem of pyarrow; objects are put, read, listed and deleted."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from moot.actors.record.store.uri import open_filesystem
from moot.protocols.errors import ConfigError, RecordError
from moot.protocols.regular_files import open_regular

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

T = TypeVar("T")

_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
_LASTING = frozenset(
    {"ACCESS_DENIED", "NO_SUCH_BUCKET", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "EXPIRED_TOKEN"}
)
_ATOMIC = ("s3", "gcs")
"""Filesystems that show an object only when it is complete; Arrow's stream to Azure shows an empty one when opened."""

_COPY_BYTES = 8 * 2**20
_MOST_BYTES = 2**30
"""Most bytes of an object that is read as a whole: no flush of a journal is as large."""

_LONGEST = 240


class Store:
    """Objects by name below one folder. Every method may wait for the network: keep it off an event loop.

    A failed request is retried for some seconds, unless the store reports a permanent error.

    Args:
        filesystem: of pyarrow.
        base: path of the folder in it.
        uri: name for users.
    """

    def __init__(self, filesystem: FileSystem, base: str, uri: str) -> None:
        self._fs, self._base, self.uri = filesystem, base.rstrip("/"), uri
        self._forbidden = ""

    @classmethod
    def of(cls, uri: str) -> Store:
        """Store of a URI; requests at most a bucket's region from the network.

        Raises:
            ConfigError: see `open_filesystem`.
        """
        filesystem, base = open_filesystem(uri)
        return cls(filesystem, base, uri)

    def check(self) -> None:
        """Check that the bucket exists and can be reached.

        Raises:
            ConfigError: it cannot be reached, denies access, or does not exist.
        """
        root = self._base.partition("/")[0]
        try:
            info = (
                self._again("cannot be reached", lambda: self._fs.get_file_info(root), _PAUSES_S[:1]) if root else None
            )
            if info is not None and info.type.name == "NotFound":
                raise ConfigError(f"{self.uri}: there is no {root!r}")
        except RecordError as error:
            raise ConfigError(str(error)) from error

    def forbid(self, reason: str) -> None:
        """Refuse every change from now on: another process may own the record."""
        self._forbidden = reason

    def put(self, name: str, data: bytes | Path) -> None:
        """Write an object, of bytes or of a file's content; readers see the old one or the whole new one.

        Raises:
            RecordError: it cannot be written.
        """

        def fill(stream: NativeFile) -> None:
            if isinstance(data, bytes):
                stream.write(data)
                return
            with open_regular(data) as file:
                shutil.copyfileobj(file, stream, _COPY_BYTES)

        self._changed(f"cannot write {name}", lambda: self._write(name, fill))

    def get(self, name: str) -> bytes | None:
        """Content of an object; None when it does not exist.

        Raises:
            RecordError: it cannot be read, or is larger than any object that is read as a whole.
        """

        def read() -> bytes | None:
            try:
                with self._fs.open_input_file(self._path(name)) as file:
                    if file.size() > _MOST_BYTES:
                        raise RecordError(f"{self.uri}: {name} is damaged: it has {file.size():,} bytes")
                    return bytes(file.read())
            except FileNotFoundError:
                return None

        return self._again(f"cannot read {name}", read)

    def get_file(self, name: str, target: Path) -> bool:
        """Copy an object into a file; False when it does not exist. Raises like `get`."""

        def copy() -> bool:
            try:
                with self._fs.open_input_stream(self._path(name)) as stream, open(draft, "wb") as file:
                    shutil.copyfileobj(stream, file, _COPY_BYTES)
            except FileNotFoundError:
                return False
            return True

        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.tmp")
        found = self._again(f"cannot read {name}", copy)
        if found:
            draft.replace(target)
        return found

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Sizes in bytes of all objects below a folder, by name, in order. Raises like `get`."""
        return {name: info.size for name, info in self._listed(folder)}

    def modified(self, folder: str = "") -> dict[str, float]:
        """Modification times of all objects below a folder, in Unix time of the store's clock. Raises like `get`."""
        return {name: info.mtime_ns / 1e9 for name, info in self._listed(folder)}

    def modified_at(self, name: str) -> float | None:
        """Modification time of one object; None when it does not exist. Raises like `get`."""
        info = self._again(f"cannot read {name}", lambda: self._fs.get_file_info(self._path(name)))
        return None if info.type.name != "File" else info.mtime_ns / 1e9

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; missing ones are no error. Raises like `put`."""
        for name in names:
            self._changed(f"cannot delete {name}", partial(self._drop, self._fs.delete_file, self._path(name)))

    def delete_folder(self, name: str = "") -> None:
        """Delete everything below a folder, or the whole store. Raises like `put`."""
        path = self._path(name) if name else self._base
        self._changed(f"cannot delete {name}", partial(self._drop, self._fs.delete_dir, path))

    def _path(self, name: str) -> str:
        return f"{self._base}/{name}"

    def _listed(self, folder: str) -> list[tuple[str, FileInfo]]:
        from pyarrow.fs import FileSelector, FileType

        place = self._path(folder) if folder else self._base
        selector = FileSelector(place, recursive=True, allow_not_found=True)
        infos = self._again("cannot be listed", lambda: self._fs.get_file_info(selector))
        start = len(self._base) + 1
        return sorted((info.path[start:], info) for info in infos if info.type == FileType.File)

    def _write(self, name: str, fill: Callable[[NativeFile], object]) -> None:
        """Write to a temporary name and rename, where an object is visible before it is complete."""
        path = self._path(name)
        draft = path if self._fs.type_name in _ATOMIC else f"{path}.{uuid4().hex[:8]}.tmp"
        try:
            stream = self._fs.open_output_stream(draft)
        except FileNotFoundError:
            self._fs.create_dir(draft.rpartition("/")[0], recursive=True)
            stream = self._fs.open_output_stream(draft)
        with stream:
            fill(stream)
        if draft != path:
            self._rename(draft, path)

    def _rename(self, draft: str, path: str) -> None:
        try:
            self._fs.move(draft, path)
        except NotImplementedError as error:
            self._drop(self._fs.delete_file, draft)
            raise RecordError(f"{self.uri}: objects cannot be renamed there: {_reason(error)}") from error

    @staticmethod
    def _drop(delete: Callable[[str], None], path: str) -> None:
        try:
            delete(path)
        except FileNotFoundError:
            return

    def _changed(self, what: str, work: Callable[[], None]) -> None:
        def allowed() -> None:
            if self._forbidden:
                raise RecordError(self._forbidden)
            work()

        self._again(what, allowed)

    def _again(self, what: str, work: Callable[[], T], pauses_s: Sequence[float] = _PAUSES_S) -> T:
        from pyarrow import ArrowException  # raised by some filesystems

        for pause_s in (*pauses_s, None):
            try:
                return work()
            except (OSError, ArrowException) as error:
                if pause_s is None or _is_lasting(error):
                    raise RecordError(f"{self.uri}: {what}: {_reason(error)}") from error
            time.sleep(pause_s)
        raise AssertionError


def _is_lasting(error: Exception) -> bool:
    message = str(error)
    return isinstance(error, PermissionError | FileNotFoundError) or any(word in message for word in _LASTING)


def _reason(error: Exception) -> str:
    """Message of pyarrow on one line."""
    message = " ".join(str(error).split())
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3]}..."
