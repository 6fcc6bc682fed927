"""Ray Serve deployment of the server: one replica, which owns the records, with the engine's actors behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog
from ray import serve
from starlette.types import ASGIApp

from moot.actors.remote.ray_session import ByValue
from moot.actors.remote.run_actor import tune_garbage_collection
from moot.actors.telemetry.log import configure_json
from moot.deploy.service.api import make_api
from moot.deploy.service.services import MAX_CONNECTION_SLOTS, Services
from moot.deploy.service.settings import ServeConfig

_log = structlog.get_logger(__name__)
NAME = "moot"
"""Name of the application and its deployment."""

CLOSE_S = 60.0
"""Maximum seconds to close the records, after streams and debates have drained."""


class DebateServer:
    """Replica of the server; Ray Serve creates it, checks its health and shuts it down.

    Args:
        config: fields of `ServeConfig`.

    Raises:
        UserError: one line about what is wrong.
    """

    async def __init__(self, config: Mapping[str, Any]) -> None:  # type: ignore[misc] # Serve awaits it
        configure_json("info")
        self._config = ServeConfig.model_validate(dict(config))
        self._services = Services(self._config)
        self._closing: asyncio.Task[int] | None = None
        await self._services.open(busy_s=grace_s(self._config))
        tune_garbage_collection()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return make_api(self._services)

    async def check_health(self) -> None:
        """Raise when the engine failed, so that Ray Serve restarts the replica."""
        self._services.check()

    async def drain(self) -> int:
        """Refuse new requests, drain for `drain_s`, interrupt the rest and close the records; returns the number of
        interrupted debates."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._drain())
        return await asyncio.shield(self._closing)

    async def _drain(self) -> int:
        await self._services.drain(self._config.drain_s)
        left = await self._services.close()
        _log.info("the server was closed", interrupted=left)
        return left

    async def __del__(self) -> None:
        if hasattr(self, "_closing"):
            await self.drain()


def grace_s(config: ServeConfig) -> float:
    """Shutdown grace of a replica in seconds: streams end, debates drain, then the records close."""
    return config.stream_s + config.drain_s + CLOSE_S


def application(config: ServeConfig) -> serve.Application:
    """Ray Serve application for a configuration.

    It always has one replica, because a record has one owner; the engine behind it scales. A second server needs an
    `out` of its own.
    """
    deployment: serve.Deployment = serve.deployment(
        serve.ingress()(DebateServer),
        name=NAME,
        num_replicas=1,
        max_ongoing_requests=4 * MAX_CONNECTION_SLOTS,
        max_queued_requests=-1,
        health_check_period_s=5.0,
        health_check_timeout_s=30.0,
        graceful_shutdown_wait_loop_s=0.2,
        graceful_shutdown_timeout_s=grace_s(config),
    )
    return deployment.bind(ByValue(config.model_dump(mode="json")))
