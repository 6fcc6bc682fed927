"""An HTTP server in the replica's own process: a request reaches the application without Ray Serve's proxy and router,
which cost more than the application does (`benchmarks-scale.md`)."""

from __future__ import annotations

import asyncio
import errno
import math
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from moot.deploy.serving.services import MOST_HELD
from moot.protocols.errors import ActorGone, ConfigError

_log = structlog.get_logger(__name__)

LOOK_S = 20.0
"""Seconds that the headers of a request may take, or, once it is answered, the rest of its body. After it, the time in
which a client must have read `LEAST_READ` bytes of an answer that it has not read yet, or all that is left of it."""

LEAST_READ = 64 * 2**10

MOST_CONNECTIONS = MOST_HELD + 1000
"""Connections at once; for one more, that one is ended which has gone longest without a request that is answered."""


def most_connections() -> int:
    """The bound, lower where the process may not have as many files open: a quarter of these is for other things."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft * 3 // 4)


class Connection(H11Protocol):
    """One connection, as uvicorn makes it, looked at every `LOOK_S` seconds for whether anything happens on it."""

    _looking: asyncio.TimerHandle | None = None
    _unsent: float = math.inf
    waiting_since = 0.0

    def connection_made(self, transport: Any) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > most_connections():
            waiting = [each for each in self.connections if isinstance(each, Connection) and not each.answers]
            oldest = min(waiting, key=lambda each: each.waiting_since)  # this one waits, too
            _log.warning("too many connections: one is ended", connections=len(self.connections))
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """See `H11Protocol`."""
        self._await_request()
        super().on_response_complete()

    @property
    def answers(self) -> bool:
        """Whether there is a request that is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _await_request(self) -> None:
        """From now on the client is to ask, and to read what is left to be sent."""
        self.waiting_since, self._unsent = self.loop.time(), math.inf
        self._look_later()

    def _look_later(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = self.loop.call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._looking = None
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        is_read = 0 < self._unsent <= before - LEAST_READ
        if is_read or (self.answers and not self.transport.is_closing()):
            self._look_later()
        else:
            self.transport.abort()


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
