"""The Ray actor of an agent or judge."""

from __future__ import annotations

import asyncio
import time

from moot.actors.agent import Agent
from moot.actors.failpoints import failpoint
from moot.actors.household import (
    Service,
    build_agent,
    services,
)
from moot.actors.remote.envelopes import decode_parcel, encode
from moot.actors.remote.peers import SET_UP_S
from moot.actors.remote.run_actor import RunActor
from moot.actors.remote.scribe import RemoteScribe
from moot.actors.remote.station import Station
from moot.actors.roles import Roles
from moot.actors.tracing import Tracing, Watch


class AgentActor(RunActor):
    """An agent or judge: one role family on one model."""

    kind = "agent"

    async def _set_up(self) -> None:
        service: Service = tuple(self._args[0])
        self._family = "judge" if service[0].startswith("judge") else "agent"
        self._scribe = RemoteScribe(self._roster.peers(self._roster.writers), self._family)
        binding = services(Roles(self._spec.roles))[service]
        self._gate = self._new_gate()
        watch = Watch(self._meter, Tracing(self._spec.store or self._spec.folder))
        self._tracer = watch.tracer
        self._agent: Agent = await asyncio.to_thread(build_agent, self._spec, binding, self._scribe, self._gate, watch)
        self._station = Station(self._agent.answer)

    async def exchange(self, blob: bytes) -> bytes:
        """See `Station.exchange`."""
        await self._up()
        parcel = decode_parcel(blob)
        if parcel.received:
            failpoint(f"{self._family}.sent_to_moderator")
        return encode(await self._station.exchange(parcel))

    async def drain(self) -> None:
        """Let no further call that needs leave start."""
        await self._up()
        if self._gate is not None:
            self._gate.drain()

    async def holds(self, sender: str, number: int) -> bool:
        """See `Station.holds`; True while the asks of the actor's last life are still to come, at most `SET_UP_S`."""
        up = self._setting_up is not None and self._setting_up.done()
        if not up and time.monotonic() < self._born + SET_UP_S:
            return True
        await self._up()
        return self._station.holds(sender, number)

    async def batch_sizes(self) -> dict[str, dict[int, int]]:
        """How many messages left together: calls by batch size, for replies and for the record's rows."""
        await self._up()
        return {"replies": dict(self._station.batch_sizes), "rows": dict(self._scribe.batch_sizes())}

    async def close(self) -> None:
        """Cancel what is under way; the rows of what was paid reach their writer first."""
        await self._up()
        await self._station.close()
        await self._agent.close()
        if self._gate is not None:
            await self._gate.close()
        await self._scribe.drained()
        await self._tracer.close()
