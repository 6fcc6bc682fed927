"""An HTTP server in the replica's own process: a request reaches the application without Ray Serve's proxy and router,
which cost more than the application does (`benchmarks-scale.md`)."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from moot.deploy.serving.connection import Connection
from moot.protocols.errors import ActorGone, ConfigError

_FREE_WITHIN_S = 20.0
"""Seconds until the replica before this one, which may just have been killed, has let the port go."""

ANSWER_S = 5
"""Seconds for answers that are being sent when it is closed."""

_LOOK_EACH_S = 0.2
_BACKLOG = 2048


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The process's signals are Ray's."""
        yield


class Listener:
    """Answers at one address. Lives in one event loop.

    Args:
        app: answers requests.
        host, port: of this machine.
    """

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._server = _Server(
            uvicorn.Config(
                app,
                http=Connection,  # on h11: the quicker parser has no bound for headers, which come before any token
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                timeout_graceful_shutdown=ANSWER_S,
            )
        )
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to listen.

        Raises:
            ConfigError: the port is taken, and stays so, or the host is none of this machine.
        """
        self._socket = await self._bound()
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))

    async def _bound(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FREE_WITHIN_S
        while True:
            try:
                return _socket(self._host, self._port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or loop.time() > deadline:
                    reason = error.strerror or error
                    raise ConfigError(f"cannot listen on {self._host}:{self._port}: {reason}") from None
            await asyncio.sleep(_LOOK_EACH_S)

    def check(self) -> None:
        """Raise `ActorGone` when it has ended by itself."""
        if self._serving is not None and self._serving.done() and not self._server.should_exit:
            raise ActorGone(f"nothing listens on {self._host}:{self._port} any more")

    async def close(self) -> None:
        """Take no further connection, let answers that are being sent end for `ANSWER_S`, and break off the rest. Twice
        is harmless."""
        if self._serving is None:
            return
        self._server.should_exit = True
        await asyncio.wait([self._serving], timeout=2 * ANSWER_S)
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)
        self._socket.close()


def _socket(host: str, port: int) -> socket.socket:
    """A listening socket; its protocol is named, for asyncio leaves Nagle's delay on where it is not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made
