"""`moot view` in a thread of this process."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moot.deploy.runs.interruption import run_in_thread
from moot.deploy.service.listener import listening_socket
from moot.deploy.service.view.catalogue import RunCatalogue
from moot.deploy.service.view.process import ViewServer


@contextmanager
def viewed(runs: Path, port: int = 0) -> Iterator[str]:
    """URL of the pages of a folder's runs, served by a thread on a free or a given port."""
    with listening_socket("127.0.0.1", port) as listening:
        server = ViewServer(RunCatalogue(runs), listening, None)
        serving = threading.Thread(target=run_in_thread, args=(server,))
        serving.start()
        try:
            yield f"http://127.0.0.1:{_port(listening)}/"
        finally:
            server.stop()
            serving.join()


def address_of(process: subprocess.Popen[str]) -> str:
    """URL at which a process that was just started serves its pages."""
    assert process.stdout is not None
    found = re.search(r"http://\S+/", process.stdout.readline())
    assert found is not None
    return found.group()


def _port(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])
