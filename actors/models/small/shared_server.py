"""Shared server for all processes of a user on this machine: started by the first user, stopped after the last.

A folder that only the user can read has four files. `start.lock` is locked while a process checks for a server and
starts one. `users.lock` is locked, shared, by all its users. `server.lock` is locked by the server, which distinguishes
a dead server from a live one. `address.json` has its address and key. The kernel releases a lock when its process ends,
in whatever way: the server waits for that, and then exits.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import stat
import subprocess
import sys
import tempfile
import time
import weakref
from dataclasses import dataclass, field
from pathlib import Path

from moot.actors.models.small import server
from moot.protocols.errors import ModelUnavailable

START_TIMEOUT_S = 180.0
"""Timeout in seconds for loading the weights, on a machine that is busy with other work; a server that dies before it
is ready is reported at once."""

MAX_DEATHS, DEATHS_WITHIN_S = 5, 60.0
"""Most deaths of a server, and the seconds within which they count; after that it is not started again."""

_LOOK_AGAIN_S = 0.02
_START_LOCK, _DEATHS = "start.lock", "deaths.json"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Address and key of a server.

    Attributes:
        url: base URL of its API.
        key: its API key.
    """

    url: str
    key: str = field(repr=False)


class ServerLease:
    """Lease on a server: it stays up as long as `lock`, a descriptor, is locked by this process."""

    def __init__(self, address: ServerAddress, lock: int) -> None:
        self.address = address
        self._release = weakref.finalize(self, os.close, lock)

    def release(self) -> None:
        """Release the lease."""
        self._release()


def runtime_folder(name: str) -> Path:
    """Runtime folder for a server's files, created if needed; only the user can read it.

    Raises:
        ModelUnavailable: another user has made it, or can read it.
    """
    base = Path(tempfile.gettempdir()) / f"moot-small-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ModelUnavailable(f"{base} must be a folder of yours that nobody else can read (chmod 700): remove it")
    folder = base / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def acquire_server(folder: Path, weights: Path, slots: int) -> ServerLease:
    """Acquires a lease on the folder's server; starts one if there is none. Blocks until it is ready.

    Args:
        folder: see `runtime_folder`.
        weights: file of the weights.
        slots: most concurrent replies.

    Raises:
        ModelUnavailable: no server starts, or each one crashes.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    starting = _locked(folder / _START_LOCK, fcntl.LOCK_EX, deadline)
    try:
        using = _locked(folder / server.USERS_LOCK, fcntl.LOCK_SH, deadline)
        try:
            address = _living(folder, deadline) or _start(folder, weights, slots, deadline)
        except BaseException:
            os.close(using)
            raise
        return ServerLease(address, using)
    finally:
        os.close(starting)


def is_served(folder: Path) -> bool:
    """Whether the folder's server is alive. Blocks while one is being started."""
    starting = _locked(folder / _START_LOCK, fcntl.LOCK_EX, time.monotonic() + START_TIMEOUT_S)
    try:
        return _is_locked(folder / server.SERVER_LOCK)
    finally:
        os.close(starting)


def _living(folder: Path, deadline: float) -> ServerAddress | None:
    """Address of a live server; None when there is none."""
    while _is_locked(folder / server.SERVER_LOCK):
        if (address := _read_address(folder)) is not None:
            return address
        _wait(deadline)  # it is exiting, or its starter was killed meanwhile
    return None


def _start(folder: Path, weights: Path, slots: int, deadline: float) -> ServerAddress:
    if (folder / server.ADDRESS).exists():
        _note_death(folder)
        (folder / server.ADDRESS).unlink()
    command = [sys.executable, "-P", server.__file__, str(folder), str(weights.absolute()), str(slots)]
    with (
        open(os.open(folder / server.LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            start_new_session=True,  # Ctrl-C here must not end a server that others use too
        ) as process,
    ):
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        ready_line = process.stdout.readline() if readable else b""
    address = _read_address(folder)
    if ready_line != server.READY or address is None:
        why = _last_line(folder / server.LOG) if readable else f"not ready within {START_TIMEOUT_S:g} s"
        raise ModelUnavailable(f"the server of model 'small' could not be started: {why}")
    return address


def _note_death(folder: Path) -> None:
    """Record the crash of a server.

    Raises:
        ModelUnavailable: too many have crashed.
    """
    now = time.monotonic()  # counts from the machine's start, for all its processes
    try:
        earlier = [float(at) for at in json.loads((folder / _DEATHS).read_text())]
    except (OSError, ValueError, TypeError):
        earlier = []
    deaths = [at for at in earlier if now - DEATHS_WITHIN_S < at <= now]
    if len(deaths) >= MAX_DEATHS:
        raise ModelUnavailable(
            f"the server of model 'small' has died {MAX_DEATHS} times within {DEATHS_WITHIN_S:g} s: "
            f"{_last_line(folder / server.LOG)}"
        )
    (folder / _DEATHS).write_text(json.dumps([*deaths, now]))


def _read_address(folder: Path) -> ServerAddress | None:
    try:
        read = json.loads((folder / server.ADDRESS).read_text())
        return ServerAddress(str(read["url"]), str(read["key"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError:
        lines = []
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "its log gives no reason")


def _is_locked(lock: Path) -> bool:
    """Whether a process has locked the file."""
    file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _locked(path: Path, how: int, deadline: float) -> int:
    """Descriptor of the locked file."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            try:
                _wait(deadline)
            except ModelUnavailable:
                os.close(file)
                raise
        else:
            return file


def _wait(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise ModelUnavailable(f"the server of model 'small' was not ready within {START_TIMEOUT_S:g} s")
    time.sleep(_LOOK_AGAIN_S)
