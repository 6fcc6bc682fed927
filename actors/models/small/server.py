"""Server process of the small model: `python server.py FOLDER WEIGHTS SLOTS`. Imports nothing of moot.

It exits when no process locks `users` any more. `shared_server.py` starts it, and documents the files.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any

ADDRESS, SERVER_LOCK, USERS_LOCK, LOG = "address.json", "server.lock", "users.lock", "server.log"
"""Files of the folder: the server's address and key; the locks of the server and of its users; its log."""

READY = b"ready\n"
"""Line on its standard output when it is ready."""

LINGER_S = 2.0
"""Idle seconds after the last user before it exits: a run's check and the run itself share it."""

CONTEXT = 4096
"""Most tokens of a prompt and its reply."""

_MOST_THREADS = 8
"""Most threads: more do not make so small a model faster."""


def main(folder: Path, weights: str, slots: int) -> None:
    """Serve in a daemon process until no user is left; returns at once to the starter, and does nothing if another
    server runs."""
    if os.fork():
        return  # the starter, which may end long before, has no child left that would be ended with it
    lock = os.open(folder / SERVER_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    key = secrets.token_urlsafe(32)
    server = _started(weights, slots, key)
    _write_address(folder, {"url": f"{server.listening_address}/v1", "key": key, "pid": os.getpid()})
    os.write(1, READY)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _wait_until_unused(folder)
    (folder / ADDRESS).unlink(missing_ok=True)
    os._exit(0)  # the engine has threads that are never joined


def _started(weights: str, slots: int, key: str) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.n_parallel, params.n_ctx = slots, CONTEXT * slots
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads(_cores())
    # The prompt cache changes how the next prompt is computed, and so, by rounding, the reply.
    params.cache_prompt = slots > 1
    params.cache_ram_mib = 0
    params.ui = params.endpoint_slots = False
    params.verbosity = 1
    return xllamacpp.Server(params)


def threads(cores: int) -> int:
    """Number of threads: one less than the cores, at least one; threads that share a core only spin.

    >>> threads(1), threads(2), threads(6), threads(64)
    (1, 1, 5, 8)
    """
    return max(1, min(_MOST_THREADS, cores - 1))


def _cores() -> int:
    """Number of cores that this process may use, by affinity and by the quota of its container."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(cores, int(quota) // int(period)))
    except (OSError, ValueError):  # no such file, or `max`
        return cores


def _write_address(folder: Path, address: dict[str, str | int]) -> None:
    making = folder / f"{ADDRESS}.{os.getpid()}"
    with open(os.open(making, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(address, file)
    making.rename(folder / ADDRESS)


def _wait_until_unused(folder: Path) -> None:
    """Wait until there is no user; returns with `users` locked, so that no process uses a server about to exit."""
    users = os.open(folder / USERS_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    while True:
        fcntl.flock(users, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_UN)
        time.sleep(LINGER_S)
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
