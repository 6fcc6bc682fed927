"""Process of `moot view`: listens until a signal."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from moot.actors.telemetry.log import configure_unless_done
from moot.deploy.runs.interruption import run_in_thread
from moot.deploy.service.settings import SHORTEST_TOKEN, is_loopback, read_token_env
from moot.protocols.errors import ConfigError

if TYPE_CHECKING:
    from moot.deploy.service.view.catalogue import RunCatalogue

LOOPBACK = "127.0.0.1"
TOKEN_ENV = "MOOT_TOKEN"
"""Environment variable with the token of the pages."""


def run_view(root: Path, host: str = LOOPBACK, port: int = 8001) -> int:
    """Serve a folder's runs until SIGINT or SIGTERM; returns the exit code.

    Args:
        root: the folder, or a single run's.
        host, port: listening address; port 0 picks a free one.

    Raises:
        UserError: one line about what is wrong.
    """
    token = page_token(host, port)
    configure_unless_done()
    from moot.deploy.service.listener import listening_socket
    from moot.deploy.service.view.catalogue import RunCatalogue

    catalogue = RunCatalogue(root)
    with listening_socket(host, port) as listening:
        run_in_thread(ViewServer(catalogue, listening, token), on_signals=_report_stopping)
    return 0


def check_watchable() -> None:
    """Check that a run of this process can be watched.

    Raises:
        UserError: the server's packages are missing, or the token is too short.
    """
    page_token(LOOPBACK, 0)


def _report_stopping() -> None:
    os.write(2, b"stopping\n")  # not a print: one may just have been interrupted


def page_token(host: str, port: int) -> str | None:
    """Token of the pages, validated together with their address.

    Raises:
        UserError: the port is invalid, others could read the pages without a token, or the server's packages are
            missing.
    """
    if not 0 <= port <= 65535:
        raise ConfigError(f"--port {port} is not in [0, 65535]")
    token = read_token_env(TOKEN_ENV) if TOKEN_ENV in os.environ else None
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"--host {host} is reachable by others: set a token of {SHORTEST_TOKEN} or more letters and digits in the "
            f"environment variable {TOKEN_ENV}"
        )
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ConfigError("pages in a browser need an extra: pip install 'moot[serve]'") from None
    return token


def address_of(listening: socket.socket, token: str | None) -> str:
    """Address of the pages for a browser."""
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    place = f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
    return place if token is None else f"{place}?token=${TOKEN_ENV}"


class ViewServer:
    """Server of the pages of a folder's runs, on a listening socket."""

    def __init__(self, catalogue: RunCatalogue, listening: socket.socket, token: str | None) -> None:
        self._catalogue, self._socket, self._token = catalogue, listening, token
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Stop serving. Thread-safe."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._stopping.set)

    async def run(self) -> None:
        """Serve until stopped."""
        from moot.deploy.service.listener import serve_on_socket
        from moot.deploy.service.view.app import make_view

        self._loop = asyncio.get_running_loop()
        view = make_view(self._catalogue, self._token)
        async with serve_on_socket(view, self._socket):
            place = address_of(self._socket, self._token)
            print(f"Runs in {self._catalogue.root}: {place} (Ctrl-C stops)", flush=True)
            await self._stopping.wait()
            await view.close()
        await self._catalogue.close()
