"""HTTP listener of `moot serve`, in its own process: requests bypass Ray Serve's proxy and router, which cost more than
the application itself (`docs/operate/benchmarks.md`)."""

from __future__ import annotations

import asyncio
import math
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from moot.deploy.service.services import MAX_CONNECTION_SLOTS
from moot.protocols.errors import ConfigError

_log = structlog.get_logger(__name__)

IDLE_CHECK_S = 20.0
"""Maximum seconds to receive a request's headers, or, after the response, the rest of its body. Also the time in which
a client must read `MIN_READ_BYTES` of an unread response, or its remainder."""

MIN_READ_BYTES = 64 * 2**10

MAX_CONNECTIONS = MAX_CONNECTION_SLOTS + 1000
"""Maximum connections; one more closes the connection that has been idle longest."""


def max_connections() -> int:
    """Connection limit, lowered by the process's limit of open files, a quarter of which is reserved."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, soft * 3 // 4)


class Connection(H11Protocol):
    """uvicorn connection with an idle check every `IDLE_CHECK_S` seconds."""

    _looking: asyncio.TimerHandle | None = None
    _unsent: float = math.inf
    waiting_since = 0.0

    def connection_made(self, transport: Any) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > max_connections():
            waiting = [each for each in self.connections if isinstance(each, Connection) and not each.is_responding]
            oldest = min(waiting, key=lambda each: each.waiting_since)  # this one is idle too
            _log.warning("too many connections: closing one", connections=len(self.connections))
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
    def is_responding(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _await_request(self) -> None:
        """Start to wait for the client's next request, and for its reading of unsent data."""
        self.waiting_since, self._unsent = self.loop.time(), math.inf
        self._schedule_check()

    def _schedule_check(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = self.loop.call_later(IDLE_CHECK_S, self._check_idle)

    def _check_idle(self) -> None:
        self._looking = None
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        is_read = 0 < self._unsent <= before - MIN_READ_BYTES
        if is_read or (self.is_responding and not self.transport.is_closing()):
            self._schedule_check()
        else:
            self.transport.abort()


ANSWER_S = 5
"""Seconds for responses in progress at shutdown."""


@asynccontextmanager
async def serve_on_socket(app: ASGIApp, listening: socket.socket) -> AsyncIterator[uvicorn.Server]:
    """Serve an ASGI application on a listening socket, in this event loop.

    At the end no further connection is accepted, responses in progress may end within `ANSWER_S`, and the others are
    aborted.
    """
    config = uvicorn.Config(
        app,
        http=Connection,  # h11: the faster parser has no limit for headers, which arrive before any token
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="critical",
        server_header=False,
        timeout_graceful_shutdown=ANSWER_S,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield server
    finally:
        server.should_exit = True
        await asyncio.wait([serving])


def listening_socket(host: str, port: int) -> socket.socket:
    """Create a listening socket; its protocol is set explicitly, because asyncio else leaves Nagle's algorithm on.

    Raises:
        ConfigError: the port is taken, or the host is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(2048)
    except OSError as error:
        made.close()
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"cannot listen on {host}:{port}: {reason}; name another --port") from None
    return made
