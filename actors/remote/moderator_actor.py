"""The Ray actor that holds debates."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import msgspec

from moot.actors.household import (
    LocalCrew,
    build_house,
)
from moot.actors.moderator import Moderator
from moot.actors.remote.crew import RemoteCrew
from moot.actors.remote.handover import Handover, Tray
from moot.actors.remote.run_actor import RunActor
from moot.actors.remote.scribe import RemoteScribe
from moot.actors.roles import Roles
from moot.actors.tracing import Tracing, Watch

_ROWS_WITHIN_S = 10.0
"""Seconds that the last rows of a drain may need; a writer that lives takes them at once."""


class ModeratorActor(RunActor):
    """A moderator; in the packed placement its agents and judges are in the same process."""

    kind = "moderator"

    async def _set_up(self) -> None:
        name, placement, protocol = self._args
        self._scribe = RemoteScribe(self._roster.peers(self._roster.writers), "agent")
        roles = Roles(self._spec.roles)
        self._remote: RemoteCrew | None = None
        self._local: LocalCrew | None = None
        self._gate = self._new_gate() if placement == "packed" else None
        watch = Watch(self._meter, Tracing(self._spec.store or self._spec.folder))
        self._tracer = watch.tracer
        if placement == "packed":
            self._local = await asyncio.to_thread(LocalCrew, self._spec, self._scribe, self._gate, watch)
        else:
            agents = {(service[0], service[1]): self._roster.peers(names) for service, names in self._roster.agents}
            self._remote = RemoteCrew(roles, agents, self._scribe, name)
        crew = self._remote or self._local
        assert crew is not None
        places = max(1, self._spec.max_open // len(self._roster.moderators))
        self._house = build_house(self._spec, crew, self._scribe, watch)
        self._moderator = Moderator(protocol, self._house, places, self._spec.debate_timeout_s)
        self._tray = Tray(self._moderator)

    async def exchange(self, raw: bytes, wait: bool) -> bytes:
        """See `Tray.exchange`."""
        await self._up()
        handover = msgspec.msgpack.decode(raw, type=Handover)
        return msgspec.msgpack.encode(await self._tray.exchange(handover, wait=wait))

    async def withdraw(self, keys: list[tuple[str, int]]) -> None:
        """See `Moderator.withdraw`."""
        await self._up()
        await self._moderator.withdraw(keys)

    async def batch_sizes(self) -> dict[str, dict[int, int]]:
        """How many messages left together: calls by batch size, for asks and for the record's rows."""
        await self._up()
        asks = self._remote.batch_sizes() if self._remote is not None else Counter[int]()
        return {"asks": dict(asks), "rows": dict(self._scribe.batch_sizes())}

    async def drain(self, seconds: float) -> None:
        """See `Moderator.drain`; rows that a lost writer does not take in time are paid for again."""
        await self._up()
        await self._moderator.drain(seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ROWS_WITHIN_S):
                await self._scribe.drained()

    async def close(self) -> None:
        """Put every debate aside and release the models of the packed placement."""
        await self._up()
        await self._moderator.close()
        if self._remote is not None:
            await self._remote.close()
        if self._local is not None:
            await self._local.close()
        if self._gate is not None:
            await self._gate.close()
        await self._house.close()
        await self._scribe.drained()
        await self._tracer.close()
