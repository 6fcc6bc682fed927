"""Services of a server, opened and closed together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from moot.deploy.runs.prepare import Bindings
from moot.deploy.service.errors import RequestError
from moot.deploy.service.inbox import Inbox
from moot.deploy.service.response_models import ServerStats
from moot.deploy.service.service import Service
from moot.deploy.service.settings import Kind, ServeConfig
from moot.protocols.errors import ActorGone

MAX_CONNECTION_SLOTS = 4000
"""Maximum requests that wait or stream; further ones are refused with 429. Ray Serve's own bound is above this and the
queue, so that its own refusals never occur."""


class Services:
    """Services of a server by kind. Lives in one event loop.

    Args:
        config: the server's configuration.
        tried: by kind, bindings with the results of trial calls.
        address: the Ray cluster that this process has joined; None: see `cluster_address`.

    Attributes:
        config: the server's configuration.
        token: token that clients must send; None when none is needed.

    Raises:
        UserError: one line about what is wrong; nothing was written.
    """

    def __init__(
        self, config: ServeConfig, tried: Mapping[Kind, Bindings] | None = None, address: str | None = None
    ) -> None:
        self.config, self.token = config, config.read_token()
        self._inbox = Inbox(Path(config.out).expanduser().absolute() / "inbox")
        self._by_kind = {
            kind: Service(
                kind, config, run.model_copy(update={"address": address}), self._inbox, (tried or {}).get(kind)
            )
            for kind, run in config.runs().items()
        }
        self._ready = False
        self._held = 0

    async def open(self, *, busy_s: float = 0.0) -> None:
        """Start every engine, and resume the requests that an earlier server accepted.

        Args:
            busy_s: seconds to wait for an earlier server to release its records.

        Raises:
            UserError: a model cannot be used, or a record has another configuration or is in use.
            RecordError: the records cannot be written.
        """
        try:
            for service in self._by_kind.values():
                await service.open(busy_s=busy_s)
            await self._inbox.open()
            for service in self._by_kind.values():
                await service.resume_pending()
        except BaseException:
            await self.close()
            raise
        self._ready = True

    def of(self, kind: Kind) -> Service:
        """Service of a kind of request.

        Raises:
            RequestError: the server does not offer it.
        """
        service = self._by_kind.get(kind)
        if service is None:
            raise RequestError(
                404, f"this server offers no {kind}: the operator enables them with `{kind}:`", "not_offered"
            )
        return service

    def unavailable(self) -> dict[str, str]:
        """Reasons why requests are refused now, by kind; accepted kinds are missing."""
        found = {kind: each.unavailable_reason for kind, each in self._by_kind.items()}
        return {kind: why or "the server is starting" for kind, why in found.items() if why or not self._ready}

    @property
    def has_capacity(self) -> bool:
        """Whether one more request may wait or stream."""
        return self._held < MAX_CONNECTION_SLOTS

    def check(self) -> None:
        """Raise `ActorGone` when an engine failed for good, so that the server must restart."""
        for kind, service in self._by_kind.items():
            if (error := service.run.broken) is not None:
                raise ActorGone(f"the engine for {kind} failed: {type(error).__name__}")

    @contextmanager
    def connection_slot(self) -> Iterator[None]:
        """Context of a request that waits or streams.

        Raises:
            RequestError: too many wait or stream.
        """
        if not self.has_capacity:
            raise RequestError(
                429, f"{MAX_CONNECTION_SLOTS:,} requests are waiting or streaming: retry later", retry_after_s=10
            )
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def stats(self) -> ServerStats:
        """Counts by kind."""
        return ServerStats(**{kind: service.stats() for kind, service in self._by_kind.items()})

    async def drain(self, seconds: float) -> None:
        """Refuse new requests and wait for open ones, up to a deadline."""
        await asyncio.gather(*(service.drain(seconds) for service in self._by_kind.values()))

    async def close(self) -> int:
        """Interrupt unfinished requests and close the records; returns the number of interrupted requests.
        Idempotent."""
        try:
            return sum(await asyncio.gather(*(service.close() for service in self._by_kind.values())))
        finally:
            await self._inbox.close()
