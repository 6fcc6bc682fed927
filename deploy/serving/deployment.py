"""The server as a Ray Serve deployment: one replica, which owns the records, with the engine's actors behind it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

import structlog
from ray import serve
from starlette.types import ASGIApp

from moot.actors.log import configure_json
from moot.actors.remote.joining import Carried
from moot.actors.remote.run_actor import collect_seldom
from moot.deploy.running.prepare import Bindings
from moot.deploy.serving.api import make_api
from moot.deploy.serving.listener import Listener
from moot.deploy.serving.services import MOST_HELD, Services
from moot.deploy.serving.settings import Kind, ServeConfig

_log = structlog.get_logger(__name__)
NAME = "moot"
"""Of the application and its deployment."""

CLOSE_S = 60.0
"""Seconds that closing the records may take, after streams and debates have had theirs."""

_AT_ONCE = 4 * MOST_HELD


class DebateServer:
    """The replica. Serve makes it, asks for its health, and takes it down.

    Args:
        config: fields of `ServeConfig`.
        tried: see `Services`.

    Raises:
        UserError: one line about what is wrong.
    """

    async def __init__(  # type: ignore[misc] # Serve awaits it
        self, config: Mapping[str, Any], tried: Mapping[Kind, Bindings] | None = None
    ) -> None:
        configure_json("info")
        self._config = ServeConfig.model_validate(dict(config))
        self._token = self._config.read_token()
        self._services = Services(self._config, tried)
        self._closing: asyncio.Task[int] | None = None
        self._incarnation = secrets.token_hex(8)
        await self._services.open(busy_s=grace_s(self._config))
        collect_seldom()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return make_api(self._services, self._token)

    async def check_health(self) -> None:
        """Raise when the engine is broken, so that Serve starts the replica anew."""
        self._services.check()

    async def refused(self) -> tuple[str, dict[str, str]]:
        """Which incarnation of the replica this is, and `Services.refused`."""
        return self._incarnation, self._services.refused()

    async def drain(self) -> int:
        """Take nothing more, let debates end for `drain_s`, put the rest aside, close the records; gives how many were
        put aside."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._drain())
        return await asyncio.shield(self._closing)

    async def _drain(self) -> int:
        await self._services.drain(self._config.drain_s)
        left = await self._services.close()
        _log.info("the server was closed", put_aside=left)
        return left

    async def __del__(self) -> None:
        if hasattr(self, "_closing"):
            await self.drain()


class ListeningServer(DebateServer):
    """A replica that listens by itself, and not behind Ray Serve's proxy.

    Args:
        config: fields of `ServeConfig`.
        host, port: where.
        tried: see `Services`.

    Raises:
        UserError: one line about what is wrong.
    """

    async def __init__(  # type: ignore[misc] # Serve awaits it
        self, config: Mapping[str, Any], host: str, port: int, tried: Mapping[Kind, Bindings]
    ) -> None:
        self._listener: Listener | None = None
        await super().__init__(config, tried)
        listener = Listener(make_api(self._services, self._token), host, port)
        try:
            await listener.open()
        except BaseException:
            await self._services.close()
            raise
        self._listener = listener

    async def check_health(self) -> None:
        """Raise when the engine is broken or nothing listens, so that Serve starts the replica anew."""
        await super().check_health()
        if self._listener is not None:
            self._listener.check()

    async def _drain(self) -> int:
        left = await super()._drain()
        if self._listener is not None:
            await self._listener.close()
        return left


def grace_s(config: ServeConfig) -> float:
    """Seconds that a replica may take to go: streams end, then debates, then the records are closed."""
    return config.stream_s + config.drain_s + CLOSE_S


def application(config: ServeConfig) -> serve.Application:
    """The application for a configuration.

    There is always one replica, for a record has one owner; what scales is the engine behind it. A second server needs
    an `out` of its own.
    """
    return _deployment(serve.ingress()(DebateServer), config).bind(Carried(config.model_dump(mode="json")))


def listening_application(
    config: ServeConfig, host: str, port: int, tried: Mapping[Kind, Bindings]
) -> serve.Application:
    """The application of which the replica itself listens: for a Ray Serve that has no other replicas to route to.

    What trial calls found before the replica starts is not asked again there.
    """
    fields = Carried(config.model_dump(mode="json"))
    return _deployment(ListeningServer, config).bind(fields, host, port, Carried(dict(tried)))


def _deployment(server: type[DebateServer], config: ServeConfig) -> serve.Deployment:
    deployment: serve.Deployment = serve.deployment(
        server,
        name=NAME,
        num_replicas=1,
        max_ongoing_requests=_AT_ONCE,
        max_queued_requests=-1,
        health_check_period_s=5.0,
        health_check_timeout_s=30.0,
        graceful_shutdown_wait_loop_s=0.2,
        graceful_shutdown_timeout_s=grace_s(config),
    )
    return deployment
